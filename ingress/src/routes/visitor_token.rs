//! `POST /api/widget/token`: issues a visitor token to a page or a chat key, together with the
//! widget's configuration, which the token itself cannot read.

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
    auth::{
        authorized_agent::{check_organization, check_origin, check_public, existing_agent},
        visitor::{TokenRequester, VisitorTokenRequest},
    },
    http::{
        ApiError, ApiResult, ErrorCode,
        body::{self, BodyLimits},
        fields,
        origin::{OriginHeader, page_origin},
    },
    openapi::problems::VisitorTokenProblems,
    state::AppState,
};

const AGENT_ID: &str = "agentId";

/// A visitor token and the data that the widget needs to start.
#[derive(Serialize, ToSchema)]
#[schema(as = VisitorToken)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VisitorTokenView<'a> {
    /// The token; sent in place of an API key until it expires.
    token: &'a str,
    /// Expiry of the token; request the next one before.
    expires_at: Timestamp,
    /// The agent that the token gives access to.
    agent_id: &'a AgentId,
    /// Id of the visitor.
    visitor_id: &'a VisitorId,
    /// Proves the visitor's identity in the next token request. New with each token.
    visitor_secret: &'a str,
    /// Configuration of the widget; only if the agent is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<WidgetView<'a>>,
    /// The complete theme; `configuration` contains only three of its colors.
    theme: &'a WidgetTheme,
    /// Notices that visitors read before they write.
    notice: NoticeView<'a>,
    /// Data to show instead of a chat; only if the agent is not active.
    #[serde(skip_serializing_if = "Option::is_none")]
    offline: Option<OfflineView<'a>>,
}

/// Notices that visitors read before they write.
#[derive(Serialize, ToSchema)]
#[schema(as = Notice)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NoticeView<'a> {
    /// `true` if visitors are told that they talk to a machine.
    disclosure: bool,
    /// Words of that notice; empty for those of the widget.
    text: &'a str,
    /// Address of the privacy notice.
    #[schema(required)]
    privacy_link: Option<&'a str>,
}

impl<'a> NoticeView<'a> {
    fn from_agent(agent: &'a Agent) -> Self {
        let disclosure = &agent.settings.disclosure;
        Self {
            disclosure: disclosure.enabled,
            text: &disclosure.text,
            privacy_link: disclosure.privacy_link.as_deref(),
        }
    }
}

/// Data of an inactive agent, for showing its offline message before a visitor types anything.
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

/// Issues a visitor token. The agent is named in the body, so that the JSON is parsed before the
/// checks of the agent; those and the field checks keep the usual order. Inactive agents issue
/// tokens too, because their conversations stay readable.
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
pub(crate) async fn create_visitor_token(
    State(state): State<AppState>,
    requester: TokenRequester,
    request: Request,
) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let body =
        body::read_body(&parts.headers, body, BodyLimits::credentials(&state.config)).await?;
    let body: VisitorTokenRequest = body::parse_body(&body)?;
    let id = fields::text_value(AGENT_ID, &body.agent_id)?.unwrap_or_default();
    if id.trim().is_empty() {
        return Err(
            ApiError::new(ErrorCode::InvalidAgentId, "the body has no agentId").param(AGENT_ID),
        );
    }
    let agent = existing_agent(id, &state).await?;
    if let Some(key) = &requester.key {
        check_organization(&agent, &key.org_id)?;
    }
    check_public(&agent)?;
    check_origin(&parts.headers, &agent)?;
    let admission = requester
        .issue_token(&agent, &parts.headers, &body, &state)
        .await?;
    if let Some(origin) = page_origin(&parts.headers) {
        let page = (agent.org_id.clone(), agent.id.clone(), origin);
        state.recent_uses.pages.record(page);
    }
    let is_active = agent.settings.status == ActivationStatus::Active;
    let view = VisitorTokenView {
        token: admission.token.expose(),
        expires_at: admission.claims.expires_at,
        agent_id: &agent.id,
        visitor_id: &admission.claims.visitor_id,
        visitor_secret: admission.secret.expose(),
        configuration: is_active.then(|| WidgetView::from_agent(&agent)),
        theme: &agent.settings.theme,
        notice: NoticeView::from_agent(&agent),
        offline: (!is_active).then(|| OfflineView::from_agent(&agent)),
    };
    Ok(Json(view).into_response())
}

impl<'a> OfflineView<'a> {
    fn from_agent(agent: &'a Agent) -> Self {
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
