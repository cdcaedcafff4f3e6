//! `POST /api/public/agents/{agentId}/chat`: a message in, a streamed reply out.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use http::request::Parts;
use switchboard_schemas::{agent::OnDisconnect, conversation::ConversationOwner, ids::RequestId};

use crate::{
    body::{self, BodyLimits},
    client_address::{PeerAddress, client_address, kept},
    error::ApiResult,
    observe::ArrivedAt,
    publish::publish_answer,
    reachable::{AgentChat, ReachableAgent},
    reply::{Asked, acceptance::accept, follower::Follower, respond, shape::ReplyShape},
    state::AppState,
    turn::{ChatBody, TurnContext},
};

/// Serves the route.
pub(crate) async fn post(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    ReachableAgent { caller, agent, .. }: ReachableAgent<AgentChat>,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let body = body::parse_object(&body)?;
    let chat = ChatBody::parse(&body, agent.settings.limits.max_message_length)?;
    state.limits.admit_visitor(&agent, chat.sender(), caller.limits_told()).await?;
    let shape = ReplyShape::chosen(&parts.headers, &body)?;
    let job = chat.into_agent_job(&caller, &agent, turn_context(&state, request_id.clone(), shape, &parts));
    // Before the publish: a worker can be faster than the bus's acknowledgement.
    let slot = state.registry.wait_for_reply(job.turn.reply_id());
    let owner = ConversationOwner::Agent(agent.id.clone());
    accept(&state, shape, &job.turn, owner, publish_answer(&state, &job)).await?;
    let on_disconnect = if shape.waits() { agent.settings.on_disconnect } else { OnDisconnect::Continue };
    let follower = Follower::new(state, job, slot).on_disconnect(on_disconnect);
    respond(follower, shape, Asked { request_id, arrived }).await
}

fn turn_context(state: &AppState, request_id: RequestId, shape: ReplyShape, parts: &Parts) -> TurnContext {
    let peer = parts.extensions.get::<PeerAddress>();
    let address = peer.map(|peer| client_address(peer.0, &parts.headers, &state.config.trusted_proxies));
    let reply_to = shape.waits().then(|| state.ingress_id.clone());
    TurnContext { request_id, reply_to, ip_address: address.map(kept) }
}
