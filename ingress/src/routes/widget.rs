//! `GET /api/public/agents/{agentId}/widget`: configuration of the embedded widget.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use switchboard_schemas::{
    agent::{Agent, WidgetPosition, WidgetSize},
    file::FileSettings,
    ids::AgentId,
    lead::LeadForm,
};
use utoipa::ToSchema;

use crate::{
    auth::authorized_agent::{AgentPath, AuthorizedAgent, WidgetRead},
    openapi::problems::AgentReadProblems,
};

/// Configuration of the embedded widget.
#[derive(Serialize, ToSchema)]
#[schema(as = Widget)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetView<'a> {
    id: &'a AgentId,
    name: &'a str,
    description: &'a str,
    welcome_message: &'a str,
    placeholder_text: &'a str,
    theme: ThemeView<'a>,
    widget: SettingsView<'a>,
    /// Contact data that the agent asks visitors for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lead_form: Option<LeadFormView<'a>>,
    /// Files that visitors may send; only if `widget.enableFileUpload` is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    files: Option<&'a FileSettings>,
}

/// The form with which the agent asks for contact data.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeadFormView<'a> {
    #[serde(flatten)]
    form: &'a LeadForm,
    /// Version of the form, for `formVersion` of a submitted lead.
    version: String,
}

/// Colors of the widget.
#[derive(Serialize, ToSchema)]
#[schema(as = WidgetTheme)]
#[serde(rename_all = "camelCase")]
struct ThemeView<'a> {
    primary_color: &'a str,
    background_color: &'a str,
    text_color: &'a str,
}

/// Layout and features of the widget.
#[derive(Serialize, ToSchema)]
#[schema(as = WidgetSettings)]
#[serde(rename_all = "camelCase")]
struct SettingsView<'a> {
    position: WidgetPosition,
    size: WidgetSize,
    show_avatar: bool,
    show_timestamp: bool,
    enable_markdown: bool,
    enable_file_upload: bool,
    enable_email_capture: bool,
    enable_rating: bool,
    show_powered_by: bool,
    max_message_length: u32,
    rate_limit_per_minute: u32,
    auto_open: bool,
    auto_open_delay: u32,
    trigger_text: &'a str,
    offline_message: &'a str,
}

/// Returns the configuration of the widget.
#[utoipa::path(
    get,
    path = "/api/public/agents/{agentId}/widget",
    operation_id = "getWidget",
    tag = "Agents",
    summary = "Read the configuration of the widget",
    description = "Needs the scope `config` or `chat`.",
    params(AgentPath),
    responses((status = 200, description = "The configuration.", body = WidgetView), AgentReadProblems),
)]
pub(crate) async fn get_widget(reached: AuthorizedAgent<WidgetRead>) -> Response {
    Json(WidgetView::from_agent(&reached.agent)).into_response()
}

impl<'a> WidgetView<'a> {
    /// Creates the widget configuration of an agent.
    pub(super) fn from_agent(agent: &'a Agent) -> Self {
        let theme = &agent.settings.theme;
        Self {
            id: &agent.id,
            name: &agent.name,
            description: &agent.settings.description,
            welcome_message: &agent.settings.welcome_message,
            placeholder_text: &agent.settings.placeholder_text,
            theme: ThemeView {
                primary_color: &theme.primary_color,
                background_color: &theme.background_color,
                text_color: &theme.text_color,
            },
            widget: SettingsView::from_agent(agent),
            lead_form: agent.settings.active_lead_form().map(|form| LeadFormView {
                form,
                version: form.version(),
            }),
            files: agent.settings.accepted_files(),
        }
    }
}

impl<'a> SettingsView<'a> {
    fn from_agent(agent: &'a Agent) -> Self {
        let (widget, features, limits) = (
            &agent.settings.widget,
            &agent.settings.features,
            &agent.settings.limits,
        );
        Self {
            position: widget.position,
            size: widget.size,
            show_avatar: widget.show_avatar,
            show_timestamp: widget.show_timestamp,
            enable_markdown: features.enable_markdown,
            enable_file_upload: features.enable_file_upload,
            enable_email_capture: features.enable_email_capture,
            enable_rating: features.enable_rating,
            show_powered_by: widget.show_powered_by,
            max_message_length: limits.max_message_length,
            rate_limit_per_minute: limits.rate_limit_per_minute,
            auto_open: widget.auto_open,
            auto_open_delay: widget.auto_open_delay,
            trigger_text: &widget.trigger_text,
            offline_message: &widget.offline_message,
        }
    }
}
