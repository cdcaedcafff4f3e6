//! API keys of an organization. The text of a key is in the answer that creates it and nowhere else; a
//! successor can take the place of a key while both work.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText, KeyLimits, KeyScope},
    audit::AuditAction,
    ids::{KeyId, OrgId},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{Identity, References, Resource, ResourceId, find, other_kind, path_of};
use crate::{
    admin::{
        announcements::publish_changes,
        answers::Answer,
        applied_keys::{find_concurrently_created, new_key},
        apply::EntryPlanner,
        audit_entries::record_entry,
        authorization::Admin,
        bodies::{Body, parse_fields, parse_value},
        errors::{Validate, ValidationError},
        permissions::ManageKeys,
        preconditions::Precondition,
        validation::{check_at_least_one, check_name},
    },
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

const OVERLAP_SECONDS_DEFAULT: u64 = 24 * 60 * 60;
const OVERLAP_SECONDS_MAX: u64 = 90 * 24 * 60 * 60;

/// The resource "API key".
pub(in crate::admin) struct Keys;

/// An API key as it is configured.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct KeyFields {
    /// The name, which no other key of the organization has.
    pub(in crate::admin) name: String,
    /// The parts of the public API that it opens; none opens all of them.
    #[serde(default)]
    pub(in crate::admin) scopes: Vec<KeyScope>,
    /// The time from which it is refused; `null` for never.
    #[serde(default)]
    pub(in crate::admin) expires_at: Option<Timestamp>,
    /// Requests that it allows in a minute.
    #[serde(default)]
    #[schema(value_type = KeyLimits)]
    pub(in crate::admin) limits: Option<KeyLimits>,
}

/// An API key as it is shown.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct KeyView {
    #[serde(flatten)]
    identity: Identity,
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

/// An API key in the only answer that shows its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct NewKeyView {
    #[serde(flatten)]
    key: KeyView,
    /// The text of the key.
    value: String,
    /// The key that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replaces: Option<KeyView>,
}

/// The terms on which a key gets a successor.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct KeyRotation {
    /// Seconds for which the old key still works: a day by default, at most 90 days.
    #[serde(default)]
    #[schema(maximum = 7_776_000)]
    overlap_seconds: Option<u64>,
    /// The time from which the successor is refused, `null` for never. Absent, it lives as long as the
    /// old key was given.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Timestamp>)]
    expires_at: Option<Option<Timestamp>>,
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl Validate for KeyFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_name(&self.name)?;
        let limits = self.limits.clone().unwrap_or_default();
        for (name, limit) in [
            ("limits.chatPerMinute", limits.chat_per_minute),
            ("limits.configPerMinute", limits.config_per_minute),
            (
                "limits.conversationsPerMinute",
                limits.conversations_per_minute,
            ),
        ] {
            check_at_least_one(limit.unwrap_or(1), name)?;
        }
        Ok(())
    }
}

impl Resource for Keys {
    const KIND: EntryKind = EntryKind::Key;
    const NAME: &'static str = "Key";
    const COLLECTION: &'static str = "keys";
    const VOLATILE_FIELDS: &'static [&'static str] = &["lastUsedAt"];
    type Change = ManageKeys;
    type Fields = KeyFields;
    type View = KeyView;

    fn parse(fields: Value) -> Result<KeyFields, ValidationError> {
        parse_value(fields)
    }

    fn fields(entry: &CatalogEntry, _: &References) -> Option<KeyFields> {
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
        entry: &CatalogEntry,
        version: Option<i64>,
        references: &References,
    ) -> Option<KeyView> {
        let CatalogEntry::Key { key, .. } = entry else {
            return None;
        };
        Some(KeyView {
            identity: Identity::new(entry, version),
            fields: Self::fields(entry, references)?,
            last_four: key.last_four.clone(),
            created_at: key.created_at,
            last_used_at: references.last_use(entry.id()),
        })
    }

    /// Plans a change only: the text of a new key is made where it is shown.
    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: KeyFields,
        current: Option<&CatalogEntry>,
    ) -> ApiResult<CatalogEntry> {
        let Some(CatalogEntry::Key { key, hash }) = current else {
            return Err(other_kind(EntryKind::Key));
        };
        if fields.name != key.name {
            refuse_taken_name(planner, &fields.name).await?;
        }
        let key = ApiKey {
            name: fields.name,
            scopes: fields.scopes,
            expires_at: fields.expires_at,
            limits: fields.limits.unwrap_or_default(),
            ..key.clone()
        };
        Ok(CatalogEntry::Key { key, hash: *hash })
    }
}

