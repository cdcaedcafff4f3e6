//! Configured things as the audit log compares them: everything that can change, secrets included, because a secret that
//! changed is named; [`crate::audit`] shows none of them.

use serde_json::{Value, json};
use switchboard_backends::catalog::CatalogEntry;
use switchboard_schemas::audit::AuditAction;

use super::{
    administrator::Administrator,
    one_thing::{Fields, Slugs, document_fields},
};
use crate::{
    audit::{AuditChange, differences},
    state::AppState,
};

/// What a write did to one entry.
pub(super) struct WrittenEntry {
    /// What was there.
    pub(super) before: Option<CatalogEntry>,
    /// What is there.
    pub(super) after: CatalogEntry,
}

/// Writes into the audit log what became of an entry.
pub(super) async fn record_entry(
    administrator: &Administrator,
    state: &AppState,
    action: AuditAction,
    before: Option<&CatalogEntry>,
    after: Option<&CatalogEntry>,
) {
    let Some(subject) = after.or(before) else {
        return;
    };
    let (old, new) = (before.map(compared), after.map(compared));
    let change = AuditChange {
        org: subject.org_id(),
        kind: subject.kind().name(),
        subject: subject.id(),
        action,
        fields: differences(old.as_ref(), new.as_ref()),
    };
    administrator.record(state, change).await;
}

/// Writes into the audit log what a document did.
pub(super) async fn record_written(
    administrator: &Administrator,
    state: &AppState,
    written: &[WrittenEntry],
) {
    for WrittenEntry { before, after } in written {
        let action = if before.is_some() {
            AuditAction::Update
        } else {
            AuditAction::Create
        };
        record_entry(administrator, state, action, before.as_ref(), Some(after)).await;
    }
}

fn compared(entry: &CatalogEntry) -> Fields {
    let mut fields = document_fields(entry, &Slugs::default()).unwrap_or_default();
    let more = match entry {
        CatalogEntry::Organization(_) => json!({}),
        CatalogEntry::Provider { sealed_key, .. } => json!({ "apiKey": sealed_key }),
        CatalogEntry::Agent(agent) => {
            json!({ "provider": agent.provider, "fallbackProvider": agent.fallback_provider })
        }
        CatalogEntry::Team(team) => {
            json!({ "defaultAgent": team.default_agent, "members": team.members })
        }
        CatalogEntry::Key { hash, .. } => json!({ "value": hash }),
        CatalogEntry::User(account) => json!({
            "password": account.password,
            "link": account.link.as_ref().map(|link| link.hash.to_vec()),
        }),
    };
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields
}
