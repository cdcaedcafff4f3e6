//! Chat messages from the request body to the published job, and the lookup of a message by its id.

pub(crate) mod bodies;
pub(crate) mod idempotency;
pub(crate) mod lead;
pub(crate) mod message_lookup;
pub(crate) mod pipeline;
pub(crate) mod request;
mod submission;

#[cfg(test)]
mod submission_tests;
#[cfg(test)]
mod tests;
