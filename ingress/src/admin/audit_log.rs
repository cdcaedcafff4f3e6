//! The audit log of an organization, latest entry first. A request reads a bounded number of
//! entries, so that a filter that matches few entries returns short pages with a cursor instead of
//! scanning the whole log.

use axum::{Json, extract::Query};
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, AuditEntry, FieldChange},
    ids::{AuditId, OrgId, RequestId},
    organization::Organization,
    time::Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    authorization::{Admin, Administrator, PathIds, PermissionSubject},
    pages::{CursorPage, CursorQuery},
    permissions::{Permission, ReadAudit},
};
use crate::{http::ApiResult, state::AppState};

/// The most entries that one request reads.
const READ_MAX: u32 = 500;

/// The filters of the audit log.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditQuery {
    /// The kind of the changed resource, for instance `agent`.
    kind: Option<String>,
    /// The id of the changed resource.
    id: Option<String>,
    /// The id of the user who made the change.
    user: Option<String>,
    /// The action, for instance `update`.
    action: Option<String>,
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEntryView {
    /// The id of the entry.
    id: AuditId,
    /// The time of the change.
    at: Timestamp,
    /// The user, token or command that made the change.
    actor: AuditActor,
    /// The action.
    action: AuditAction,
    /// The kind of the changed resource.
    kind: String,
    /// The id of the changed resource.
    subject: String,
    /// The fields that changed.
    fields: Vec<FieldChange>,
    /// The network address that the request came from, shortened; `null` if unknown.
    #[schema(required)]
    address: Option<String>,
    /// The request that made the change; `null` for a command.
    #[schema(required)]
    request_id: Option<RequestId>,
}

/// An organization whose log is read. With the admin token, the log remains readable after the
/// organization was deleted.
pub(super) struct AuditedOrganization(OrgId);

impl PermissionSubject for AuditedOrganization {
    async fn load<P: Permission>(
        administrator: &Administrator,
        state: &AppState,
        path: &PathIds,
    ) -> ApiResult<Self> {
        match Organization::load::<P>(administrator, state, path).await {
            Ok(organization) => Ok(Self(organization.id)),
            Err(error) if error.is_not_found() && administrator.is_installation() => {
                let org = path.organization()?;
                let entries = state.backends.accounts.log_entries(&org, None, 1).await?;
                let has_log = !entries.is_empty();
                has_log.then_some(Self(org)).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}

/// Lists a page of the log, latest entry first.
pub(super) async fn list(
    admin: Admin<ReadAudit, AuditedOrganization>,
    Query(query): Query<AuditQuery>,
    Query(page): Query<CursorQuery>,
) -> ApiResult<Json<CursorPage<AuditEntryView>>> {
    let (cursor, limit) = (page.cursor(|id| id.parse::<AuditId>().ok())?, page.limit());
    let (accounts, AuditedOrganization(org)) = (&admin.state.backends.accounts, &admin.subject);
    let entries = accounts.log_entries(org, cursor.as_ref(), READ_MAX).await?;
    let read_whole_log = entries.len() < READ_MAX as usize;
    let (mut items, mut last_seen) = (Vec::new(), None);
    let mut unseen = entries.into_iter();
    while items.len() < limit
        && let Some(entry) = unseen.next()
    {
        last_seen = Some(entry.id.as_str().to_owned());
        items.extend(query.matches(&entry).then(|| AuditEntryView::from(entry)));
    }
    let is_last = read_whole_log && unseen.len() == 0;
    Ok(CursorPage::new(
        items,
        limit,
        last_seen.filter(|_| !is_last),
    ))
}

impl AuditQuery {
    fn matches(&self, entry: &AuditEntry) -> bool {
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

impl From<AuditEntry> for AuditEntryView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: entry.id.created_at(),
            id: entry.id,
            actor: entry.actor,
            action: entry.action,
            kind: entry.kind,
            subject: entry.subject,
            fields: entry.fields,
            address: entry.address,
            request_id: entry.request_id,
        }
    }
}
