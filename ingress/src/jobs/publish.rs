//! Publishes jobs to the bus, and voids publishes that were rejected.

use std::time::Duration;

use switchboard_backends::bus::{OutgoingRecord, trace::TraceContext};
use switchboard_schemas::{
    conversation::ConversationOwner,
    conversation_job::{ConversationJob, ReplyJob},
    ids::{AgentId, RequestId},
    playground::TeamPlaygroundJob,
    routing_job::TeamMessageJob,
    topics::Topic,
    turn::Turn,
    versioned::{self, TopicRecord},
};

use crate::{
    http::{ApiError, ApiResult},
    state::{AppState, refused_publishes},
};

/// Grace period beyond the publish timeout before a publish counts as failed.
const PUBLISH_GRACE: Duration = Duration::from_millis(500);

/// The job of an accepted message, by the kind of its recipient.
#[derive(Clone)]
pub(crate) enum TurnJob {
    Agent(ReplyJob),
    /// Playground run of an agent's draft.
    Playground(ReplyJob),
    /// Sent to a team; a routing worker chooses the agent.
    Team(TeamMessageJob),
}

impl TurnJob {
    pub(crate) const fn turn(&self) -> &Turn {
        match self {
            Self::Agent(job) | Self::Playground(job) => &job.turn,
            Self::Team(job) => &job.turn,
        }
    }

    /// Returns the addressed agent, or `None` for a team.
    pub(crate) const fn agent_id(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(job) | Self::Playground(job) => Some(&job.agent_id),
            Self::Team(_) => None,
        }
    }

    pub(crate) fn owner(&self) -> ConversationOwner {
        match self {
            Self::Agent(job) | Self::Playground(job) => {
                ConversationOwner::Agent(job.agent_id.clone())
            }
            Self::Team(job) => ConversationOwner::Team(job.team_id.clone()),
        }
    }

    /// Wraps `answer` in the record that an inference worker consumes.
    pub(crate) fn wrap_reply_job(&self, answer: ReplyJob) -> ConversationJob {
        match self {
            Self::Playground(_) => ConversationJob::Playground(Box::new(answer)),
            Self::Agent(_) | Self::Team(_) => ConversationJob::Reply(Box::new(answer)),
        }
    }

    /// Returns true for playground runs, of which nothing is stored.
    pub(crate) const fn is_playground(&self) -> bool {
        matches!(self, Self::Playground(_))
    }

    /// Returns the turn for changing its message id.
    pub(crate) const fn turn_mut(&mut self) -> &mut Turn {
        match self {
            Self::Agent(job) | Self::Playground(job) => &mut job.turn,
            Self::Team(job) => &mut job.turn,
        }
    }
}

/// Publishes the job of a message. After `Ok` the message is durable; after an error the caller
/// must [`void_publish`] it.
pub(crate) async fn publish_turn(state: &AppState, job: &TurnJob) -> ApiResult<()> {
    match job {
        TurnJob::Agent(answer) | TurnJob::Playground(answer) => {
            publish_job(
                state,
                &job.wrap_reply_job(answer.clone()),
                &answer.turn.request_id,
            )
            .await
        }
        TurnJob::Team(chat) => {
            publish_record(
                state,
                Topic::Route,
                chat.turn.conversation_id.as_str(),
                chat,
                &chat.turn.request_id,
            )
            .await
        }
    }
}

/// Publishes a playground run that asks which member of a team would answer.
pub(crate) async fn publish_team_playground(
    state: &AppState,
    job: &TeamPlaygroundJob,
) -> ApiResult<()> {
    publish_record(
        state,
        Topic::Route,
        job.run_id.conversation().as_str(),
        job,
        &job.request_id,
    )
    .await
}

/// Publishes a job of a conversation, keyed by its id.
pub(crate) async fn publish_job(
    state: &AppState,
    job: &ConversationJob,
    request_id: &RequestId,
) -> ApiResult<()> {
    publish_record(
        state,
        Topic::Jobs,
        job.conversation_id().as_str(),
        job,
        request_id,
    )
    .await
}

/// Publishes a record with a key. Returns once it is durable.
pub(super) async fn publish_record(
    state: &AppState,
    topic: Topic,
    key: &str,
    job: &impl TopicRecord,
    request_id: &RequestId,
) -> ApiResult<()> {
    let payload = versioned::encode(job)
        .map_err(|error| ApiError::internal(&error))?
        .into();
    let mut headers = vec![("request-id".to_owned(), request_id.as_str().to_owned())];
    headers.extend(TraceContext::current().to_headers());
    let record = OutgoingRecord {
        topic,
        key: key.to_owned(),
        payload,
        headers,
    };
    let timeout = state.config.publish_timeout();
    // The bus enforces its own timeout; this one guards against a bus that does not.
    match tokio::time::timeout(
        timeout + PUBLISH_GRACE,
        state.backends.bus.publish(record, timeout),
    )
    .await
    {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(publish_failed(state, &error)),
        Err(error) => Err(publish_failed(state, &error)),
    }
}

fn publish_failed(state: &AppState, error: &dyn std::fmt::Display) -> ApiError {
    state.metrics.publishes_failed.inc();
    tracing::warn!(%error, "publish not acknowledged");
    ApiError::unavailable("the message could not be accepted")
}

/// Voids a rejected message and frees its queue slot. Its record may still arrive later although
/// the client received an error, so that it is voided again until then.
pub(crate) async fn void_publish(state: &AppState, turn: &Turn) {
    state.refused_publishes.add(turn);
    if !refused_publishes::void_once(state, &turn.reply_id(), &turn.publish_nonce).await {
        tracing::warn!(message.id = %turn.message_id, "rejected message not voided");
    }
}
