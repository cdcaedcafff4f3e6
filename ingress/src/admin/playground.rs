//! Playground runs: an editor's message to an agent or a team, saved or as a draft.
//!
//! A run passes through bus, workers and relay like a visitor's message, so that its reply is the
//! one that visitors would get. Nothing is stored, listed or counted; the request contains the
//! earlier messages.

use std::{collections::HashMap, time::Duration};

use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, json};
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    relay::PLAYGROUND_RUN_BYTES_MAX,
};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent, OnDisconnect},
    client_text::SessionId,
    conversation_job::ReplyJob,
    ids::{AgentId, ConversationId, MessageId, RequestId},
    playground::{
        AgentPlaygroundRun, PlaygroundRouting, RoutedAgent, TeamPlaygroundJob, TeamPlaygroundRun,
    },
    routing::RoutingStage,
    team::Team,
    time::Timestamp,
    turn::{MessageSource, Turn, Visitor},
};
use utoipa::ToSchema;

use super::{
    authorization::{Admin, ResourceId},
    bodies::JsonBody,
    edits::drafted,
    entries::other_kind,
    permissions::Configure,
    playground_requests::{PlaygroundRunRequest, utterances},
    resources::{agents::AgentResource, resource::Resource, teams::TeamResource},
    responses::EventStream,
};
use crate::{
    chat::pipeline::{ChatSubmission, submit_and_respond},
    files::references::{find_known_files, find_playground_files},
    http::{ApiError, ApiResult, ArrivedAt, ErrorCode},
    jobs::publish::{TurnJob, publish_team_playground},
    reply::{ResponseContext, shape::ReplyShape},
    state::AppState,
};

/// The longest wait for a team's decision, which may take a call of a model.
const DECISION_TIMEOUT: Duration = Duration::from_secs(20);

/// A team's decision in a playground run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlaygroundRoutingView {
    /// The agent that would reply; `null` if no member can.
    #[schema(required)]
    agent: Option<AgentReference>,
    /// The reason of the decision.
    reason: String,
    /// The stage of routing that made the decision; `null` for other strategies than `intent`.
    #[schema(required)]
    stage: Option<RoutingStage>,
    /// The time that routing took, in milliseconds.
    #[schema(required)]
    took_ms: Option<u64>,
    /// The members of the team.
    members: Vec<PlaygroundMemberView>,
}

/// A member of a team in a playground run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PlaygroundMemberView {
    /// The agent.
    agent: AgentReference,
    /// The subjects of the agent.
    specialization: String,
    /// `true` if visitors can reach the agent; routing skips other agents.
    can_answer: bool,
    /// The score of the member, in thousandths.
    #[schema(required)]
    permille: Option<u16>,
}

/// A reference to an agent; its slug and name are `null` if it no longer exists.
#[derive(Serialize, ToSchema)]
struct AgentReference {
    /// The id of the agent.
    id: AgentId,
    /// The slug of the agent.
    #[schema(required)]
    slug: Option<String>,
    /// The name that visitors see.
    #[schema(required)]
    name: Option<String>,
}

/// Sends a message to an agent or its draft and streams the reply.
pub(super) async fn try_agent(
    admin: Admin<Configure>,
    ResourceId(id): ResourceId,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    body: JsonBody<PlaygroundRunRequest>,
) -> ApiResult<EventStream> {
    let (request, drafted) = parse_and_draft::<AgentResource>(&admin, &id, body).await?;
    let (state, CatalogEntry::Agent(agent)) = (admin.state, drafted) else {
        return Err(other_kind(EntryKind::Agent));
    };
    let org = &agent.org_id;
    let attachments = find_playground_files(&state, org, &request.files()).await?;
    let known = find_known_files(&state, org, &request.earlier_files()).await?;
    let past = utterances(request.history, Some(&agent.id), &known)?;
    let turn = Turn {
        attachments: attachments.clone(),
        ..new_turn(&state, &agent, request.message, request_id.clone())?
    };
    let agent_id = agent.id.clone();
    let run = AgentPlaygroundRun {
        agent: *agent,
        past,
    };
    store_run(&state, &turn.message_id, &run).await?;
    let job = TurnJob::Playground(ReplyJob {
        agent_id,
        routed: None,
        turn,
        attempt_min: 1,
    });
    let submission = ChatSubmission {
        job,
        attachments: Ok(attachments),
        idempotency_key: None,
        shape: ReplyShape::Events,
        // A run is not stored, so that its reply is useless after the page was closed.
        on_disconnect: OnDisconnect::Cancel,
        context: ResponseContext {
            attachments: Vec::new(),
            request_id,
            arrived,
            map_error: ApiError::reveal_provider_error,
        },
    };
    submit_and_respond(state, submission).await.map(EventStream)
}

