//! Changes of single resources. Of two concurrent changes of one version, in any processes, the
//! second fails if it named the version, and otherwise is applied to the result of the first.
//!
//! An advisory lock in the relay ([`crate::state::advisory_lock`]) orders them, because the store
//! has no conditional write.

use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, VersionedEntry};
use switchboard_schemas::{
    audit::AuditAction,
    ids::{OrgId, RequestId},
};

use super::{
    authorization::Admin,
    bodies::{JsonObject, RequestBody, fields_of},
    entries::{find, other_kind},
    planner::{ChangeAuthor, EntryPlanner},
    preconditions::{VersionPrecondition, changed_meanwhile},
    resources::{references::ResourceReferences, resource::Resource},
};
use crate::{
    http::{ApiError, ApiResult},
    state::{
        AppState,
        advisory_lock::{LOCK_POLL_INTERVAL, LockAttempt, try_acquire_lock},
    },
};

/// The id in the path of a resource that has not been saved yet.
const UNSAVED: &str = "new";

pub(super) enum ResourceEdit {
    /// All fields; omitted ones get their defaults.
    Replace(JsonObject),
    /// A merge patch (RFC 7396).
    Merge(JsonObject),
}

/// Changes an entry and returns the stored result.
pub(super) async fn edit_entry<R: Resource>(
    admin: &Admin<R::Change>,
    id: &str,
    precondition: &VersionPrecondition,
    edit: &ResourceEdit,
) -> ApiResult<VersionedEntry> {
    let (state, org, nonce) = (&admin.state, admin.org(), RequestId::random());
    let references = ResourceReferences::load(&state.apply, org, R::KIND).await?;
    loop {
        {
            let _write_lock = state.apply.write_lock.lock().await;
            let found = find(state, org, R::KIND, id).await?;
            precondition.check(found.version)?;
            let planner = EntryPlanner::of_one(&state.apply, org, admin.administrator.author());
            let entry = edited::<R>(&planner, &found.entry, edit, &references).await?;
            if entry == found.entry {
                return Ok(found);
            }
            let lock_name = format!("admin-change:{}:{}", found.entry.id(), found.version);
            match try_acquire_lock(state, &lock_name, nonce.as_str()).await {
                LockAttempt::Acquired | LockAttempt::Unavailable => {
                    state.apply.catalog.put(&entry).await?;
                    let (before, after) = (Some(&found.entry), Some(&entry));
                    admin
                        .record_change(AuditAction::Update, before, after)
                        .await;
                    return find(state, org, R::KIND, id).await;
                }
                LockAttempt::HeldByOther if precondition.is_given() => {
                    return Err(changed_meanwhile(found.version));
                }
                LockAttempt::HeldByOther => {}
            }
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}

/// Returns the entry with the changes of `draft` by a member, without saving it.
pub(super) async fn drafted<R: Resource>(
    state: &AppState,
    org: &OrgId,
    id: &str,
    draft: Option<JsonObject>,
) -> ApiResult<CatalogEntry> {
    let planner = EntryPlanner {
        is_draft: true,
        ..EntryPlanner::of_one(&state.apply, org, ChangeAuthor::Member)
    };
    if id == UNSAVED {
        let draft = draft.ok_or_else(|| {
            ApiError::field(
                "draft",
                "is required for a resource that has not been saved yet",
            )
        })?;
        return Ok(R::plan(&planner, &R::Fields::from_fields(draft)?, None).await?);
    }
    let found = find(state, org, R::KIND, id).await?.entry;
    let Some(mut draft) = draft else {
        return Ok(found);
    };
    // A resource can be sent back as it was read. A playground run changes nothing, so that any
    // version is accepted.
    draft.remove("version");
    let references = ResourceReferences::load(&state.apply, org, R::KIND).await?;
    edited::<R>(&planner, &found, &ResourceEdit::Merge(draft), &references).await
}

async fn edited<R: Resource>(
    planner: &EntryPlanner<'_>,
    current: &CatalogEntry,
    edit: &ResourceEdit,
    references: &ResourceReferences,
) -> ApiResult<CatalogEntry> {
    let fields = R::Fields::from_fields(new_fields::<R>(current, edit, references)?)?;
    let entry = R::plan(planner, &fields, Some(current)).await?;
    // Ids are derived from slugs.
    if entry.id() == current.id() {
        Ok(entry)
    } else {
        Err(ApiError::field("slug", "cannot be changed"))
    }
}

fn new_fields<R: Resource>(
    current: &CatalogEntry,
    edit: &ResourceEdit,
    references: &ResourceReferences,
) -> ApiResult<JsonObject> {
    let stored = R::fields(current, references).ok_or_else(|| other_kind(R::KIND))?;
    let mut stored = fields_of(&stored)?;
    let (ResourceEdit::Replace(sent) | ResourceEdit::Merge(sent)) = edit;
    let mut sent = sent.clone();
    // A resource can be sent back as it was read.
    for (name, value) in fields_of(&R::show(current, None, references)?)? {
        if stored.contains_key(&name) {
            continue;
        }
        let is_changed = sent.remove(&name).is_some_and(|sent| sent != value);
        if is_changed && !R::VOLATILE_FIELDS.contains(&name.as_str()) {
            return Err(ApiError::field(name, "cannot be changed"));
        }
    }
    if matches!(edit, ResourceEdit::Replace(_)) {
        return Ok(sent);
    }
    R::prepare_patch(&mut sent);
    merge(&mut stored, sent);
    Ok(stored)
}

/// Applies a JSON merge patch (RFC 7396) to an object.
fn merge(target: &mut JsonObject, patch: JsonObject) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(&name);
            }
            Value::Object(patch) => {
                let inner = target.entry(name).or_insert(Value::Null);
                if !inner.is_object() {
                    *inner = Value::Object(JsonObject::new());
                }
                if let Value::Object(inner) = inner {
                    merge(inner, patch);
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

    fn object(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn patch_merges_objects_replaces_lists_and_clears_with_null() {
        let mut target = object(json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2] }));
        let patch = json!({ "a": null, "b": { "c": 4 }, "e": [5], "f": { "g": 6, "h": null } });
        merge(&mut target, object(patch));
        let merged = json!({ "b": { "c": 4, "d": 3 }, "e": [5], "f": { "g": 6 } });
        assert_eq!(Value::from(target), merged);
    }
}
