//! Records changes of catalog entries in the audit log and announces them. Secrets are compared, so
//! that the log can name a changed one; their values are never recorded.

use serde_json::{Value, json};
use switchboard_backends::catalog::CatalogEntry;
use switchboard_schemas::audit::AuditAction;

use super::{
    announcements::publish_changes,
    authorization::Admin,
    bodies::{JsonObject, fields_of},
    resources::{
        agents::AgentResource, keys::KeyResource, organizations::OrganizationResource,
        providers::ProviderResource, references::ResourceReferences, resource::Resource,
        teams::TeamResource,
    },
};
use crate::audit::{AuditChange, differences};

impl<P, S> Admin<P, S> {
    /// Announces a change of one entry to all processes and records it in the audit log. Only one
    /// of `before` and `after` may be absent.
    pub(super) async fn record_change(
        &self,
        action: AuditAction,
        before: Option<&CatalogEntry>,
        after: Option<&CatalogEntry>,
    ) {
        let changed: Vec<_> = after.or(before).into_iter().collect();
        publish_changes(&self.state.apply, &changed).await;
        self.record_entry(action, before, after).await;
    }

    /// Records a change of one entry in the audit log.
    pub(super) async fn record_entry(
        &self,
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
        self.administrator.record(&self.state, change).await;
    }
}

/// Returns all fields of an entry that can change.
fn compared(entry: &CatalogEntry) -> JsonObject {
    let mut fields = configured(entry, &ResourceReferences::default());
    let more = match entry {
        CatalogEntry::Organization(_) | CatalogEntry::Removal(_) => json!({}),
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

/// Returns the fields of an entry in the form of a request, with the slugs of `references`.
pub(super) fn configured(entry: &CatalogEntry, references: &ResourceReferences) -> JsonObject {
    let fields = match entry {
        CatalogEntry::Organization(_) => resource_fields::<OrganizationResource>(entry, references),
        CatalogEntry::Provider { .. } => resource_fields::<ProviderResource>(entry, references),
        CatalogEntry::Agent(_) => resource_fields::<AgentResource>(entry, references),
        CatalogEntry::Team(_) => resource_fields::<TeamResource>(entry, references),
        CatalogEntry::Key { .. } => resource_fields::<KeyResource>(entry, references),
        CatalogEntry::User(_) | CatalogEntry::Removal(_) => None,
    };
    fields.unwrap_or_default()
}

fn resource_fields<R: Resource>(
    entry: &CatalogEntry,
    references: &ResourceReferences,
) -> Option<JsonObject> {
    fields_of(&R::fields(entry, references)?).ok()
}