/// Routes a message by a team or its draft and returns the decision.
pub(super) async fn try_team(
    admin: Admin<Configure>,
    ResourceId(id): ResourceId,
    Extension(request_id): Extension<RequestId>,
    body: JsonBody<PlaygroundRunRequest>,
) -> ApiResult<Json<PlaygroundRoutingView>> {
    let (request, drafted) = parse_and_draft::<TeamResource>(&admin, &id, body).await?;
    let (state, CatalogEntry::Team(team)) = (&admin.state, drafted) else {
        return Err(other_kind(EntryKind::Team));
    };
    let past = utterances(request.history, None, &HashMap::new())?;
    let session = session_of(&request_id)?;
    let conversation = ConversationId::of_team(&team.org_id, &team.id, &session);
    let run_id = MessageId::new_in(&conversation);
    let run = TeamPlaygroundRun {
        team,
        message: request.message,
        past,
    };
    store_run(state, &run_id, &run).await?;
    let mut slot = state
        .pending_replies
        .wait_for_playground_run(run_id.clone());
    let job = TeamPlaygroundJob {
        run_id,
        org_id: run.team.org_id.clone(),
        request_id,
        reply_to: state.ingress_id.clone(),
    };
    publish_team_playground(state, &job).await?;
    let chosen = match tokio::time::timeout(DECISION_TIMEOUT, slot.outcome()).await {
        Ok(Some(PlaygroundRouting::Agent(chosen))) => Some(*chosen),
        Ok(Some(PlaygroundRouting::NoAgent)) => None,
        Ok(Some(PlaygroundRouting::Expired) | None) | Err(_) => {
            return Err(ApiError::unavailable("no agent was chosen in time"));
        }
    };
    let catalog = &state.apply.catalog;
    let entries = catalog.list(EntryKind::Agent, Some(admin.org())).await?;
    let agents = entries.into_iter().filter_map(|entry| match entry {
        CatalogEntry::Agent(agent) => Some((agent.id.clone(), *agent)),
        _ => None,
    });
    let view = PlaygroundRoutingView::new(&run.team, chosen, &agents.collect());
    Ok(Json(view))
}

/// Checks the rate limit of a run, parses its body and returns it with the resource, changed by the
/// draft.
async fn parse_and_draft<R: Resource>(
    admin: &Admin<Configure>,
    id: &str,
    body: JsonBody<PlaygroundRunRequest>,
) -> ApiResult<(PlaygroundRunRequest, CatalogEntry)> {
    let (state, subject) = (&admin.state, admin.administrator.rate_limit_subject());
    state.limits.admit_playground_run(subject).await?;
    let mut request = body.parse(state).await?;
    let entry = drafted::<R>(state, admin.org(), id, request.draft.take()).await?;
    Ok((request, entry))
}

/// Stores the input of a run in the relay, from which its worker reads it.
async fn store_run(state: &AppState, run_id: &MessageId, input: &impl Serialize) -> ApiResult<()> {
    let text = serde_json::to_string(input).map_err(|error| ApiError::internal(&error))?;
    if text.len() > PLAYGROUND_RUN_BYTES_MAX {
        let detail = format!(
            "the draft and its history are larger than the {PLAYGROUND_RUN_BYTES_MAX} bytes of a test"
        );
        let details = json!({ "max": PLAYGROUND_RUN_BYTES_MAX });
        return Err(ApiError::new(ErrorCode::PayloadTooLarge, detail).details(details));
    }
    let stored = state.backends.relay.put_playground_run(run_id, &text).await;
    stored.map_err(|error| {
        tracing::warn!(%error, "input of a playground run not stored");
        ApiError::unavailable("drafts cannot be tried at the moment")
    })
}

/// Returns a session that only this run belongs to.
fn session_of(request_id: &RequestId) -> ApiResult<SessionId> {
    format!("try-{request_id}")
        .parse()
        .map_err(|_| ApiError::internal(&"a request id is no session id"))
}

fn new_turn(
    state: &AppState,
    agent: &Agent,
    message: String,
    request_id: RequestId,
) -> ApiResult<Turn> {
    let session_id = session_of(&request_id)?;
    let conversation_id = ConversationId::of_agent(&agent.org_id, &agent.id, &session_id);
    Ok(Turn {
        org_id: agent.org_id.clone(),
        message_id: MessageId::new_in(&conversation_id),
        conversation_id,
        request_id,
        key_id: None,
        session_id,
        content: message,
        attachments: Vec::new(),
        visitor: Visitor::default(),
        metadata: Map::new(),
        source: MessageSource::Api,
        ip_address: None,
        accepted_at: Timestamp::now(),
        reply_to: Some(state.ingress_id.clone()),
        publish_nonce: RequestId::random().as_str().to_owned(),
    })
}

impl PlaygroundRoutingView {
    fn new(team: &Team, chosen: Option<RoutedAgent>, agents: &HashMap<AgentId, Agent>) -> Self {
        let facts = chosen.as_ref().and_then(|chosen| chosen.facts.as_ref());
        let members = team.members.iter().map(|member| {
            let mut scores = facts.into_iter().flat_map(|facts| &facts.scores);
            let score = scores.find(|score| score.agent_id == member.agent);
            PlaygroundMemberView {
                agent: AgentReference::new(&member.agent, agents),
                specialization: member.specialization.clone(),
                can_answer: agents.get(&member.agent).is_some_and(can_answer),
                permille: score.map(|score| score.permille),
            }
        });
        let agent = chosen.as_ref().map(|chosen| &chosen.agent_id);
        Self {
            members: members.collect(),
            stage: facts.map(|facts| facts.stage),
            took_ms: facts.map(|facts| facts.took_ms),
            agent: agent.map(|agent| AgentReference::new(agent, agents)),
            reason: chosen.map_or_else(|| "no member of the team can reply".into(), |it| it.reason),
        }
    }
}

impl AgentReference {
    fn new(id: &AgentId, agents: &HashMap<AgentId, Agent>) -> Self {
        let agent = agents.get(id);
        Self {
            id: id.clone(),
            slug: agent.map(|agent| agent.slug.clone()),
            name: agent.map(|agent| agent.name.clone()),
        }
    }
}

fn can_answer(agent: &Agent) -> bool {
    agent.settings.public && agent.settings.status == ActivationStatus::Active
}
