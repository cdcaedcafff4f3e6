//! The pages on which the widget of an agent was seen.

use axum::Json;
use serde::Serialize;
use switchboard_schemas::{agent::Agent, time::Timestamp};
use utoipa::ToSchema;

use super::{authorization::Admin, permissions::ReadConfiguration};
use crate::http::ApiResult;

/// The pages with the widget of an agent.
#[derive(Serialize, ToSchema)]
pub(super) struct WidgetPagesView {
    /// The origins, the latest first.
    items: Vec<WidgetPageView>,
}

/// An origin on which the widget of an agent was seen.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WidgetPageView {
    /// The origin of the pages.
    origin: String,
    /// The time at which the widget last started there, to the minute.
    last_seen_at: Timestamp,
}

/// Lists the latest origins on which the widget of an agent was seen.
pub(super) async fn list(
    admin: Admin<ReadConfiguration, Agent>,
) -> ApiResult<Json<WidgetPagesView>> {
    let (agent, catalog) = (&admin.subject, &admin.state.backends.catalog);
    let pages = catalog.pages(&agent.org_id, &agent.id).await?;
    let items = pages.into_iter().map(|page| WidgetPageView {
        origin: page.origin,
        last_seen_at: page.at,
    });
    Ok(Json(WidgetPagesView {
        items: items.collect(),
    }))
}
