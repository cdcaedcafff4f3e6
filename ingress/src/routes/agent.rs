//! `GET /api/public/agents/{agentId}`: an agent's public configuration. The view lists each field,
//! so that a new setting never becomes public by accident.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use switchboard_schemas::{
    agent::{Agent, AgentFeatures, AgentLimits, WidgetTheme},
    ids::AgentId,
};
use utoipa::ToSchema;

use crate::{
    auth::authorized_agent::{AgentPath, AgentRead, AuthorizedAgent},
    openapi::problems::AgentReadProblems,
};

/// Public configuration of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentView<'a> {
    id: &'a AgentId,
    name: &'a str,
    description: &'a str,
    welcome_message: &'a str,
    placeholder_text: &'a str,
    theme: &'a WidgetTheme,
    features: &'a AgentFeatures,
    limits: &'a AgentLimits,
}

/// Returns the public configuration of an agent.
#[utoipa::path(
    get,
    path = "/api/public/agents/{agentId}",
    operation_id = "getAgent",
    tag = "Agents",
    summary = "Read an agent's public configuration",
    description = "Needs the scope `config`.",
    params(AgentPath),
    responses((status = 200, description = "The configuration.", body = AgentView), AgentReadProblems),
)]
pub(crate) async fn get_agent(reached: AuthorizedAgent<AgentRead>) -> Response {
    Json(AgentView::from_agent(&reached.agent)).into_response()
}

impl<'a> AgentView<'a> {
    fn from_agent(agent: &'a Agent) -> Self {
        let settings = &agent.settings;
        Self {
            id: &agent.id,
            name: &agent.name,
            description: &settings.description,
            welcome_message: &settings.welcome_message,
            placeholder_text: &settings.placeholder_text,
            theme: &settings.theme,
            features: &settings.features,
            limits: &settings.limits,
        }
    }
}
