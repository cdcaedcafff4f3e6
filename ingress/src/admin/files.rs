//! Files of conversations for people, and files for playground runs.

use http::{HeaderMap, StatusCode};
use switchboard_schemas::{
    conversation::ConversationOwner,
    file::{FILE_BYTES_MAX, FileSettings},
    ids::AgentId,
};

use super::{
    authorization::{Admin, PathIds, ResourceId},
    bodies::FormBody,
    permissions::{Configure, ReadConversations},
    responses::{JsonResponse, StoredFileDownload},
};
use crate::{
    files::{DownloadedFile, UploadTarget, UploadedFile, receive_upload},
    http::ApiResult,
};

/// Receives a file for playground runs of an agent. The draft decides which files it takes, so that
/// all types are received.
pub(super) async fn upload(
    admin: Admin<Configure>,
    ResourceId(id): ResourceId,
    form: FormBody,
) -> ApiResult<JsonResponse<{ StatusCode::CREATED.as_u16() }, UploadedFile>> {
    let (state, org) = (&admin.state, admin.org());
    let subject = admin.administrator.rate_limit_subject();
    state.limits.admit_playground_run(subject).await?;
    // An agent that is not saved has no id.
    let unsaved = || AgentId::derive(&state.secret, org, &id);
    let target = UploadTarget {
        org_id: org.clone(),
        owner: ConversationOwner::Agent(id.parse().unwrap_or_else(|_| unsaved())),
        key_id: None,
        visitor_id: None,
        is_playground: true,
        accepted: vec![FileSettings {
            max_bytes: FILE_BYTES_MAX,
            ..FileSettings::default()
        }],
    };
    let file = receive_upload(state, target, form.0).await?;
    Ok(JsonResponse::new(file))
}

/// Sends a file of a conversation or a playground run.
pub(super) async fn download(
    admin: Admin<ReadConversations>,
    path: PathIds,
    headers: HeaderMap,
) -> ApiResult<StoredFileDownload> {
    let (state, org) = (&admin.state, admin.org());
    let file = DownloadedFile::find(state, org, path.get("file"), |_| true).await?;
    file.respond(state, &headers).await.map(StoredFileDownload)
}
