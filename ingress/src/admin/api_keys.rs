//! `/api/admin/organizations/{org}/keys`: what keys have beyond other things. A key's text is in the answer that makes it
//! and nowhere else, and one key can follow another while both work.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde_json::{Value, json};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText},
    audit::AuditAction,
    ids::{KeyId, OrgId},
    time::Timestamp,
};

use super::{
    administrator::{Action, Administrator},
    audit_fields::record_entry,
    keys::{made_by_another, new_key},
    one_thing::{Fields, Slugs, read_one},
    precondition::{Precondition, etag},
    publish_changes::publish_changes,
    things::{created, find, organization, read_fields, view},
};
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

const OVERLAP_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
const OVERLAP_MAX: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const OVERLAP: &str = "overlapSeconds";
const EXPIRES_AT: &str = "expiresAt";

/// Makes a key and shows its text, this once.
pub(super) async fn create(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageKeys).await?;
    let (_, fields) = read_fields(&state, request).await?;
    let document = read_one(&organization, EntryKind::Key, fields)?
        .keys
        .into_iter()
        .next();
    let document =
        document.ok_or_else(|| ApiError::internal(&"a document of one key holds none"))?;
    let _guard = state.apply.write_lock.lock().await;
    refuse_taken_name(&state, &organization.id, &document.name).await?;
    let text = ApiKeyText::generate();
    let key = new_key(&state.apply, &organization.id, document, &text);
    if let Some((taken, _)) = made_by_another(&state.apply, &key).await? {
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
    shown_once(&state, &entry, &text, json!({})).await
}

/// Makes the key's successor of the same name, scopes and limits; the old one goes on for a while and then ends.
pub(super) async fn rotate(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageKeys).await?;
    find(&state, &organization.id, EntryKind::Key, &id).await?;
    let (headers, mut fields) = read_fields(&state, request).await?;
    let precondition = Precondition::take(&headers, &mut fields)?;
    let wanted = Rotation::read(fields)?;
    let _guard = state.apply.write_lock.lock().await;
    let found = find(&state, &organization.id, EntryKind::Key, &id).await?;
    precondition.check(found.version)?;
    let CatalogEntry::Key { key: old, hash } = found.entry else {
        return Err(ApiError::internal(&"no key lies under a key's id"));
    };
    let (text, now) = (ApiKeyText::generate(), Timestamp::now());
    let successor = wanted.successor(&state, &old, &text, now);
    let ended = CatalogEntry::Key {
        key: wanted.ended(old.clone(), now),
        hash,
    };
    let entry = put(&state, successor, &text).await?;
    if let Err(error) = state.apply.catalog.put(&ended).await {
        // Its text was shown to nobody. Should this fail too, a key lies there that nobody holds.
        let _ = state
            .apply
            .catalog
            .remove(EntryKind::Key, &organization.id, entry.id())
            .await;
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
    let old = CatalogEntry::Key { key: old, hash };
    record_entry(
        &administrator,
        &state,
        AuditAction::Rotate,
        Some(&old),
        Some(&ended),
    )
    .await;
    shown_once(
        &state,
        &entry,
        &text,
        json!({ "replaces": view(&ended, None, &Slugs::default())? }),
    )
    .await
}

/// A name tells keys apart: a document finds a key by it.
pub(super) async fn refuse_taken_name(state: &AppState, org: &OrgId, name: &str) -> ApiResult<()> {
    let keys = state.apply.catalog.list(EntryKind::Key, Some(org)).await?;
    let taken = keys
        .iter()
        .find(|entry| matches!(entry, CatalogEntry::Key { key, .. } if key.name == name));
    match taken {
        None => Ok(()),
        Some(taken) => Err(name_is_taken(taken.id())),
    }
}

fn name_is_taken(id: &str) -> ApiError {
    let detail = "there is a key of this name already";
    ApiError::new(ErrorCode::Conflict, detail)
        .param("name")
        .details(json!({ "id": id }))
}

async fn put(state: &AppState, key: ApiKey, text: &ApiKeyText) -> ApiResult<CatalogEntry> {
    let entry = CatalogEntry::Key {
        key,
        hash: text.hash(&state.secret).0,
    };
    state.apply.catalog.put(&entry).await?;
    Ok(entry)
}

async fn shown_once(
    state: &AppState,
    entry: &CatalogEntry,
    text: &ApiKeyText,
    more: Value,
) -> ApiResult<Response> {
    let found = find(state, entry.org_id(), EntryKind::Key, entry.id()).await?;
    let mut shown = view(&found.entry, Some(found.version), &Slugs::default())?;
    if let (Value::Object(shown), Value::Object(more)) = (&mut shown, more) {
        shown.extend(more);
        shown.insert("value".into(), text.expose().into());
    }
    let path = format!(
        "/api/admin/organizations/{}/keys/{}",
        entry.org_id(),
        entry.id()
    );
    let mut response = created((StatusCode::CREATED, Json(shown)).into_response(), &path);
    if let Some(etag) = etag(found.version) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

/// How a key is followed.
struct Rotation {
    overlap: Duration,
    /// The successor's end; none: as long a life as the old key was given.
    expires_at: Option<Option<Timestamp>>,
}

impl Rotation {
    fn read(mut fields: Fields) -> ApiResult<Self> {
        let overlap = match fields.remove(OVERLAP) {
            None | Some(Value::Null) => OVERLAP_DEFAULT,
            Some(value) => value
                .as_u64()
                .map(Duration::from_secs)
                .filter(|overlap| *overlap <= OVERLAP_MAX)
                .ok_or_else(|| {
                    ApiError::field(
                        OVERLAP,
                        "must be a whole number of seconds, at most 7776000 (90 days)",
                    )
                })?,
        };
        let expires_at = match fields.remove(EXPIRES_AT) {
            None => None,
            Some(value) => Some(
                serde_json::from_value(value)
                    .map_err(|_| ApiError::field(EXPIRES_AT, "must be a time (RFC 3339)"))?,
            ),
        };
        match fields.keys().next() {
            Some(unknown) => Err(ApiError::field(unknown, "is unknown")),
            None => Ok(Self {
                overlap,
                expires_at,
            }),
        }
    }

    fn successor(
        &self,
        state: &AppState,
        old: &ApiKey,
        text: &ApiKeyText,
        now: Timestamp,
    ) -> ApiKey {
        let same_life = || {
            let end = old.expires_at?;
            Some(Timestamp::from_micros(
                now.micros() + (end.micros() - old.created_at.micros()).max(0),
            ))
        };
        ApiKey {
            id: KeyId::derive(&state.secret, &old.org_id, &old.name, now.micros()),
            last_four: text.last_four().to_owned(),
            created_at: now,
            expires_at: self.expires_at.unwrap_or_else(same_life),
            ..old.clone()
        }
    }

    /// The old key, which ends with the overlap, and no later than it would have ended anyway.
    fn ended(&self, old: ApiKey, now: Timestamp) -> ApiKey {
        let overlap = i64::try_from(self.overlap.as_micros()).unwrap_or(i64::MAX);
        let end = Timestamp::from_micros(now.micros().saturating_add(overlap));
        ApiKey {
            expires_at: Some(old.expires_at.map_or(end, |sooner| sooner.min(end))),
            ..old
        }
    }
}
