//! Jobs on their way to the workers: publishing, voiding, takeovers and waiting for the outcome of
//! a conversation job.

pub(crate) mod conversation_job;
pub(crate) mod publish;
pub(crate) mod takeover;
