//! `POST /api/widget/token`: a page trades its agent's id, or a chat key, for a token of one visitor, and gets what the
//! widget starts with in the same answer: the token itself does not open the configuration.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use switchboard_schemas::{
    agent::{ActivationStatus, Agent, WidgetPosition, WidgetSize, WidgetTheme},
    client_text::VisitorId,
    ids::AgentId,
    time::Timestamp,
};
use utoipa::ToSchema;

use super::widget::WidgetView;
use crate::{
    body::{self, BodyLimits},
    error::{ApiError, ApiResult, ErrorCode},
    fields,
    openapi::{
        bodies::VisitorTokenRequest, parameters::OriginHeader, problems::VisitorTokenProblems,
    },
    reachable::{check_organization, check_origin, check_public, existing_agent},
    state::AppState,
    visitor::Applicant,
};

const AGENT_ID: &str = "agentId";

/// What a page keeps of its visitor.
#[derive(Serialize, ToSchema)]
#[schema(as = VisitorToken)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VisitorTokenView<'a> {
    /// Goes where a key goes, until it expires.
    token: &'a str,
    /// The end of the token; ask for the next one before.
    expires_at: Timestamp,
    /// The agent that the token opens.
    agent_id: &'a AgentId,
    /// Who the visitor is.
    visitor_id: &'a VisitorId,
    /// Proves, with the next request for a token, that it is the same visitor. New with each token.
    visitor_secret: &'a str,
    /// What the widget starts with; for an agent that is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<WidgetView<'a>>,
    /// All colours and shapes: those of the configuration are three of them.
    theme: &'a WidgetTheme,
    /// What is shown instead of a chat; for an agent that is not active.
    #[serde(skip_serializing_if = "Option::is_none")]
    offline: Option<OfflineView<'a>>,
}

/// What a refused chat says of an agent that is not active, told before anybody has typed anything, and where to show it.
#[derive(Serialize, ToSchema)]
#[schema(as = Offline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfflineView<'a> {
    name: &'a str,
    offline_message: &'a str,
    position: WidgetPosition,
    size: WidgetSize,
    trigger_text: &'a str,
}

/// Serves the route. The agent stands in the body, so that the JSON is read before the agent's checks; those and the
/// fields behind them are in the usual order. An agent that is not active gives tokens: its conversations can be read.
#[utoipa::path(
    post,
    path = "/api/widget/token",
    operation_id = "createVisitorToken",
    tag = "Widget",
    summary = "Get a token for a visitor of a page",
    description = "For a page, whose browser sends its `Origin`, or for the holder of a key with the scope `chat`. The \
        token chats with this agent, and reads and changes what its own visitor wrote and got; it opens nothing else.",
    params(OriginHeader),
    request_body(content = VisitorTokenRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "The token, and what the widget starts with.", body = VisitorTokenView),
        VisitorTokenProblems,
    ),
    security((), ("bearer" = []), ("apiKey" = [])),
)]
pub(crate) async fn post(
    State(state): State<AppState>,
    applicant: Applicant,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::public(&state.config)).await?;
    let body = body::parse_object(&body)?;
    let id = fields::optional_text(&body, AGENT_ID)?.unwrap_or_default();
    if id.trim().is_empty() {
        return Err(
            ApiError::new(ErrorCode::InvalidAgentId, "the body has no agentId").param(AGENT_ID),
        );
    }
    let agent = existing_agent(id, &state).await?;
    if let Some(key) = &applicant.key {
        check_organization(&agent, &key.org_id)?;
    }
    check_public(&agent)?;
    check_origin(&parts.headers, &agent)?;
    let admission = applicant
        .admit(&agent, &parts.headers, &body, &state)
        .await?;
    let is_active = agent.settings.status == ActivationStatus::Active;
    let view = VisitorTokenView {
        token: admission.token.expose(),
        expires_at: admission.claims.expires_at,
        agent_id: &agent.id,
        visitor_id: &admission.claims.visitor_id,
        visitor_secret: admission.secret.expose(),
        configuration: is_active.then(|| WidgetView::of(&agent)),
        theme: &agent.settings.theme,
        offline: (!is_active).then(|| OfflineView::of(&agent)),
    };
    Ok(Json(view).into_response())
}

impl<'a> OfflineView<'a> {
    fn of(agent: &'a Agent) -> Self {
        let widget = &agent.settings.widget;
        Self {
            name: &agent.name,
            offline_message: &widget.offline_message,
            position: widget.position,
            size: widget.size,
            trigger_text: &widget.trigger_text,
        }
    }
}
