//! Catalog entries as the audit log compares them: with everything that can change, secrets included, because a changed
//! secret is named. [`crate::audit`] shows no secret.

use serde_json::{Value, json};
use switchboard_backends::catalog::CatalogEntry;
use switchboard_schemas::audit::AuditAction;

use super::{
    authorization::Administrator,
    bodies::{Fields, fields_of},
    resources::{
        Resource, agents::Agents, keys::Keys, organizations::Organizations, providers::Providers,
        references::References, teams::Teams,
    },
};
use crate::{
    audit::{AuditChange, differences},
    state::AppState,
};

/// An entry before and after it was written.
pub(super) struct WrittenEntry {
    /// The entry that was stored before, if any.
    pub(super) before: Option<CatalogEntry>,
    /// The entry that is stored now.
    pub(super) after: CatalogEntry,
}

/// Records a change of one entry in the audit log.
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

/// Records all changes that a document made in the audit log.
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

/// Returns everything of an entry that can change.
fn compared(entry: &CatalogEntry) -> Fields {
    let references = References::default();
    let fields = match entry {
        CatalogEntry::Organization(_) => described::<Organizations>(entry, &references),
        CatalogEntry::Provider { .. } => described::<Providers>(entry, &references),
        CatalogEntry::Agent(_) => described::<Agents>(entry, &references),
        CatalogEntry::Team(_) => described::<Teams>(entry, &references),
        CatalogEntry::Key { .. } => described::<Keys>(entry, &references),
        CatalogEntry::User(_) => None,
    };
    let mut fields = fields.unwrap_or_default();
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
            "email": account.user.email,
            "name": account.user.name,
            "role": account.user.role,
            "state": account.user.state,
            "password": account.password,
            "link": account.link.as_ref().map(|link| link.hash.to_vec()),
        }),
    };
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields
}

fn described<R: Resource>(entry: &CatalogEntry, references: &References) -> Option<Fields> {
    fields_of(&R::fields(entry, references)?).ok()
}
