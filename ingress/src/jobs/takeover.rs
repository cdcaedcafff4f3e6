//! Hands silent replies to another worker through the retry topic.

use switchboard_schemas::{
    conversation_job::{ReplyJob, TeamRouting},
    topics::Topic,
};

use super::publish::{TurnJob, publish_job};
use crate::state::AppState;

/// Publishes `job` to the retry topic for a worker with an attempt of at least `attempt_min`.
///
/// The original record stays, and the claim decides which worker answers. Returns false for a team
/// message without a routing decision, which no worker can answer yet.
pub(crate) async fn publish_takeover(state: &AppState, job: &TurnJob, attempt_min: u32) -> bool {
    let Some(reply_job) = reply_job(state, job).await else {
        return false;
    };
    let reply_job = ReplyJob {
        attempt_min,
        ..reply_job
    };
    let (message, request_id) = (job.turn().reply_id(), job.turn().request_id.clone());
    tracing::info!(message.id = %message, attempt = attempt_min, "silent reply handed to another worker");
    state.metrics.takeovers.inc();
    // Failures are counted by `publish_job`; the next silence tries again.
    let _ = publish_job(
        state,
        Topic::JobsRetry,
        &job.wrap_reply_job(reply_job),
        &request_id,
    )
    .await;
    true
}

async fn reply_job(state: &AppState, job: &TurnJob) -> Option<ReplyJob> {
    let job = match job {
        TurnJob::Agent(job) | TurnJob::Playground(job) => return Some(job.clone()),
        TurnJob::Team(job) => job,
    };
    let decisions = state
        .backends
        .relay
        .recorded_decisions(&job.turn.message_id)
        .await;
    let decided = decisions.ok()?.own?;
    // The decision does not record its time.
    let routed = TeamRouting {
        team_id: job.team_id.clone(),
        reason: decided.reason,
        facts: decided.facts,
        routed_at: None,
    };
    Some(ReplyJob {
        agent_id: decided.agent_id,
        routed: Some(routed),
        turn: job.turn.clone(),
        attempt_min: 1,
    })
}
