//! `POST /api/admin/organizations/{org}/agents|teams/{id}/try`: what a draft would answer, and who of a team would.
//!
//! A trial goes through bus, workers and relay like a visitor's message, so that what is seen here is what visitors get. It
//! belongs to a conversation that exists nowhere else: nothing of it is stored, listed, or told to analytics, and so what
//! was said before comes with each request.

use std::{convert::identity, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, Request, State},
    response::Response,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    relay::PLAYGROUND_RUN_BYTES_MAX,
};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent, OnDisconnect},
    client_text::SessionId,
    conversation_job::ReplyJob,
    ids::{AgentId, ConversationId, MessageId, RequestId},
    organization::Organization,
    playground::{
        AgentPlaygroundRun, PlaygroundRouting, RoutedAgent, TeamPlaygroundJob, TeamPlaygroundRun,
    },
    routing::MemberScore,
    team::Team,
    time::Timestamp,
    turn::{MessageSource, Turn, Visitor},
};

use super::{
    administrator::{Action, Administrator},
    change::drafted,
    things::{organization, read_fields},
    trial_request::TrialRequest,
};
use crate::{
    http::{ApiError, ApiResult, ArrivedAt, ErrorCode},
    jobs::publish::{TurnJob, publish_team_trial, publish_turn, void},
    reply::{ResponseContext, respond, shape::ReplyShape, stream::ReplyStream},
    state::AppState,
};

/// How long a team's verdict may take: a model may be asked for a second opinion.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(20);

/// Streams what the agent would answer, as events.
pub(super) async fn agent(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::Configure).await?;
    state.limits.admit_trial(administrator.counted_as()).await?;
    let (_, fields) = read_fields(&state, request).await?;
    let asked = TrialRequest::read(fields)?;
    let CatalogEntry::Agent(agent) =
        drafted(&state, &organization, (EntryKind::Agent, &id), asked.draft).await?
    else {
        return Err(ApiError::internal(&"the draft of an agent is none"));
    };
    let turn = turn_of(&state, &agent, asked.message, request_id.clone())?;
    let past = asked.past.said_by(Some(&agent.id))?;
    let agent_id = agent.id.clone();
    keep(
        &state,
        &turn.message_id,
        &AgentPlaygroundRun {
            agent: *agent,
            past,
        },
    )
    .await?;
    let slot = state.pending_replies.wait_for_reply(turn.reply_id());
    let job = TurnJob::Trial(ReplyJob {
        agent_id,
        routed: None,
        turn,
        attempt_min: 1,
    });
    if let Err(error) = publish_turn(&state, &job).await {
        void(&state, job.turn()).await;
        return Err(error);
    }
    // Whoever closes the page has seen enough: no model need go on.
    let follower = ReplyStream::new(state, job, slot).on_disconnect(OnDisconnect::Cancel);
    respond(
        follower,
        ReplyShape::Events,
        ResponseContext {
            request_id,
            arrived,
            told: identity,
        },
    )
    .await
}

