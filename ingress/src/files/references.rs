//! Files that a message names: which ones a caller may name, and where.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_backends::files::StoredFile;
use switchboard_schemas::{
    client_text::{SessionId, VisitorId},
    conversation::ConversationOwner,
    file::{ATTACHMENTS_MAX, Attachment},
    ids::{ConversationId, FileId, OrgId},
};
use utoipa::ToSchema;

use super::upload::unavailable;
use crate::{
    http::{ApiError, ApiResult, fields},
    state::AppState,
};

/// Name of the field in bodies.
pub(crate) const ATTACHMENTS: &str = "attachments";

/// A file that a message names.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AttachmentReference {
    /// Id of an uploaded file.
    pub(crate) file_id: FileId,
}

/// The message that names files.
pub(crate) struct NamingMessage<'a> {
    pub(crate) org_id: &'a OrgId,
    pub(crate) owner: &'a ConversationOwner,
    pub(crate) conversation_id: &'a ConversationId,
    pub(crate) session_id: &'a SessionId,
    /// Visitor whose token was used.
    pub(crate) visitor_id: Option<&'a VisitorId>,
}

/// Parses the field `attachments`: a list of objects with `fileId`.
pub(crate) fn parse_references(value: &Value) -> ApiResult<Vec<FileId>> {
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return Err(ApiError::field(ATTACHMENTS, "must be a list")),
    };
    if items.len() > ATTACHMENTS_MAX {
        let fault = format!("has more than {ATTACHMENTS_MAX} files");
        let details = json!({ "max": ATTACHMENTS_MAX, "actual": items.len() });
        return Err(ApiError::field(ATTACHMENTS, fault).details(details));
    }
    let mut files = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Value::Object(item) = item else {
            let name = format!("{ATTACHMENTS}[{index}]");
            return Err(ApiError::field(name, "must be an object with fileId"));
        };
        let name = field_name(index);
        let id = fields::required_text_value(&name, item.get("fileId").unwrap_or(&Value::Null))?;
        let id: FileId = id.parse().map_err(|_| unknown(index))?;
        if files.contains(&id) {
            return Err(ApiError::field(name, "is there twice"));
        }
        files.push(id);
    }
    Ok(files)
}

/// Finds the files that a public message names.
///
/// # Errors
/// 400 with the first one that does not exist, has expired, or belongs elsewhere.
pub(crate) async fn find_files(
    state: &AppState,
    message: &NamingMessage<'_>,
    files: &[FileId],
) -> ApiResult<Vec<Attachment>> {
    let org = message.org_id;
    let found = find_each(state, org, files, |file| message.may_name(file)).await?;
    // Two messages that name a file at the same time do not both get it.
    for (index, id) in files.iter().enumerate() {
        let store = &state.backends.files;
        let claimed = store.claim(org, message.conversation_id, id).await;
        if !claimed.map_err(|error| unavailable(&error))? {
            return Err(unknown(index));
        }
    }
    Ok(found)
}

/// Finds the files that a playground run names.
///
/// # Errors
/// 400, as for [`find_files`].
pub(crate) async fn find_playground_files(
    state: &AppState,
    org: &OrgId,
    files: &[FileId],
) -> ApiResult<Vec<Attachment>> {
    find_each(state, org, files, |file| file.header.is_playground).await
}

/// Finds the files of earlier messages of a playground run; those that are gone are left out.
///
/// # Errors
/// 503.
pub(crate) async fn find_known_files(
    state: &AppState,
    org: &OrgId,
    files: &[FileId],
) -> ApiResult<HashMap<FileId, Attachment>> {
    let mut known = HashMap::with_capacity(files.len());
    for id in files {
        let file = state.backends.files.find(org, id).await;
        let file = file.map_err(|error| unavailable(&error))?;
        if let Some(file) = file.filter(|file| file.header.is_playground) {
            known.insert(id.clone(), file.attachment);
        }
    }
    Ok(known)
}

async fn find_each(
    state: &AppState,
    org: &OrgId,
    files: &[FileId],
    may_name: impl Fn(&StoredFile) -> bool,
) -> ApiResult<Vec<Attachment>> {
    let mut found = Vec::with_capacity(files.len());
    for (index, id) in files.iter().enumerate() {
        let file = state.backends.files.find(org, id).await;
        let file = file.map_err(|error| unavailable(&error))?;
        let file = file.filter(&may_name).ok_or_else(|| unknown(index))?;
        found.push(file.attachment);
    }
    Ok(found)
}

impl NamingMessage<'_> {
    fn may_name(&self, file: &StoredFile) -> bool {
        let header = &file.header;
        let is_own = |session: &SessionId| session == self.session_id;
        let is_here = |conversation: &ConversationId| conversation == self.conversation_id;
        !header.is_playground
            && header.owner == *self.owner
            && header.visitor_id.as_ref() == self.visitor_id
            && header.session_id.as_ref().is_none_or(is_own)
            && file.conversation.as_ref().is_none_or(is_here)
    }
}

fn field_name(index: usize) -> String {
    format!("{ATTACHMENTS}[{index}].fileId")
}

fn unknown(index: usize) -> ApiError {
    let fault = "is no file that this conversation can use: unknown, expired, or sent elsewhere";
    ApiError::field(field_name(index), fault)
}
