//! Changes one configured thing, so that of two who change one version at the same time, on whatever processes, one is
//! told to read again (if they named the version) or changes what the other one left.
//!
//! Processes agree on who is first by a note in the relay ([`crate::state::advisory_lock`]), because the store has no comparison.

use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind, VersionedEntry};
use switchboard_schemas::{
    api_key::ApiKey, audit::AuditAction, ids::RequestId, organization::Organization,
};

use super::{
    administrator::Administrator,
    api_keys::refuse_taken_name,
    audit_fields::record_entry,
    document::OrganizationDocument,
    one_thing::{Fields, Slugs, document_fields, plan_one, read_one, set_by_service},
    precondition::{Precondition, changed_meanwhile},
    publish_changes::publish_changes,
    things::{LAST_USED_AT, find},
};
use crate::{
    http::{ApiError, ApiResult},
    state::{
        AppState,
        advisory_lock::{AdvisoryLock, LOCK_POLL_INTERVAL, try_acquire_lock},
    },
};

/// Stands in a path for the id of what is not saved yet.
const UNSAVED: &str = "new";

/// How fields become new fields.
#[derive(Clone, Copy)]
pub(super) enum Edit {
    /// All of them.
    Replace,
    /// Into those that are there.
    Merge,
}

/// An edit with what it brings.
pub(super) struct Wanted {
    edit: Edit,
    fields: Fields,
}

impl Edit {
    /// The edit that brings `fields`.
    pub(super) const fn with(self, fields: Fields) -> Wanted {
        Wanted { edit: self, fields }
    }
}

/// Makes the change and gives what lies there then.
pub(super) async fn change(
    state: &AppState,
    administrator: &Administrator,
    organization: &Organization,
    (kind, id): (EntryKind, &str),
    precondition: &Precondition,
    wanted: Wanted,
) -> ApiResult<VersionedEntry> {
    let nonce = RequestId::random();
    let slugs = Slugs::named_by(&state.apply, organization, kind).await?;
    loop {
        {
            let _guard = state.apply.write_lock.lock().await;
            let found = find(state, &organization.id, kind, id).await?;
            precondition.check(found.version)?;
            let entry = changed_entry(state, organization, &found, &wanted, &slugs).await?;
            if entry == found.entry {
                return Ok(found);
            }
            let note = format!("admin-change:{}:{}", found.entry.id(), found.version);
            match try_acquire_lock(state, &note, &nonce).await {
                AdvisoryLock::Acquired | AdvisoryLock::Unavailable => {
                    state.apply.catalog.put(&entry).await?;
                    publish_changes(&state.apply, &[&entry]).await;
                    record_entry(
                        administrator,
                        state,
                        AuditAction::Update,
                        Some(&found.entry),
                        Some(&entry),
                    )
                    .await;
                    return find(state, &organization.id, kind, id).await;
                }
                AdvisoryLock::HeldByOther if precondition.is_given() => {
                    return Err(changed_meanwhile(found.version));
                }
                AdvisoryLock::HeldByOther => {}
            }
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}

/// The thing as it would be saved with `draft`, or as it is without one; `id` is [`UNSAVED`] for what is not there yet.
pub(super) async fn drafted(
    state: &AppState,
    organization: &Organization,
    (kind, id): (EntryKind, &str),
    draft: Option<Fields>,
) -> ApiResult<CatalogEntry> {
    if id == UNSAVED {
        let fields = draft
            .ok_or_else(|| ApiError::field("draft", "is required for what is not saved yet"))?;
        let document = read_one(organization, kind, fields)?;
        return plan_one(&state.apply, kind, &document).await;
    }
    let found = find(state, &organization.id, kind, id).await?;
    let Some(mut fields) = draft else {
        return Ok(found.entry);
    };
    // What was read can be sent back whole; whoever tries something changes nothing, and cannot be late.
    fields.remove("version");
    let slugs = Slugs::named_by(&state.apply, organization, kind).await?;
    changed_entry(
        state,
        organization,
        &found,
        &Edit::Merge.with(fields),
        &slugs,
    )
    .await
}

async fn changed_entry(
    state: &AppState,
    organization: &Organization,
    found: &VersionedEntry,
    wanted: &Wanted,
    slugs: &Slugs,
) -> ApiResult<CatalogEntry> {
    let kind = found.entry.kind();
    let fields = new_fields(found, wanted, slugs)?;
    let document = read_one(organization, kind, fields)?;
    if let CatalogEntry::Key { key, hash } = &found.entry {
        let changed = changed_key(document, key)?;
        if changed.name != key.name {
            refuse_taken_name(state, &organization.id, &changed.name).await?;
        }
        return Ok(CatalogEntry::Key {
            key: changed,
            hash: *hash,
        });
    }
    let entry = plan_one(&state.apply, kind, &document).await?;
    // Ids are derived from slugs.
    if entry.id() == found.entry.id() {
        Ok(entry)
    } else {
        Err(ApiError::field("slug", "cannot be changed"))
    }
}

fn changed_key(document: OrganizationDocument, key: &ApiKey) -> ApiResult<ApiKey> {
    let described = document.keys.into_iter().next();
    let described =
        described.ok_or_else(|| ApiError::internal(&"a document of one key holds none"))?;
    Ok(ApiKey {
        name: described.name,
        scopes: described.scopes,
        expires_at: described.expires_at,
        limits: described.limits.unwrap_or_default(),
        ..key.clone()
    })
}

fn new_fields(found: &VersionedEntry, wanted: &Wanted, slugs: &Slugs) -> ApiResult<Fields> {
    let mut fields = wanted.fields.clone();
    // What was read can be sent back whole.
    for (name, value) in set_by_service(&found.entry, None) {
        if fields.remove(&name).is_some_and(|sent| sent != value) {
            return Err(ApiError::field(name, "cannot be changed"));
        }
    }
    if found.entry.kind() == EntryKind::Key {
        fields.remove(LAST_USED_AT);
    }
    match wanted.edit {
        Edit::Replace => Ok(fields),
        Edit::Merge => {
            if found.entry.kind() == EntryKind::Provider
                && fields.get("apiKey") == Some(&Value::Null)
            {
                // Absent means kept in a document, and it is never shown: only this can say that it is to go.
                fields.insert("apiKey".into(), "".into());
            }
            let mut merged = document_fields(&found.entry, slugs)?;
            merge(&mut merged, fields);
            Ok(merged)
        }
    }
}

/// JSON merge patch (RFC 7396) of objects.
fn merge(target: &mut Fields, patch: Fields) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(&name);
            }
            Value::Object(patch) => {
                let inner = target
                    .entry(name)
                    .or_insert_with(|| Value::Object(Fields::new()));
                if let Value::Object(inner) = inner {
                    merge(inner, patch);
                } else {
                    let mut fresh = Fields::new();
                    merge(&mut fresh, patch);
                    *inner = fresh.into();
                }
            }
            value => {
                target.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_merges_objects_replaces_lists_and_clears_with_null() {
        let Value::Object(mut target) = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2] })
        else {
            panic!()
        };
        let Value::Object(patch) =
            json!({ "a": null, "b": { "c": 4 }, "e": [5], "f": { "g": 6, "h": null } })
        else {
            panic!()
        };
        merge(&mut target, patch);
        assert_eq!(
            Value::from(target),
            json!({ "b": { "c": 4, "d": 3 }, "e": [5], "f": { "g": 6 } })
        );
    }
}
