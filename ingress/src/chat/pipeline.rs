//! The pipeline of agent chat and team chat: validate, limit, submit, respond. Playground runs
//! share the last two steps.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use serde_json::Value;
use switchboard_schemas::{
    agent::{Agent, AgentLimits, OnDisconnect},
    file::Attachment,
    ids::{FileId, RequestId},
    lead::LeadForm,
    team::Team,
};
use tokio::time::Instant;

use super::{
    bodies::{ChatRequest, TeamChatRequest},
    idempotency::IdempotencyKey,
    request::{ChatBody, TurnContext},
    submission::submit_message,
};
use crate::{
    auth::caller::AuthorizedCaller,
    files::references::{NamingMessage, find_files},
    http::{
        ApiError, ApiResult, RateLimitAddress,
        body::{self, BodyLimits},
    },
    jobs::publish::TurnJob,
    reply::{ResponseContext, respond, shape::ReplyShape},
    state::AppState,
};

/// The agent or team that a public message is sent to.
pub(crate) enum ChatRecipient {
    /// An agent, which replies itself.
    Agent(Arc<Agent>),
    /// A team, of which routing chooses the agent that replies.
    Team(Arc<Team>),
}

/// A public chat request whose caller was authenticated.
pub(crate) struct IncomingChat {
    /// The request with its unread body.
    pub(crate) request: Request,
    pub(crate) request_id: RequestId,
    /// Arrival time of the request.
    pub(crate) arrived: Instant,
    /// Subject of the per-address rate limit of widget chats.
    pub(crate) address: RateLimitAddress,
    /// Rewrites errors for the route, also those that are sent inside a stream.
    pub(crate) map_error: fn(ApiError) -> ApiError,
}

/// A job to submit, and the way to deliver its reply.
pub(crate) struct ChatSubmission {
    pub(crate) job: TurnJob,
    /// The files that the message names, or the reason why it cannot.
    pub(crate) attachments: ApiResult<Vec<Attachment>>,
    /// The idempotency key of the request, if it has one.
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) shape: ReplyShape,
    /// Effect of a disconnected client on the reply.
    pub(crate) on_disconnect: OnDisconnect,
    /// Request data that the response needs.
    pub(crate) context: ResponseContext,
}

