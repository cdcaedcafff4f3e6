//! Writes the audit log: one entry per change with the names of the changed fields. Values are
//! recorded only for the fields listed here, because others may contain secrets or personal text.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde_json::{Map, Value};
use switchboard_backends::{StoreError, accounts::AccountActivityStore};
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, AuditEntry, FieldChange},
    ids::{AuditId, OrgId, RequestId},
};

use crate::{http::client_address::stored_address, state::AppState};

/// Fields whose values are recorded, including nested fields.
const HARMLESS: [&str; 28] = [
    "allowedDomains",
    "api",
    "baseUrl",
    "defaultAgent",
    "embeddingModel",
    "expiresAt",
    "fallbackProvider",
    "limits",
    "maxOutputTokens",
    "model",
    "name",
    "products",
    "provider",
    "public",
    "role",
    "routing",
    "scopes",
    "slug",
    "state",
    "status",
    "temperature",
    "theme",
    "email",
    "continuesPrefix",
    "files",
    "vision",
    "firstTokenTimeoutMs",
    "reasoningEffort",
];
/// Maximum size of a recorded value as JSON, in bytes.
const VALUE_BYTES_MAX: usize = 300;
/// Maximum number of fields per entry.
const FIELDS_MAX: usize = 200;
/// Number of retries of a failed write, and the pause between them.
const RETRIES_MAX: u32 = 30;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Fields whose values are shown to nobody.
const SECRETS: [&str; 4] = ["apiKey", "value", "password", "link"];

/// Origin of a request: its truncated address and its id.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditTrail {
    address: Option<String>,
    pub(crate) request_id: Option<RequestId>,
}

pub(crate) struct AuditChange<'a> {
    /// Organization that owns the resource.
    pub(crate) org: &'a OrgId,
    pub(crate) kind: &'a str,
    /// Id of the resource.
    pub(crate) subject: &'a str,
    /// The action that was performed.
    pub(crate) action: AuditAction,
    /// Changed fields, with values where they may be recorded.
    pub(crate) fields: Vec<FieldChange>,
}

impl FromRequestParts<AppState> for AuditTrail {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        Ok(Self::from_parts(parts, state))
    }
}

impl AuditTrail {
    /// Returns the audit trail of a request.
    pub(crate) fn from_parts(parts: &Parts, state: &AppState) -> Self {
        Self {
            address: stored_address(parts, &state.config),
            request_id: parts.extensions.get::<RequestId>().cloned(),
        }
    }

    /// Records a completed change. Failed writes are retried in the background, because the change
    /// stands and its response must not wait.
    pub(crate) async fn record(
        &self,
        state: &AppState,
        actor: AuditActor,
        change: AuditChange<'_>,
    ) {
        let mut entry = new_entry(actor, change);
        entry.address.clone_from(&self.address);
        entry.request_id.clone_from(&self.request_id);
        if let Err(error) = state.backends.accounts.append_entry(&entry).await {
            tracing::warn!(%error, "audit entry not written, retrying");
            let accounts = Arc::clone(&state.backends.accounts);
            state
                .background
                .spawn(async move { record_later(accounts.as_ref(), &entry).await });
        }
    }
}

/// Records an action of a command-line command.
pub(crate) async fn record_command(
    accounts: &dyn AccountActivityStore,
    org: &OrgId,
    action: AuditAction,
    kind: &str,
    subject: &str,
) -> Result<(), StoreError> {
    accounts
        .append_entry(&new_entry(
            AuditActor::Command,
            AuditChange {
                org,
                kind,
                subject,
                action,
                fields: Vec::new(),
            },
        ))
        .await
}

/// Returns the fields in which two resources differ, comparing objects one level deep. `None`
/// stands for a missing resource; then only short fields with recordable values are returned.
pub(crate) fn differences(
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
) -> Vec<FieldChange> {
    let is_whole = before.is_none() || after.is_none();
    let is_listed = |name: &str| !is_whole || is_recordable(name);
    differences_with(before, after, is_listed, recordable_value)
}

/// Returns the fields in which two resources differ, with all values but secrets, for the author of
/// the change. The log does not keep them.
pub(crate) fn differences_in_full(
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
) -> Vec<FieldChange> {
    let shown = |name: &str, value: &Value| (!SECRETS.contains(&name)).then(|| value.clone());
    differences_with(before, after, |_| true, shown)
}