/// Creates a key and shows its text.
pub(in crate::admin) async fn create(
    admin: Admin<ManageKeys>,
    body: Body<KeyFields>,
) -> ApiResult<Answer<201, NewKeyView>> {
    let Admin {
        state,
        administrator,
        subject,
        ..
    } = admin;
    let fields = Keys::parse_valid(body.fields(&state).await?)?;
    let _write_lock = state.apply.write_lock.lock().await;
    let planner = EntryPlanner::of_one(&state.apply, &subject.id);
    refuse_taken_name(&planner, &fields.name).await?;
    let text = ApiKeyText::generate();
    let key = new_key(&state.apply, &subject.id, fields, &text);
    if let Some((taken, _)) = find_concurrently_created(&state.apply, &key).await? {
        return Err(name_is_taken(taken.id.as_str()));
    }
    let entry = put(&state, key, &text).await?;
    publish_changes(&state.apply, &[&entry]).await;
    record_entry(
        &administrator,
        &state,
        AuditAction::Create,
        None,
        Some(&entry),
    )
    .await;
    show_once(&state, &entry, &text, None).await
}

/// Creates a key's successor of the same name, scopes and limits; the old key ends after the overlap.
pub(in crate::admin) async fn rotate(
    admin: Admin<ManageKeys>,
    ResourceId(id): ResourceId,
    precondition: Precondition,
    body: Body<KeyRotation>,
) -> ApiResult<Answer<201, NewKeyView>> {
    let Admin {
        state,
        administrator,
        subject,
        ..
    } = admin;
    find(&state, &subject.id, EntryKind::Key, &id).await?;
    let mut fields = body.fields(&state).await?;
    let precondition = precondition.with_body(&mut fields)?;
    let rotation: KeyRotation = parse_fields(fields)?;
    let overlap = rotation.overlap()?;
    let _write_lock = state.apply.write_lock.lock().await;
    let old = find(&state, &subject.id, EntryKind::Key, &id).await?;
    precondition.check(old.version)?;
    let CatalogEntry::Key { key, hash } = &old.entry else {
        return Err(other_kind(EntryKind::Key));
    };
    let (text, now) = (ApiKeyText::generate(), Timestamp::now());
    let successor = rotation.successor(&state, key, &text, now);
    let ended = CatalogEntry::Key {
        key: ended_after(overlap, key.clone(), now),
        hash: *hash,
    };
    let entry = put(&state, successor, &text).await?;
    if let Err(error) = state.apply.catalog.put(&ended).await {
        roll_back(&state, &subject.id, &entry).await;
        return Err(error.into());
    }
    publish_changes(&state.apply, &[&entry, &ended]).await;
    record_entry(
        &administrator,
        &state,
        AuditAction::Create,
        None,
        Some(&entry),
    )
    .await;
    let change = (Some(&old.entry), Some(&ended));
    record_entry(
        &administrator,
        &state,
        AuditAction::Rotate,
        change.0,
        change.1,
    )
    .await;
    let replaces = Keys::show(&ended, None, &References::default())?;
    show_once(&state, &entry, &text, Some(replaces)).await
}

/// Removes a successor whose text was never shown. If that fails too, a key stays that nobody holds.
async fn roll_back(state: &AppState, org: &OrgId, successor: &CatalogEntry) {
    let removed = state
        .apply
        .catalog
        .remove(EntryKind::Key, org, successor.id())
        .await;
    if let Err(error) = removed {
        tracing::warn!(%error, key.id = successor.id(), "successor of a key not rolled back");
    }
}

/// Fails with 409 if a key has this name: documents find a key by its name.
async fn refuse_taken_name(planner: &EntryPlanner<'_>, name: &str) -> ApiResult<()> {
    let keys = planner.list(EntryKind::Key).await?;
    let taken = keys
        .iter()
        .find(|entry| matches!(entry, CatalogEntry::Key { key, .. } if key.name == name));
    taken.map_or(Ok(()), |taken| Err(name_is_taken(taken.id())))
}

fn name_is_taken(id: &str) -> ApiError {
    let detail = "a key with this name exists already";
    ApiError::new(ErrorCode::Conflict, detail)
        .param("name")
        .details(serde_json::json!({ "id": id }))
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
) -> ApiResult<Answer<201, NewKeyView>> {
    let found = find(state, entry.org_id(), EntryKind::Key, entry.id()).await?;
    let view = NewKeyView {
        key: Keys::show(&found.entry, Some(found.version), &References::default())?,
        value: text.expose().to_owned(),
        replaces,
    };
    Ok(Answer::new(view)
        .version(found.version)
        .location(path_of::<Keys>(entry)))
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

/// Returns the old key, which ends with the overlap, and no later than it would have ended anyway.
fn ended_after(overlap: Duration, old: ApiKey, now: Timestamp) -> ApiKey {
    let end = now.after(overlap);
    ApiKey {
        expires_at: Some(old.expires_at.map_or(end, |sooner| sooner.min(end))),
        ..old
    }
}