/// Validates, limits and submits a public message, and responds with its reply.
///
/// The order of the checks is part of the API contract: body, fields, format, rate limits,
/// idempotency key.
pub(crate) async fn handle_chat<P>(
    state: AppState,
    caller: &AuthorizedCaller<P>,
    recipient: ChatRecipient,
    incoming: IncomingChat,
) -> ApiResult<Response> {
    let (parts, body) = incoming.request.into_parts();
    let body = body::read_body(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let limits = recipient.message_limits(&state).await?;
    let (body, conversation_id) = recipient.parse_body(&body)?;
    let chat = ChatBody::parse(&body, &conversation_id, limits.max_message_length)?;
    let chat = chat.with_lead(&body.lead, recipient.lead_form())?;
    let chat = chat.sent_by(caller)?;
    let shape = ReplyShape::from_request(&parts.headers, &body.stream)?;
    let (quota_headers, subject) = (caller.rate_limit_headers(), chat.rate_limit_subject());
    state
        .limits
        .admit_visitor(
            recipient.id(),
            limits.rate_limit_per_minute,
            subject,
            quota_headers,
        )
        .await?;
    if let (ChatRecipient::Agent(agent), Some(_)) = (&recipient, caller.visitor_id()) {
        let sites = &state.limits.sites;
        sites
            .admit_chat(&agent.id, &incoming.address, quota_headers)
            .await?;
    }
    let idempotency_key =
        IdempotencyKey::from_request(&parts.headers, caller, recipient.id(), &chat)?;
    let context = TurnContext::from_request(&state, incoming.request_id.clone(), shape, &parts);
    let files = chat.files().to_owned();
    let job = recipient.build_job(chat, caller, context)?;
    let submission = ChatSubmission {
        attachments: find_attachments(&state, caller, &job, &files).await,
        job,
        idempotency_key,
        shape,
        on_disconnect: recipient.on_disconnect(),
        context: ResponseContext {
            attachments: Vec::new(),
            request_id: incoming.request_id,
            arrived: incoming.arrived,
            map_error: incoming.map_error,
        },
    };
    submit_and_respond(state, submission).await
}

async fn find_attachments<P>(
    state: &AppState,
    caller: &AuthorizedCaller<P>,
    job: &TurnJob,
    files: &[FileId],
) -> ApiResult<Vec<Attachment>> {
    let turn = job.turn();
    let message = NamingMessage {
        org_id: &turn.org_id,
        owner: &job.owner(),
        conversation_id: &turn.conversation_id,
        session_id: &turn.session_id,
        visitor_id: caller.visitor_id(),
    };
    find_files(state, &message, files).await
}

/// Submits a message and responds with its reply.
pub(crate) async fn submit_and_respond(
    state: AppState,
    submission: ChatSubmission,
) -> ApiResult<Response> {
    let ChatSubmission {
        job,
        attachments,
        idempotency_key,
        shape,
        on_disconnect,
        mut context,
    } = submission;
    if let Ok(attachments) = &attachments {
        context.attachments.clone_from(attachments);
    }
    let submitted = submit_message(state, shape, job, attachments, idempotency_key);
    let mut reply_stream = submitted.await?;
    if shape.waits_for_reply() {
        reply_stream = reply_stream.on_disconnect(on_disconnect);
    }
    respond(reply_stream, shape, context).await
}

impl ChatRecipient {
    fn lead_form(&self) -> Option<&LeadForm> {
        match self {
            Self::Agent(agent) => agent.settings.active_lead_form(),
            Self::Team(_) => None,
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.id.as_str(),
            Self::Team(team) => team.id.as_str(),
        }
    }

    /// Parses a body into its fields and the `conversationId` that only teams accept.
    fn parse_body(&self, body: &[u8]) -> ApiResult<(ChatRequest, Value)> {
        match self {
            Self::Agent(_) => Ok((body::parse_body(body)?, Value::Null)),
            Self::Team(_) => Ok(body::parse_body::<TeamChatRequest>(body)?.into_parts()),
        }
    }

    /// Returns the limits of the agent, or the strictest limits of all agents of the team, because
    /// the agent is not chosen yet.
    async fn message_limits(&self, state: &AppState) -> ApiResult<AgentLimits> {
        let team = match self {
            Self::Agent(agent) => return Ok(agent.settings.limits.clone()),
            Self::Team(team) => team,
        };
        let mut strictest = AgentLimits {
            max_message_length: u32::MAX,
            rate_limit_per_minute: u32::MAX,
        };
        let members = team.members.iter().map(|member| &member.agent);
        for id in members.chain(&team.default_agent) {
            if let Some(agent) = state.catalog.agent(id).await? {
                let limits = &agent.settings.limits;
                strictest.max_message_length =
                    strictest.max_message_length.min(limits.max_message_length);
                strictest.rate_limit_per_minute = strictest
                    .rate_limit_per_minute
                    .min(limits.rate_limit_per_minute);
            }
        }
        Ok(strictest)
    }

    fn on_disconnect(&self) -> OnDisconnect {
        match self {
            Self::Agent(agent) => agent.settings.on_disconnect,
            Self::Team(_) => OnDisconnect::Continue,
        }
    }

    fn build_job<P>(
        &self,
        chat: ChatBody,
        caller: &AuthorizedCaller<P>,
        context: TurnContext,
    ) -> ApiResult<TurnJob> {
        Ok(match self {
            Self::Agent(agent) => TurnJob::Agent(chat.into_agent_job(caller, agent, context)),
            Self::Team(team) => TurnJob::Team(chat.into_team_job(caller, team, context)?),
        })
    }
}
