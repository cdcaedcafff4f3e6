//! Keys of a document: made once, and shown once, in the answer to the document that made them.

use std::time::Duration;

use serde::Serialize;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::StoreError,
};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText},
    ids::{EventId, KeyId, OrgId, RequestId},
    time::Timestamp,
};

use super::{apply::ApplyContext, audit_fields::WrittenEntry, document::KeyDocument};

/// Longer than making a key may take: what is not there after this was not finished.
const MAKING_MAX: Duration = Duration::from_secs(5);
/// Between two looks at what another process is making.
const MAKING_POLL: Duration = Duration::from_millis(50);

/// A key with its id, and with its value if it was made just now.
#[derive(Serialize)]
pub struct AppliedKey {
    /// As in the document.
    pub name: String,
    /// Its id.
    pub id: KeyId,
    /// The key itself; only in the answer to the document that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Makes the keys whose names the organization does not have yet. One that exists keeps its value and takes the document's
/// scopes, expiry and limits, so that a document can narrow a key or end it.
pub(super) async fn apply_keys(
    context: &ApplyContext,
    org: &OrgId,
    documents: Vec<KeyDocument>,
) -> Result<(Vec<AppliedKey>, Vec<WrittenEntry>), StoreError> {
    if documents.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let existing = context.catalog.list(EntryKind::Key, Some(org)).await?;
    let (mut applied, mut written) = (Vec::with_capacity(documents.len()), Vec::new());
    for document in documents {
        let known = existing.iter().filter_map(|entry| match entry {
            CatalogEntry::Key { key, hash } if key.name == document.name => Some((key, *hash)),
            _ => None,
        });
        // A rotated key keeps its name until it ends: the document means its successor.
        let known = known
            .max_by_key(|(key, _)| key.created_at)
            .map(|(key, hash)| (key.clone(), hash));
        let text = ApiKeyText::generate();
        let key = new_key(context, org, document.clone(), &text);
        let known = match known {
            None => made_by_another(context, &key).await?,
            known => known,
        };
        if let Some((key, hash)) = known {
            applied.push(AppliedKey {
                name: key.name.clone(),
                id: key.id.clone(),
                value: None,
            });
            let limits = document.limits.unwrap_or_default();
            let changed = ApiKey {
                scopes: document.scopes,
                expires_at: document.expires_at,
                limits,
                ..key.clone()
            };
            if changed != key {
                let after = CatalogEntry::Key { key: changed, hash };
                context.catalog.put(&after).await?;
                written.push(WrittenEntry {
                    before: Some(CatalogEntry::Key { key, hash }),
                    after,
                });
            }
            continue;
        }
        applied.push(AppliedKey {
            name: key.name.clone(),
            id: key.id.clone(),
            value: Some(text.expose().to_owned()),
        });
        let after = CatalogEntry::Key {
            key,
            hash: text.hash(&context.secret).0,
        };
        context.catalog.put(&after).await?;
        written.push(WrittenEntry {
            before: None,
            after,
        });
    }
    Ok((applied, written))
}

/// The key of this name that another process made meanwhile; none: this one may make `key`. Processes agree by a note in
/// the relay, because the store has no comparison. The note names the key, so that one of a key that went away, or that
/// nobody finished, leads on to the next note. Without the relay only what was read tells them apart.
pub(super) async fn made_by_another(
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
        // Hashed, because a key's name is any text, and no name of ours may hold that.
        let name = EventId::of(&format!("{}/{after}", key.org_id), &key.name);
        let noted = match context
            .relay
            .remember(&format!("admin-key:{name}"), &own)
            .await
        {
            Ok(noted) => noted,
            Err(error) => {
                tracing::warn!(%error, "a key is made without asking other processes");
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
        if let Some(made) = awaited(context, key, id, began.parse().unwrap_or_default()).await? {
            return Ok(Some(made));
        }
        id.clone_into(&mut after);
    }
}

/// The key that somebody began to make; none if it is not there and was not begun just now, or has another name by now.
async fn awaited(
    context: &ApplyContext,
    key: &ApiKey,
    id: &str,
    began_micros: i64,
) -> Result<Option<(ApiKey, [u8; 32])>, StoreError> {
    loop {
        match context.catalog.get(EntryKind::Key, id).await? {
            Some(CatalogEntry::Key { key: made, hash }) if made.org_id == key.org_id => {
                return Ok(Some((made, hash)).filter(|(made, _)| made.name == key.name));
            }
            _ => {}
        }
        let waited = Timestamp::now().millis_since(Timestamp::from_micros(began_micros));
        if u128::from(waited) >= MAKING_MAX.as_millis() {
            return Ok(None);
        }
        tokio::time::sleep(MAKING_POLL).await;
    }
}

/// A key with what `document` says of it, whose text is `text`.
pub(super) fn new_key(
    context: &ApplyContext,
    org: &OrgId,
    document: KeyDocument,
    text: &ApiKeyText,
) -> ApiKey {
    let created_at = Timestamp::now();
    ApiKey {
        id: KeyId::derive(&context.secret, org, &document.name, created_at.micros()),
        org_id: org.clone(),
        name: document.name,
        scopes: document.scopes,
        expires_at: document.expires_at,
        limits: document.limits.unwrap_or_default(),
        last_four: text.last_four().to_owned(),
        created_at,
    }
}
