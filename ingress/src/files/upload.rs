//! Receives a file: checked, sealed and spooled as it arrives, and stored when all of it is there.

use axum::extract::Request;
use http::HeaderMap;
use multer::Field;
use serde::Serialize;
use switchboard_backends::{StoreError, files::FileHeader};
use switchboard_schemas::{
    client_text::{SessionId, VisitorId},
    conversation::ConversationOwner,
    file::{Attachment, FileSettings, FileType},
    ids::{KeyId, OrgId},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    admission::admit_upload,
    claims::{claimed_type, refused},
    content::{ContentCheck, check_office},
    form::{FORM_BYTES_MAX, UploadBody, UploadParts, too_large},
    name::safe_name,
};
use crate::{
    http::{ApiError, ApiResult, body, fields},
    state::AppState,
};

/// Name of the part with the file.
const FILE: &str = "file";
/// Name of the part with the session that the file is meant for.
const SESSION: &str = "sessionId";

/// Longest text of that part, in bytes; more than any session has.
const SESSION_BYTES_MAX: usize = 1 << 10;

/// The form of an upload.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a body that is read part by part")]
pub(crate) struct FileUploadForm {
    /// The file, with its name.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
    /// The session that the file is meant for; messages of other sessions cannot name it then.
    #[schema(value_type = Option<SessionId>)]
    session_id: Option<String>,
}

/// A file that was stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadedFile {
    #[serde(flatten)]
    file: Attachment,
    /// Time at which the file is deleted, unless a message names it before.
    expires_at: Timestamp,
}

/// Recipient and sender of a file, and the files that are accepted there.
pub(crate) struct UploadTarget {
    pub(crate) org_id: OrgId,
    pub(crate) owner: ConversationOwner,
    pub(crate) key_id: Option<KeyId>,
    pub(crate) visitor_id: Option<VisitorId>,
    pub(crate) is_playground: bool,
    /// The files that each possible recipient takes: one for an agent, more for a team.
    pub(crate) accepted: Vec<FileSettings>,
}

impl UploadTarget {
    /// Returns the size of the largest file of a type that one recipient takes; `None` if none
    /// takes the type.
    fn bytes_max_of(&self, kind: FileType) -> Option<u64> {
        let accepted = self.accepted.iter();
        let accepted = accepted.filter(|settings| settings.types.contains(&kind));
        accepted.map(|settings| settings.max_bytes.into()).max()
    }

    /// Returns the size of the largest file of any type.
    fn bytes_max(&self) -> u64 {
        let sizes = self.accepted.iter().map(|settings| settings.max_bytes);
        sizes.max().unwrap_or_default().into()
    }
}

/// The parts of a form that were read.
#[derive(Default)]
struct ReceivedForm {
    session_id: Option<SessionId>,
    file: Option<ReceivedFile>,
}

struct ReceivedFile {
    name: String,
    kind: FileType,
    upload: switchboard_backends::files::FileUpload,
}

/// Receives the file of a request and stores it.
///
/// # Errors
/// 400 for a form without one file, 408, 413 and 415 as soon as a rule is broken, 429 if the
/// organization uploads too much, 503.
pub(crate) async fn receive_upload(
    state: &AppState,
    target: UploadTarget,
    request: Request,
) -> ApiResult<UploadedFile> {
    let (parts, body) = request.into_parts();
    let body = UploadBody::new(body);
    let received = async {
        let place = admit_upload(state, &target.org_id).await?;
        let form = receive_form(state, &target, &parts.headers, &body).await?;
        Ok::<_, ApiError>((place, form))
    };
    let received = received.await;
    let (_place, form) = received.inspect_err(|_| {
        state.uploads.drain(&state.background, body.drain());
    })?;
    let Some(ReceivedFile { name, kind, upload }) = form.file else {
        return Err(ApiError::field(
            FILE,
            "is required: a part with a file name",
        ));
    };
    if upload.bytes() == 0 {
        return Err(ApiError::field(FILE, "is empty"));
    }
    let header = FileHeader {
        name,
        mime_type: kind,
        owner: target.owner,
        key_id: target.key_id,
        visitor_id: target.visitor_id,
        session_id: form.session_id,
        is_playground: target.is_playground,
    };
    let is_office = matches!(kind, FileType::Docx | FileType::Xlsx);
    let check = is_office.then_some(move |content: &[u8]| check_office(kind, content));
    let files = &state.backends.files;
    let stored = upload.finish(files, header, check).await;
    let file = stored.map_err(|error| unavailable(&error))??;
    Ok(UploadedFile {
        expires_at: files.expires_at(&file.attachment.file_id),
        file: file.attachment,
    })
}

async fn receive_form(
    state: &AppState,
    target: &UploadTarget,
    headers: &HeaderMap,
    body: &UploadBody,
) -> ApiResult<ReceivedForm> {
    let bytes_max = target.bytes_max();
    let mut parts = body.parts(headers, bytes_max)?;
    if body::announced_bytes(headers).is_some_and(|bytes| bytes > bytes_max + FORM_BYTES_MAX) {
        return Err(too_large(bytes_max));
    }
    let mut form = ReceivedForm::default();
    while let Some(part) = parts.next_part().await? {
        match part.name() {
            Some(FILE) if form.file.is_some() => {
                return Err(ApiError::field(FILE, "is there twice; send one file"));
            }
            Some(FILE) => form.file = Some(receive_file(state, target, &parts, part).await?),
            Some(SESSION) => {
                let text = parts.text(part, SESSION, SESSION_BYTES_MAX).await?;
                form.session_id = Some(fields::client_text(SESSION, &text)?);
            }
            _ => {}
        }
    }
    Ok(form)
}

async fn receive_file(
    state: &AppState,
    target: &UploadTarget,
    parts: &UploadParts,
    mut part: Field<'static>,
) -> ApiResult<ReceivedFile> {
    let name = safe_name(part.file_name().unwrap_or_default());
    let media_type = part
        .content_type()
        .map_or("", |media_type| media_type.essence_str());
    let kind = claimed_type(&name, &media_type.to_ascii_lowercase())?;
    let bytes_max = target.bytes_max_of(kind);
    let bytes_max = bytes_max.ok_or_else(|| refused("files of this type are not accepted here"))?;
    let begun = state.backends.files.begin_upload(&target.org_id).await;
    let mut upload = begun.map_err(|error| unavailable(&error))?;
    let mut check = ContentCheck::new(kind);
    while let Some(bytes) = parts.next_piece(&mut part).await? {
        if upload.bytes() + bytes.len() as u64 > bytes_max {
            return Err(too_large(bytes_max));
        }
        check.push(&bytes)?;
        let written = upload.write(&bytes).await;
        written.map_err(|error| unavailable(&error))?;
    }
    if upload.bytes() > 0 {
        check.finish()?;
    }
    Ok(ReceivedFile { name, kind, upload })
}

/// Returns a 503 for a store that does not answer, and logs the cause.
pub(super) fn unavailable(error: &StoreError) -> ApiError {
    tracing::warn!(%error, "files are not available");
    ApiError::unavailable("files cannot be stored or read at the moment")
}
