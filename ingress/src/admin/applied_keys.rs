//! API keys of an applied document. Each key is created once, and only the response to that
//! document shows its text.

use std::time::Duration;

use serde::Serialize;
use switchboard_backends::{
    StoreError,
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText},
    ids::{EventId, KeyId, OrgId, RequestId},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{entries::WrittenEntry, resources::keys::KeyFields};
use crate::state::apply_context::ApplyContext;

/// The longest time that the creation of a key takes; a key that is missing afterwards will not
/// appear.
const CREATION_MAX: Duration = Duration::from_secs(5);
/// The interval at which a key that another process creates is looked up.
const CREATION_POLL: Duration = Duration::from_millis(50);

/// An API key of an applied document.
#[derive(Serialize, ToSchema)]
pub struct AppliedKey {
    /// The name in the document.
    pub name: String,
    /// The id of the key.
    pub id: KeyId,
    /// The text of the key; only in the response to the document that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value: Option<String>,
}

/// Creates the keys whose names are new in the organization. An existing key keeps its text and
/// gets the scopes, expiry and limits of the document, so that a document can restrict a key or end
/// it.
pub(super) async fn apply_keys(
    context: &ApplyContext,
    org: &OrgId,
    documents: &[KeyFields],
) -> Result<(Vec<AppliedKey>, Vec<WrittenEntry>), StoreError> {
    if documents.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let stored = context.catalog.list(EntryKind::Key, Some(org)).await?;
    let (mut applied, mut written) = (Vec::with_capacity(documents.len()), Vec::new());
    for fields in documents {
        let latest = latest_key(&stored, &fields.name);
        let existing = latest.map(|(key, hash)| (key.clone(), hash));
        let text = ApiKeyText::generate();
        let key = new_key(context, org, fields.clone(), &text);
        let existing = match existing {
            None => find_concurrently_created(context, &key).await?,
            existing => existing,
        };
        let (before, after, value) = match existing {
            Some((stored, hash)) => {
                let key = ApiKey {
                    scopes: key.scopes,
                    expires_at: key.expires_at,
                    limits: key.limits,
                    ..stored.clone()
                };
                (
                    Some(CatalogEntry::Key { key: stored, hash }),
                    CatalogEntry::Key { key, hash },
                    None,
                )
            }
            None => {
                let (hash, value) = (text.hash(&context.secret).0, text.expose().to_owned());
                (None, CatalogEntry::Key { key, hash }, Some(value))
            }
        };
        if let CatalogEntry::Key { key, .. } = &after {
            applied.push(AppliedKey {
                name: key.name.clone(),
                id: key.id.clone(),
                value,
            });
        }
        if before.as_ref() != Some(&after) {
            context.catalog.put(&after).await?;
            written.push(WrittenEntry { before, after });
        }
    }
    Ok((applied, written))
}

/// Returns the key that a document means by this name: of a rotated key and its successor, the
/// successor.
pub(super) fn latest_key<'a>(
    stored: &'a [CatalogEntry],
    name: &str,
) -> Option<(&'a ApiKey, [u8; 32])> {
    let same_name = stored.iter().filter_map(|entry| match entry {
        CatalogEntry::Key { key, hash } if key.name == name => Some((key, *hash)),
        _ => None,
    });
    same_name.max_by_key(|(key, _)| key.created_at)
}

/// Returns the key of this name that another process has just created. On `None` the caller creates
/// `key`.
///
/// Processes agree through a note in the relay, because the store has no conditional write. The
/// note names the key; if that key was deleted or never written, the search continues with the next
/// note. Returns `None` while the relay is unavailable.
pub(super) async fn find_concurrently_created(
    context: &ApplyContext,
    key: &ApiKey,
) -> Result<Option<(ApiKey, [u8; 32])>, StoreError> {
    let own = format!(
        "{} {} {}",
        key.id,
        key.created_at.micros(),
        RequestId::random()
    );
    let mut after = String::new();
    loop {
        // Hashed, because the name of a key can be any text.
        let name = EventId::derive(&format!("{}/{after}", key.org_id), &key.name);
        let noted = context
            .relay
            .get_or_insert(&format!("admin-key:{name}"), &own)
            .await;
        let noted = match noted {
            Ok(noted) => noted,
            Err(error) => {
                tracing::warn!(%error, "relay unavailable, key created without a lock");
                return Ok(None);
            }
        };
        let mut parts = noted.split(' ');
        let (Some(id), Some(began)) = (parts.next(), parts.next()) else {
            return Ok(None);
        };
        if noted == own {
            return Ok(None);
        }
        let began = Timestamp::from_micros(began.parse().unwrap_or_default());
        if let Some(created) = wait_for_key(context, key, id, began).await? {
            return Ok(Some(created));
        }
        id.clone_into(&mut after);
    }
}

/// Waits for a key that another process is creating. Returns `None` if it does not appear in time
/// or was renamed.
async fn wait_for_key(
    context: &ApplyContext,
    key: &ApiKey,
    id: &str,
    began: Timestamp,
) -> Result<Option<(ApiKey, [u8; 32])>, StoreError> {
    loop {
        match context.catalog.get(EntryKind::Key, id).await? {
            Some(CatalogEntry::Key { key: created, hash }) if created.org_id == key.org_id => {
                return Ok(Some((created, hash)).filter(|(created, _)| created.name == key.name));
            }
            _ => {}
        }
        let waited = Timestamp::now().millis_since(began);
        if u128::from(waited) >= CREATION_MAX.as_millis() {
            return Ok(None);
        }
        tokio::time::sleep(CREATION_POLL).await;
    }
}

/// Creates a key with these fields and this text.
pub(super) fn new_key(
    context: &ApplyContext,
    org: &OrgId,
    fields: KeyFields,
    text: &ApiKeyText,
) -> ApiKey {
    let created_at = Timestamp::now();
    ApiKey {
        id: KeyId::derive(&context.secret, org, &fields.name, created_at.micros()),
        org_id: org.clone(),
        name: fields.name,
        scopes: fields.scopes,
        expires_at: fields.expires_at,
        limits: fields.limits.unwrap_or_default(),
        last_four: text.last_four().to_owned(),
        created_at,
    }
}