fn differences_with(
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
    is_listed: impl Fn(&str) -> bool,
    shown: impl Fn(&str, &Value) -> Option<Value>,
) -> Vec<FieldChange> {
    let (old, new) = (flatten_fields(before), flatten_fields(after));
    let names = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    let changed = names
        .filter(|name| old.get(*name) != new.get(*name))
        .filter(|name| is_listed(name));
    let changes = changed.map(|name| FieldChange {
        field: name.clone(),
        before: old.get(name).and_then(|value| shown(name, value)),
        after: new.get(name).and_then(|value| shown(name, value)),
    });
    changes.take(FIELDS_MAX).collect()
}

async fn record_later(accounts: &dyn AccountActivityStore, entry: &AuditEntry) {
    for _ in 0..RETRIES_MAX {
        tokio::time::sleep(RETRY_PAUSE).await;
        if accounts.append_entry(entry).await.is_ok() {
            return;
        }
    }
    tracing::error!(
        org.id = entry.org_id.as_str(),
        audit.id = entry.id.as_str(),
        kind = entry.kind,
        "audit entry lost"
    );
}

fn new_entry(
    actor: AuditActor,
    AuditChange {
        org,
        kind,
        subject,
        action,
        fields,
    }: AuditChange<'_>,
) -> AuditEntry {
    AuditEntry {
        id: AuditId::now(),
        org_id: org.clone(),
        actor,
        action,
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        fields,
        address: None,
        request_id: None,
    }
}

fn flatten_fields(fields: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in fields.into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::Object(inner) => {
                let inner = inner.iter().filter(|(_, value)| !value.is_null());
                flat.extend(inner.map(|(below, value)| (format!("{name}.{below}"), value.clone())));
            }
            value => {
                flat.insert(name.clone(), value.clone());
            }
        }
    }
    flat
}

/// Returns true if the field is recorded for created and deleted resources.
fn is_recordable(name: &str) -> bool {
    !name.contains('.') && HARMLESS.contains(&name)
}

fn recordable_value(name: &str, value: &Value) -> Option<Value> {
    let head = name.split('.').next().unwrap_or_default();
    let is_short = value.to_string().len() <= VALUE_BYTES_MAX;
    // Booleans and numbers are never secrets.
    let is_plain = value.is_boolean() || value.is_number();
    (is_plain || HARMLESS.contains(&head) && is_short).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn changed_fields_are_named_with_harmless_values_only() {
        let agent = |name: &str, instructions: &str, color: &str, on: bool, text: &str| {
            map(json!({
                "name": name, "instructions": instructions, "theme": { "textColor": color, "x": 1 }, "same": 1,
                "widget": { "on": on, "text": text }
            }))
        };
        let (before, after) = (
            agent("A", "old", "red", true, "Hi"),
            agent("B", "new", "blue", false, "Ho"),
        );
        let changes = serde_json::to_value(differences(Some(&before), Some(&after))).unwrap();
        let mut changes = changes.as_array().unwrap().clone();
        changes.sort_by_key(|change| change["field"].to_string());
        assert_eq!(
            changes,
            [
                json!({ "field": "instructions" }),
                json!({ "field": "name", "before": "A", "after": "B" }),
                json!({ "field": "theme.textColor", "before": "red", "after": "blue" }),
                json!({ "field": "widget.on", "before": true, "after": false }),
                json!({ "field": "widget.text" }),
            ]
        );
    }

    #[test]
    fn created_resource_is_logged_with_short_values_only() {
        let made = map(
            json!({ "slug": "a", "apiKey": "sk-canary", "instructions": "x", "limits": { "a": 1 } }),
        );
        let changes = differences(None, Some(&made));
        assert_eq!(
            serde_json::to_value(changes).unwrap(),
            json!([{ "field": "slug", "after": "a" }])
        );
        let in_full = serde_json::to_value(differences_in_full(None, Some(&made))).unwrap();
        for (field, value) in [("limits.a", json!(1)), ("instructions", json!("x"))] {
            let line = json!({ "field": field, "after": value });
            assert!(in_full.as_array().unwrap().contains(&line), "{in_full}");
        }
        assert!(
            in_full
                .as_array()
                .unwrap()
                .contains(&json!({ "field": "apiKey" }))
        );
    }

    #[test]
    fn long_value_is_not_recorded() {
        let after = map(json!({ "name": "x".repeat(VALUE_BYTES_MAX) }));
        assert_eq!(differences(Some(&Map::new()), Some(&after))[0].after, None);
    }
}
