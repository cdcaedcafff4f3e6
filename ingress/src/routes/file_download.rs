//! `GET /api/public/files/{fileId}`: sends a file back.

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::HeaderMap;
use switchboard_schemas::api_key::KeyScope;

use crate::{
    auth::caller::{AccessPolicy, AuthorizedCaller},
    files::{DownloadedFile, FilePath, RangeHeader},
    http::{ApiResult, origin::OriginHeader},
    limits::RateLimitBucket,
    openapi::problems::FileReadProblems,
    state::AppState,
};

/// Access policy for reading a file.
pub(crate) struct FileRead;

impl AccessPolicy for FileRead {
    const BUCKET: RateLimitBucket = RateLimitBucket::Conversations;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Conversations, KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = true;
}

/// Sends a file.
#[utoipa::path(
    get,
    path = "/api/public/files/{fileId}",
    operation_id = "getFile",
    tag = "Files",
    summary = "Download a file",
    description = "Needs the scope `conversations`. A key with `chat` alone reads what it uploaded, and a visitor's token \
        what its visitor did.",
    params(FilePath, RangeHeader, OriginHeader),
    responses(
        (
            status = 200,
            description = "The file, with its own media type.",
            content(
                (String = "image/png"), (String = "image/jpeg"), (String = "image/webp"), (String = "image/gif"),
                (String = "text/plain"), (String = "text/markdown"), (String = "text/csv"),
                (String = "application/json"), (String = "application/pdf"),
                (String = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
                (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
            ),
        ),
        (status = 206, description = "A part of the file, with the same media type."),
        FileReadProblems,
    ),
)]
pub(crate) async fn get_file(
    State(state): State<AppState>,
    caller: AuthorizedCaller<FileRead>,
    Path(FilePath { file_id }): Path<FilePath>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    caller.check_origin(&headers, &state)?;
    let may_read = |file: &_| caller.may_read_file(file);
    let file = DownloadedFile::find(&state, caller.org_id(), &file_id, may_read).await?;
    file.respond(&state, &headers).await
}
