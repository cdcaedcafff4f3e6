//! A draft's answer to whoever edits it: the same claim, prompt, model and tools as a visitor's message, and the same way
//! back. Nothing is stored or announced, and no history is remembered.

use std::sync::{Arc, atomic::AtomicBool};

use switchboard_backends::relay::{ClaimTask, LEASE};
use switchboard_schemas::{
    conversation_job::ReplyJob,
    playground::AgentPlaygroundRun,
    reply_event::{FrameBody, ReplyEnd, ReplyFailure},
};
use tokio_util::sync::CancellationToken;

use super::{
    Inference,
    answer::Turn,
    claim::{self, Claimed},
    history::History,
    outcome::Outcome,
};
use crate::{job_loop::JobEnd, trial};

/// Answers, or tells what an earlier attempt left untold.
pub(super) async fn run(
    inference: &Inference,
    job: &ReplyJob,
    inherited: &AtomicBool,
    handover: &CancellationToken,
) -> JobEnd {
    let Claimed { writer, task, .. } = match claim::claim(inference, job, inherited).await {
        Ok(claimed) => claimed,
        Err(end) => return end,
    };
    let kept: Option<AgentPlaygroundRun> =
        trial::kept(&inference.backends, &job.turn.message_id).await;
    let kept = kept.filter(|kept| kept.agent.org_id == job.turn.org_id);
    let (draft, past) = kept.map(|kept| (Arc::new(kept.agent), kept.past)).unzip();
    // There is nothing to be stored that what is shown would have to wait for.
    writer.user_stored();
    let messages = trial::messages(&job.turn.conversation_id, past.unwrap_or_default());
    let turn = Turn::new(inference, job, job.turn.accepted_at, &writer, draft);
    turn.while_ours(
        handover,
        turn.try_out(
            task,
            History {
                messages,
                ..History::default()
            },
        ),
    )
    .await
}

impl Turn<'_> {
    async fn try_out(&self, task: ClaimTask, past: History) -> JobEnd {
        self.writer.flush(true).await;
        let outcome = match task {
            ClaimTask::Generate if self.draft.is_some() => self.ask_model(&past).await,
            ClaimTask::Generate => Outcome::failed(ReplyFailure::AgentUnavailable),
            ClaimTask::GiveUp => Outcome::failed(ReplyFailure::AttemptsExhausted),
            ClaimTask::Announce => return JobEnd::Finished,
            ClaimTask::StoreFinalized { end } => match end.body {
                FrameBody::End(end) => {
                    self.writer.mark_sealed().await;
                    return self.tell(&end).await;
                }
                _ => Outcome::failed(ReplyFailure::Internal),
            },
        };
        match self.seal_end(outcome, &self.writer.whole_text()).await {
            Some(end) => self.tell(&end).await,
            None => JobEnd::Open(LEASE),
        }
    }

    async fn tell(&self, end: &ReplyEnd) -> JobEnd {
        self.measure_end(end);
        // No message is in the conversation, now or ever.
        if self.writer.settle(end, 0, true).await {
            JobEnd::Finished
        } else {
            JobEnd::Open(LEASE)
        }
    }
}
