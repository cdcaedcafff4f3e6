//! Step 4 of the path: a job goes onto the bus, or is taken back.

use std::time::Duration;

use switchboard_backends::bus::OutgoingRecord;
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
    error::{ApiError, ApiResult},
    state::AppState,
    trace_context::inject_trace,
};

/// How much longer than its timeout a publish may take before it counts as not acknowledged.
const PUBLISH_GRACE: Duration = Duration::from_millis(500);
/// How long the relay may take to note that a publish is void; the client already waits for its refusal.
const VOID_TIMEOUT: Duration = Duration::from_millis(500);

/// An accepted message on its way to whoever answers it.
#[derive(Clone)]
pub(crate) enum TurnJob {
    /// An agent was addressed.
    Agent(ReplyJob),
    /// An agent's draft is tried.
    Trial(ReplyJob),
    /// A team was addressed: who answers is decided behind the bus.
    Team(TeamMessageJob),
}

impl TurnJob {
    /// The message.
    pub(crate) const fn turn(&self) -> &Turn {
        match self {
            Self::Agent(job) | Self::Trial(job) => &job.turn,
            Self::Team(job) => &job.turn,
        }
    }

    /// The agent that was addressed; none for a team's message.
    pub(crate) const fn agent_id(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(job) | Self::Trial(job) => Some(&job.agent_id),
            Self::Team(_) => None,
        }
    }

    /// Whom the message was sent to.
    pub(crate) fn owner(&self) -> ConversationOwner {
        match self {
            Self::Agent(job) | Self::Trial(job) => ConversationOwner::Agent(job.agent_id.clone()),
            Self::Team(job) => ConversationOwner::Team(job.team_id.clone()),
        }
    }

    /// The record that has `answer` worked on by an inference worker.
    pub(crate) fn record(&self, answer: ReplyJob) -> ConversationJob {
        match self {
            Self::Trial(_) => ConversationJob::Playground(Box::new(answer)),
            Self::Agent(_) | Self::Team(_) => ConversationJob::Reply(Box::new(answer)),
        }
    }

    /// The message, to be named anew.
    pub(crate) const fn turn_mut(&mut self) -> &mut Turn {
        match self {
            Self::Agent(job) | Self::Trial(job) => &mut job.turn,
            Self::Team(job) => &mut job.turn,
        }
    }
}

/// Publishes the job of a message; once this returns `Ok`, the message is answered whatever dies. What is refused is to
/// be voided ([`void`]).
pub(crate) async fn publish_turn(state: &AppState, job: &TurnJob) -> ApiResult<()> {
    match job {
        TurnJob::Agent(answer) | TurnJob::Trial(answer) => {
            publish(
                state,
                Topic::Jobs,
                &job.record(answer.clone()),
                &answer.turn.request_id,
            )
            .await
        }
        TurnJob::Team(chat) => {
            send(
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

/// Asks who of a team would answer.
pub(crate) async fn publish_team_trial(state: &AppState, job: &TeamPlaygroundJob) -> ApiResult<()> {
    send(
        state,
        Topic::Route,
        job.run_id.conversation().as_str(),
        job,
        &job.request_id,
    )
    .await
}

/// Publishes a record of a conversation.
pub(crate) async fn publish(
    state: &AppState,
    topic: Topic,
    job: &ConversationJob,
    request_id: &RequestId,
) -> ApiResult<()> {
    send(
        state,
        topic,
        job.conversation_id().as_str(),
        job,
        request_id,
    )
    .await
}

async fn send(
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
    inject_trace(&mut headers);
    let record = OutgoingRecord {
        topic,
        key: key.to_owned(),
        payload,
        headers,
    };
    let timeout = state.config.publish_timeout();
    // The bus keeps its own time; ours is for one that does not.
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

/// Takes a refused message back, with its place in the queue. Its record may still arrive later, and its client has been
/// told that it was not accepted.
pub(crate) async fn void(state: &AppState, turn: &Turn) {
    let reply = turn.reply_id();
    let void = state.backends.relay.void(&reply, &turn.publish_nonce);
    if !matches!(tokio::time::timeout(VOID_TIMEOUT, void).await, Ok(Ok(()))) {
        tracing::warn!(message.id = %turn.message_id, "refused message could not be voided");
    }
}
