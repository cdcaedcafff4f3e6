//! Hands silent replies to another worker through the retry topic.

use futures::future::select_ok;
use switchboard_schemas::{
    conversation_job::{ReplyJob, TeamRouting},
    topics::Topic,
};

use super::publish::{TurnJob, publish_record};
use crate::state::AppState;

/// Records of one takeover. Their keys differ, so that they reach several partitions: those of a
/// dead worker are not read until its session expires. The claim lets one record run.
const TAKEOVER_RECORDS: u32 = 4;

/// Publishes `job` to the retry topic for a worker with an attempt of at least `attempt_min`, and
/// returns when the first record is durable.
///
/// The original record stays, and the claim decides which worker answers. Returns false if no
/// record was acknowledged, or for a team message without a routing decision, which no worker can
/// answer yet.
pub(crate) async fn publish_takeover(state: &AppState, job: &TurnJob, attempt_min: u32) -> bool {
    let Some(reply_job) = reply_job(state, job).await else {
        return false;
    };
    let record = job.wrap_reply_job(ReplyJob {
        attempt_min,
        ..reply_job
    });
    let (message, request_id) = (job.turn().reply_id(), &job.turn().request_id);
    tracing::info!(message.id = %message, attempt = attempt_min, "silent reply handed to another worker");
    state.metrics.takeovers.inc();
    let (record, conversation) = (&record, record.conversation_id());
    let publishes = (0..TAKEOVER_RECORDS).map(|number| {
        let key = format!("{conversation}/{number}");
        Box::pin(
            async move { publish_record(state, Topic::JobsRetry, &key, record, request_id).await },
        )
    });
    // The other records are on their way, too: dropping a publish does not withdraw its record.
    select_ok(publishes).await.is_ok()
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