/// Says who of the team would answer, and why.
pub(super) async fn team(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Json<Value>> {
    let organization = organization(&state, &administrator, &org, Action::Configure).await?;
    state.limits.admit_trial(administrator.counted_as()).await?;
    let (_, fields) = read_fields(&state, request).await?;
    let asked = TrialRequest::read(fields)?;
    let CatalogEntry::Team(team) =
        drafted(&state, &organization, (EntryKind::Team, &id), asked.draft).await?
    else {
        return Err(ApiError::internal(&"the draft of a team is none"));
    };
    let past = asked.past.said_by(None)?;
    let conversation = ConversationId::of_team(&team.org_id, &team.id, &session_of(&request_id)?);
    let run_id = MessageId::new_in(&conversation);
    keep(
        &state,
        &run_id,
        &TeamPlaygroundRun {
            team: team.clone(),
            message: asked.message,
            past,
        },
    )
    .await?;
    let mut slot = state.pending_replies.wait_for_trial(run_id.clone());
    let reply_to = state.ingress_id.clone();
    let job = TeamPlaygroundJob {
        run_id,
        org_id: team.org_id.clone(),
        request_id,
        reply_to,
    };
    publish_team_trial(&state, &job).await?;
    match tokio::time::timeout(VERDICT_TIMEOUT, slot.verdict()).await {
        Ok(Some(PlaygroundRouting::Agent(chosen))) => {
            told(&state, &organization, &team, Some(*chosen)).await
        }
        Ok(Some(PlaygroundRouting::NoAgent)) => told(&state, &organization, &team, None).await,
        Ok(Some(PlaygroundRouting::Expired) | None) | Err(_) => Err(ApiError::unavailable(
            "nobody decided in time who would answer",
        )),
    }
}

/// Keeps what a trial runs on where its worker finds it.
async fn keep(state: &AppState, trial: &MessageId, runs_on: &impl Serialize) -> ApiResult<()> {
    let text = serde_json::to_string(runs_on).map_err(|error| ApiError::internal(&error))?;
    if text.len() > PLAYGROUND_RUN_BYTES_MAX {
        let details = json!({ "max": PLAYGROUND_RUN_BYTES_MAX });
        return Err(ApiError::new(
            ErrorCode::PayloadTooLarge,
            "the draft is too large to be tried",
        )
        .details(details));
    }
    state
        .backends
        .relay
        .keep_trial(trial, &text)
        .await
        .map_err(|error| {
            tracing::warn!(%error, "a trial could not be kept");
            ApiError::unavailable("nothing can be tried at the moment")
        })
}

/// A session that nobody else's message can be in.
fn session_of(request_id: &RequestId) -> ApiResult<SessionId> {
    format!("try-{request_id}")
        .parse()
        .map_err(|_| ApiError::internal(&"a request's id makes no session"))
}

fn turn_of(
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
        visitor: Visitor::default(),
        metadata: Map::new(),
        source: MessageSource::Api,
        ip_address: None,
        accepted_at: Timestamp::now(),
        reply_to: Some(state.ingress_id.clone()),
        publish_nonce: RequestId::random().as_str().to_owned(),
    })
}

/// The verdict with the names of those that it speaks of.
async fn told(
    state: &AppState,
    organization: &Organization,
    team: &Team,
    chosen: Option<RoutedAgent>,
) -> ApiResult<Json<Value>> {
    let entries = state
        .apply
        .catalog
        .list(EntryKind::Agent, Some(&organization.id))
        .await?;
    let agents: Vec<_> = entries.into_iter().filter_map(agent_in).collect();
    let facts = chosen.as_ref().and_then(|chosen| chosen.facts.as_ref());
    let scores = facts
        .map(|facts| facts.scores.as_slice())
        .unwrap_or_default();
    let members: Vec<_> = team
        .members
        .iter()
        .map(|member| {
            let agent = agents.iter().find(|agent| agent.id == member.agent);
            json!({
                "agent": name_of(agent, &member.agent),
                "specialization": member.specialization,
                "canAnswer": agent.is_some_and(can_answer),
                "permille": score_of(scores, &member.agent),
            })
        })
        .collect();
    let agent = chosen.as_ref().map(|chosen| {
        let agent = agents.iter().find(|agent| agent.id == chosen.agent_id);
        name_of(agent, &chosen.agent_id)
    });
    Ok(Json(json!({
        "agent": agent,
        "reason": chosen.as_ref().map_or("nobody of the team can answer", |chosen| chosen.reason.as_str()),
        "stage": facts.map(|facts| facts.stage),
        "tookMs": facts.map(|facts| facts.took_ms),
        "members": members,
    })))
}

fn agent_in(entry: CatalogEntry) -> Option<Agent> {
    match entry {
        CatalogEntry::Agent(agent) => Some(*agent),
        _ => None,
    }
}

fn name_of(agent: Option<&Agent>, id: &AgentId) -> Value {
    json!({ "id": id, "slug": agent.map(|agent| &agent.slug), "name": agent.map(|agent| &agent.name) })
}

/// Routing leaves out whom visitors do not reach.
fn can_answer(agent: &Agent) -> bool {
    agent.settings.public && agent.settings.status == ActivationStatus::Active
}

fn score_of(scores: &[MemberScore], agent: &AgentId) -> Option<u16> {
    scores
        .iter()
        .find(|score| score.agent_id == *agent)
        .map(|score| score.permille)
}
