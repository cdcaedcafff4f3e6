//! Keys of a document: made once, and shown once, in the answer to the document that made them.

use serde::Serialize;
use switchboard_backends::{
    catalog::{Entry, EntryKind},
    store::StoreError,
};
use switchboard_schemas::{
    api_key::{ApiKey, ApiKeyText},
    ids::{KeyId, OrgId},
    time::Timestamp,
};

use super::{apply::ApplyContext, audit_fields::WrittenEntry, document::KeyDocument};

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
            Entry::Key { key, hash } if key.name == document.name => Some((key, *hash)),
            _ => None,
        });
        // A rotated key keeps its name until it ends: the document means its successor.
        let known = known.max_by_key(|(key, _)| key.created_at);
        if let Some((key, hash)) = known {
            applied.push(AppliedKey { name: key.name.clone(), id: key.id.clone(), value: None });
            let limits = document.limits.unwrap_or_default();
            let changed = ApiKey { scopes: document.scopes, expires_at: document.expires_at, limits, ..key.clone() };
            if changed != *key {
                let after = Entry::Key { key: changed, hash };
                context.catalog.put(&after).await?;
                written.push(WrittenEntry { before: Some(Entry::Key { key: key.clone(), hash }), after });
            }
            continue;
        }
        let text = ApiKeyText::generate();
        let key = new_key(context, org, document, &text);
        applied.push(AppliedKey { name: key.name.clone(), id: key.id.clone(), value: Some(text.expose().to_owned()) });
        let after = Entry::Key { key, hash: text.hash(&context.secret).0 };
        context.catalog.put(&after).await?;
        written.push(WrittenEntry { before: None, after });
    }
    Ok((applied, written))
}

/// A key with what `document` says of it, whose text is `text`.
pub(super) fn new_key(context: &ApplyContext, org: &OrgId, document: KeyDocument, text: &ApiKeyText) -> ApiKey {
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
