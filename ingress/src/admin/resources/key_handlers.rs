//! Creation and rotation of API keys. After a rotation, the key and its successor both work for a
//! while.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText},
    audit::AuditAction,
    ids::{KeyId, OrgId},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    handlers::refuse_further,
    keys::{KeyFields, KeyResource, KeyView, check_key_ceilings, refuse_taken_name},
    references::ResourceReferences,
    resource::Resource,
};
use crate::{
    admin::{
        announcements::publish_changes,
        applied_keys::{find_concurrently_created, new_key},
        authorization::{Admin, ResourceId},
        bodies::{JsonBody, RequestBody, VersionedFields},
        entries::{find, other_kind, path_of},
        errors::{ValidateFields, ValidationError},
        permissions::ManageKeys,
        planner::{ApplyError, EntryPlanner},
        preconditions::VersionPrecondition,
        responses::JsonResponse,
    },
    http::{ApiError, ApiResult},
    state::AppState,
};

const OVERLAP_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
const OVERLAP_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A new API key, in the only response that contains its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct NewKeyView {
    #[serde(flatten)]
    key: KeyView,
    /// The text of the key.
    value: String,
    /// The key that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replaces: Option<KeyView>,
}

/// The body of a key rotation.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct KeyRotation {
    /// The time for which the old key still works, in seconds: a day by default, at most 90 days.
    #[serde(default)]
    #[schema(maximum = 7_776_000)]
    overlap_seconds: Option<u64>,
    /// The time from which the successor is rejected; `null` for never. By default, it has the same
    /// lifetime as the old key had.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Timestamp>)]
    expires_at: Option<Option<Timestamp>>,
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// Creates a key and returns its text.
pub(in crate::admin) async fn create(
    admin: Admin<ManageKeys>,
    body: JsonBody<KeyFields>,
) -> ApiResult<JsonResponse<201, NewKeyView>> {
    let fields = body.parse(&admin.state).await?;
    let context = &admin.state.apply;
    let _write_lock = context.write_lock.lock().await;
    let planner = EntryPlanner::of_one(context, admin.org(), admin.administrator.author());
    check_key_ceilings(&planner, &fields, None).map_err(ApiError::from)?;
    refuse_further(&planner, EntryKind::Key).await?;
    refuse_taken_name(&planner, &fields.name).await?;
    let text = ApiKeyText::generate();
    let key = new_key(context, admin.org(), fields, &text);
    if let Some((taken, _)) = find_concurrently_created(context, &key).await? {
        return Err(ApplyError::NameTaken(taken.id.as_str().to_owned()).into());
    }
    let entry = put(&admin.state, key, &text).await?;
    admin
        .record_change(AuditAction::Create, None, Some(&entry))
        .await;
    show_once(&admin.state, &entry, &text, None).await
}

/// Creates a successor of a key with the same name, scopes and limits. The old key ends after the
/// overlap.
pub(in crate::admin) async fn rotate(
    admin: Admin<ManageKeys>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<VersionedFields<KeyRotation>>,
) -> ApiResult<JsonResponse<201, NewKeyView>> {
    let (state, org) = (&admin.state, admin.org());
    find(state, org, EntryKind::Key, &id).await?;
    let (fields, precondition) = body.read_change(state, precondition).await?;
    let rotation = KeyRotation::from_fields(fields)?;
    let _write_lock = state.apply.write_lock.lock().await;
    let planner = EntryPlanner::of_one(&state.apply, org, admin.administrator.author());
    refuse_further(&planner, EntryKind::Key).await?;
    let old = find(state, org, EntryKind::Key, &id).await?;
    precondition.check(old.version)?;
    let CatalogEntry::Key { key, hash } = &old.entry else {
        return Err(other_kind(EntryKind::Key));
    };
    let (text, now) = (ApiKeyText::generate(), Timestamp::now());
    let successor = rotation.successor(state, key, &text, now);
    let ended = CatalogEntry::Key {
        key: ended_after(rotation.overlap(), key.clone(), now),
        hash: *hash,
    };
    let entry = put(state, successor, &text).await?;
    if let Err(error) = state.apply.catalog.put(&ended).await {
        roll_back(state, org, &entry).await;
        return Err(error.into());
    }
    publish_changes(&state.apply, &[&entry, &ended]).await;
    admin
        .record_entry(AuditAction::Create, None, Some(&entry))
        .await;
    let (before, after) = (Some(&old.entry), Some(&ended));
    admin.record_entry(AuditAction::Rotate, before, after).await;
    let replaces = KeyResource::show(&ended, None, &ResourceReferences::default())?;
    show_once(state, &entry, &text, Some(replaces)).await
}

/// Removes a successor whose text was not returned. If that fails too, an unused key remains.
async fn roll_back(state: &AppState, org: &OrgId, successor: &CatalogEntry) {
    let removed = state
        .apply
        .catalog
        .remove(EntryKind::Key, org, successor.id());
    if let Err(error) = removed.await {
        tracing::warn!(%error, key.id = successor.id(), "key successor not rolled back");
    }
}

async fn put(state: &AppState, key: ApiKey, text: &ApiKeyText) -> ApiResult<CatalogEntry> {
    let hash = text.hash(&state.secret).0;
    let entry = CatalogEntry::Key { key, hash };
    state.apply.catalog.put(&entry).await?;
    Ok(entry)
}

async fn show_once(
    state: &AppState,
    entry: &CatalogEntry,
    text: &ApiKeyText,
    replaces: Option<KeyView>,
) -> ApiResult<JsonResponse<201, NewKeyView>> {
    let found = find(state, entry.org_id(), EntryKind::Key, entry.id()).await?;
    let view = NewKeyView {
        key: KeyResource::show(
            &found.entry,
            Some(found.version),
            &ResourceReferences::default(),
        )?,
        value: text.expose().to_owned(),
        replaces,
    };
    let response = JsonResponse::new(view).version(found.version);
    Ok(response.location(path_of(entry, KeyResource::COLLECTION)))
}

impl ValidateFields for KeyRotation {
    fn validate(&self) -> Result<(), ValidationError> {
        if self.overlap() <= OVERLAP_MAX {
            return Ok(());
        }
        let reason = "overlapSeconds must be a whole number of seconds, at most 7776000 (90 days)";
        Err(ValidationError::new("overlapSeconds", reason))
    }
}

impl KeyRotation {
    fn overlap(&self) -> Duration {
        self.overlap_seconds
            .map_or(OVERLAP_DEFAULT, Duration::from_secs)
    }

    fn successor(
        &self,
        state: &AppState,
        old: &ApiKey,
        text: &ApiKeyText,
        now: Timestamp,
    ) -> ApiKey {
        let same_life = || {
            let life = old.expires_at?.micros() - old.created_at.micros();
            Some(Timestamp::from_micros(now.micros() + life.max(0)))
        };
        ApiKey {
            id: KeyId::derive(&state.secret, &old.org_id, &old.name, now.micros()),
            last_four: text.last_four().to_owned(),
            created_at: now,
            expires_at: self.expires_at.unwrap_or_else(same_life),
            ..old.clone()
        }
    }
}

/// Returns the old key with an expiry at the end of the overlap, or earlier if it had one.
fn ended_after(overlap: Duration, old: ApiKey, now: Timestamp) -> ApiKey {
    let end = now.after(overlap);
    ApiKey {
        expires_at: Some(old.expires_at.map_or(end, |sooner| sooner.min(end))),
        ..old
    }
}
