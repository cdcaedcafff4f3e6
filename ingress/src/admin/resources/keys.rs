//! API keys of an organization. Only the response that creates a key contains its text. A key can be rotated: its successor
//! and the key both work for a while.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::StoreError,
};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText, KeyLimits, KeyScope},
    audit::AuditAction,
    ids::{KeyId, OrgId},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    Resource, ResourceId, ResourceIdentity, ResourceReferences, find, other_kind, path_of,
    references::label,
};
use crate::{
    admin::{
        announcements::publish_changes,
        applied_keys::{find_concurrently_created, new_key},
        apply::{ApplyError, EntryPlanner},
        authorization::Admin,
        bodies::{JsonBody, parse_fields, parse_value},
        errors::{ValidateFields, ValidationError},
        permissions::ManageKeys,
        preconditions::VersionPrecondition,
        responses::JsonResponse,
        validation::{check_at_least_one, check_name},
    },
    http::{ApiError, ApiResult},
    state::AppState,
};

const OVERLAP_SECONDS_DEFAULT: u64 = 24 * 60 * 60;
const OVERLAP_SECONDS_MAX: u64 = 90 * 24 * 60 * 60;

pub(in crate::admin) struct KeyResource;

/// The configuration of an API key.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct KeyFields {
    /// The name, which no other key of the organization has.
    pub(in crate::admin) name: String,
    /// The parts of the public API that it gives access to; an empty list means all.
    #[serde(default)]
    pub(in crate::admin) scopes: Vec<KeyScope>,
    /// The time from which it is rejected; `null` for never.
    #[serde(default)]
    pub(in crate::admin) expires_at: Option<Timestamp>,
    /// The rate limits of the key.
    #[serde(default)]
    #[schema(value_type = KeyLimits)]
    pub(in crate::admin) limits: Option<KeyLimits>,
}

/// An API key in a response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct KeyView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: KeyFields,
    /// The last four characters of its text.
    last_four: String,
    /// The time of its creation.
    created_at: Timestamp,
    /// The time of its last use, up to a minute late; `null` before the first.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
}

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

impl ValidateFields for KeyFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_name(&self.name)?;
        let limits = self.limits.clone().unwrap_or_default();
        let check = |limit: Option<u32>, name| check_at_least_one(limit.unwrap_or(1), name);
        check(limits.chat_per_minute, "limits.chatPerMinute")?;
        check(limits.config_per_minute, "limits.configPerMinute")?;
        let path = "limits.conversationsPerMinute";
        check(limits.conversations_per_minute, path)
    }
}

impl Resource for KeyResource {
    const KIND: EntryKind = EntryKind::Key;
    const NAME: &'static str = "Key";
    const COLLECTION: &'static str = "keys";
    const VOLATILE_FIELDS: &'static [&'static str] = &["lastUsedAt"];
    type Change = ManageKeys;
    type Delete = ManageKeys;
    type Fields = KeyFields;
    type View = KeyView;

    fn parse(fields: Value) -> Result<KeyFields, ValidationError> {
        parse_value(fields)
    }

    fn fields(entry: &CatalogEntry, _: &ResourceReferences) -> Option<KeyFields> {
        let CatalogEntry::Key { key, .. } = entry else {
            return None;
        };
        Some(KeyFields {
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            expires_at: key.expires_at,
            limits: Some(key.limits.clone()),
        })
    }

    fn view(
        identity: ResourceIdentity,
        fields: KeyFields,
        entry: &CatalogEntry,
        references: &ResourceReferences,
    ) -> Option<KeyView> {
        let CatalogEntry::Key { key, .. } = entry else {
            return None;
        };
        Some(KeyView {
            identity,
            fields,
            last_four: key.last_four.clone(),
            created_at: key.created_at,
            last_used_at: references.last_use(entry.id()),
        })
    }

    /// Returns a changed key only; [`create`] generates the text of a new one.
    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: &KeyFields,
        current: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        let Some(CatalogEntry::Key { key, hash }) = current else {
            return Err(StoreError::Malformed("an entry of another kind is no key".into()).into());
        };
        if fields.name != key.name {
            refuse_taken_name(planner, &fields.name).await?;
        }
        let key = ApiKey {
            name: fields.name.clone(),
            scopes: fields.scopes.clone(),
            expires_at: fields.expires_at,
            limits: fields.limits.clone().unwrap_or_default(),
            ..key.clone()
        };
        Ok(CatalogEntry::Key { key, hash: *hash })
    }
}

/// Creates a key and returns its text.
pub(in crate::admin) async fn create(
    admin: Admin<ManageKeys>,
    body: JsonBody<KeyFields>,
) -> ApiResult<JsonResponse<201, NewKeyView>> {
    let fields = KeyResource::parse_valid(body.fields(&admin.state).await?)?;
    let context = &admin.state.apply;
    let _write_lock = context.write_lock.lock().await;
    refuse_taken_name(&EntryPlanner::of_one(context, admin.org()), &fields.name).await?;
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

/// Creates a successor of a key with the same name, scopes and limits. The old key ends after the overlap.
pub(in crate::admin) async fn rotate(
    admin: Admin<ManageKeys>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<KeyRotation>,
) -> ApiResult<JsonResponse<201, NewKeyView>> {
    let (state, org) = (&admin.state, admin.org());
    find(state, org, EntryKind::Key, &id).await?;
    let mut fields = body.fields(state).await?;
    let precondition = precondition.with_body(&mut fields)?;
    let rotation: KeyRotation = parse_fields(fields)?;
    let overlap = rotation.overlap()?;
    let _write_lock = state.apply.write_lock.lock().await;
    let old = find(state, org, EntryKind::Key, &id).await?;
    precondition.check(old.version)?;
    let CatalogEntry::Key { key, hash } = &old.entry else {
        return Err(other_kind(EntryKind::Key));
    };
    let (text, now) = (ApiKeyText::generate(), Timestamp::now());
    let successor = rotation.successor(state, key, &text, now);
    let ended = CatalogEntry::Key {
        key: ended_after(overlap, key.clone(), now),
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

/// Fails with 409 if a key has this name, because documents identify keys by name.
async fn refuse_taken_name(planner: &EntryPlanner<'_>, name: &str) -> Result<(), ApplyError> {
    let catalog = &planner.context.catalog;
    let keys = catalog.list(EntryKind::Key, Some(planner.org)).await?;
    match keys.iter().find(|entry| label(entry) == name) {
        Some(taken) => Err(ApplyError::NameTaken(taken.id().to_owned())),
        None => Ok(()),
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

impl KeyRotation {
    fn overlap(&self) -> ApiResult<Duration> {
        let seconds = self.overlap_seconds.unwrap_or(OVERLAP_SECONDS_DEFAULT);
        if seconds <= OVERLAP_SECONDS_MAX {
            return Ok(Duration::from_secs(seconds));
        }
        let fault = "must be a whole number of seconds, at most 7776000 (90 days)";
        Err(ApiError::field("overlapSeconds", fault))
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
