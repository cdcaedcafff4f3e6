//! `/api/admin/organizations/{org}/audit`: who changed what, latest first. Like a list of conversations it is walked a
//! bounded part at a time, so that a rare filter gives short pages and never a request that reads everything.

use axum::{
    Json,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schemas::{
    audit::{AuditActor, AuditEntry},
    ids::{AuditId, OrgId},
};

use super::{
    administrator::{Action, Administrator},
    page::limit,
    things::{not_found, organization},
};
use crate::{
    http::{ApiError, ApiResult},
    state::AppState,
};

/// Entries that one request looks at.
const LOOKED_AT_MAX: u32 = 500;

/// The query of the log.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wanted {
    kind: Option<String>,
    id: Option<String>,
    user: Option<String>,
    action: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// A page of the log.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let org = reachable(&state, &administrator, &org).await?;
    let cursor = wanted
        .cursor
        .as_deref()
        .map(str::parse::<AuditId>)
        .transpose();
    let cursor = cursor
        .map_err(|_| ApiError::field("cursor", "must be the nextCursor of an earlier page"))?;
    let page = limit(wanted.limit.as_deref());
    let entries = state
        .backends
        .accounts
        .log(&org, cursor.as_ref(), LOOKED_AT_MAX)
        .await?;
    let (mut items, mut last) = (Vec::new(), None);
    let mut walked = 0;
    for entry in &entries {
        if items.len() == page {
            break;
        }
        (walked, last) = (walked + 1, Some(&entry.id));
        items.extend(wanted.passes(entry).then(|| shown(entry)));
    }
    let is_last = walked == entries.len() && entries.len() < LOOKED_AT_MAX as usize;
    let next = last.filter(|_| !is_last);
    Ok(Json(json!({ "items": items, "limit": page, "nextCursor": next })).into_response())
}

/// The log of an organization outlives it, for the holder of the installation's token.
async fn reachable(state: &AppState, administrator: &Administrator, org: &str) -> ApiResult<OrgId> {
    match organization(state, administrator, org, Action::ReadAudit).await {
        Ok(organization) => Ok(organization.id),
        Err(error) if error.is_not_found() && administrator.is_installation() => {
            let org: OrgId = org.parse().map_err(|_| not_found("organization"))?;
            let entries = state.backends.accounts.log(&org, None, 1).await?;
            if entries.is_empty() {
                Err(error)
            } else {
                Ok(org)
            }
        }
        Err(error) => Err(error),
    }
}

impl Wanted {
    fn passes(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        let user = match &entry.actor {
            AuditActor::User { id, .. } => id.as_str(),
            AuditActor::Token | AuditActor::Command => "",
        };
        let action = serde_json::to_value(entry.action).unwrap_or_default();
        is(&self.kind, &entry.kind)
            && is(&self.id, &entry.subject)
            && is(&self.user, user)
            && is(&self.action, action.as_str().unwrap_or_default())
    }
}

fn shown(entry: &AuditEntry) -> Value {
    json!({
        "id": entry.id,
        "at": entry.id.made_at(),
        "actor": entry.actor,
        "action": entry.action,
        "kind": entry.kind,
        "subject": entry.subject,
        "fields": entry.fields,
        "address": entry.address,
        "requestId": entry.request_id,
    })
}
