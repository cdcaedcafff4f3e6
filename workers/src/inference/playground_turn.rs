//! Playground runs: an editor's message to a draft, through the pipeline of every turn. Nothing is
//! stored, announced or cached.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_backends::{
    relay::ClaimTask,
    store::{ReplyRecord, TurnEnd},
};
use switchboard_schemas::{
    conversation_job::ReplyJob, playground::AgentPlaygroundRun, reply_event::ReplyFailure,
};
use tokio_util::sync::CancellationToken;

use super::{
    InferenceHandler,
    announcement::AnnouncementReceiver,
    claim::{self, ClaimAttempts},
    history::{ConversationHistory, PendingTurn, TurnState},
    turn_deadlines::TurnDeadlines,
    turn_runner::TurnRunner,
    turn_store::{SettledEnd, TurnStore},
};
use crate::{job_loop::JobEnd, playground_history};

/// Answers a playground message, or completes the work of an earlier attempt.
pub(super) async fn run_playground_turn(
    inference: &InferenceHandler,
    job: &ReplyJob,
    attempts: &ClaimAttempts,
    handoff: &CancellationToken,
) -> JobEnd {
    let claimed = match claim::claim_reply(inference, job, attempts).await {
        Ok(claimed) => claimed,
        Err(end) => return end,
    };
    if claimed.task == ClaimTask::Announce {
        return JobEnd::Finished;
    }
    let run: Option<AgentPlaygroundRun> =
        playground_history::load_run(&inference.backends, &job.turn.message_id).await;
    let run = run.filter(|run| run.agent.org_id == job.turn.org_id);
    let failure = run.is_none().then_some(ReplyFailure::AgentUnavailable);
    let (draft, past) = run.map(|run| (run.agent, run.past)).unzip();
    let store = PlaygroundTurnStore {
        history: ConversationHistory {
            messages: playground_history::to_messages(
                &job.turn.conversation_id,
                past.unwrap_or_default(),
            ),
            ..ConversationHistory::default()
        },
    };
    let deadlines = TurnDeadlines::from_now(&inference.config);
    let (queued_at, writer) = (job.turn.accepted_at, &claimed.writer);
    let mut runner = TurnRunner::new(inference, job, queued_at, writer, &store, deadlines);
    if let Some(draft) = draft {
        runner = runner.with_draft(Arc::new(draft));
    }
    match runner.run(&claimed, failure, handoff).await {
        // An editor's test is nothing that an operator would replay.
        JobEnd::DeadLetter(_) => JobEnd::Finished,
        end => end,
    }
}

/// Storage of a playground run: its history comes with the run, and nothing is written.
struct PlaygroundTurnStore {
    history: ConversationHistory,
}

#[async_trait]
impl TurnStore for PlaygroundTurnStore {
    async fn load_state(&self, _message_count: Option<u64>) -> Option<TurnState> {
        Some(TurnState::Pending(PendingTurn {
            history: self.history.clone(),
            position: 0,
        }))
    }

    async fn attach_files(&self) -> bool {
        true
    }

    async fn store_user_message(&self, _turn: &PendingTurn) -> bool {
        true
    }

    async fn settle_end(&self, own: &TurnEnd) -> Option<SettledEnd> {
        Some(SettledEnd::Unstored(Box::new(own.clone())))
    }

    async fn store_reply(&self, _turn: &PendingTurn, _end: &TurnEnd) -> Option<u64> {
        Some(0)
    }

    async fn publish_events(&self, _position: u64, publication: AnnouncementReceiver) {
        publication.mark_published();
        std::future::pending().await
    }

    async fn republish_events(&self, _record: &ReplyRecord) -> Result<(), JobEnd> {
        Ok(())
    }
}
