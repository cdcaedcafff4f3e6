//! Responses of the admin API. Each type determines the status and the body of a response and their
//! description in the document.

pub(super) use axum::response::NoContent;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::preconditions::etag;

pub(super) struct JsonResponse<const STATUS: u16, T> {
    body: T,
    version: Option<i64>,
    location: Option<String>,
}

/// A JSON body of an operation that the state of its resource can forbid.
pub(super) struct ConflictingJson<T>(pub(super) T);

/// An event stream in the form of the public API.
pub(super) struct EventStream(pub(super) Response);

/// A file that is sent while it is being written.
pub(super) struct FileDownload(pub(super) Response);

/// A file as its sender uploaded it.
pub(super) struct StoredFileDownload(pub(super) Response);

/// A table in the requested format.
pub(super) enum TableResponse<T> {
    Json(Json<T>),
    /// The table as a CSV file.
    Csv(Response),
}

/// A list, or all of it as a file.
pub(super) enum ListOrFile<T> {
    List(Json<T>),
    File(Response),
}

/// A deleted resource.
pub(super) struct DeletedResource {
    /// The path of the receipt, if something is still being erased.
    pub(super) receipt: Option<String>,
}

/// The state of a deletion by a worker when its request stops waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeletionResponse {
    /// The resource is deleted: status 204.
    Done,
    /// The deletion is published and survives crashes, but no worker has finished it: status 202.
    Accepted,
}

/// The body of an accepted deletion.
#[derive(Serialize, ToSchema)]
pub(super) struct AcceptedDeletion {
    /// The state of the deletion.
    state: AcceptedState,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AcceptedState {
    Accepted,
}

impl<const STATUS: u16, T> JsonResponse<STATUS, T> {
    /// Creates a response with this body.
    pub(super) const fn new(body: T) -> Self {
        Self {
            body,
            version: None,
            location: None,
        }
    }

    /// Adds the version of the resource as `ETag`.
    pub(super) const fn version(mut self, version: i64) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds the path of the created resource as `Location`.
    pub(super) fn location(mut self, path: String) -> Self {
        self.location = Some(path);
        self
    }
}

impl<const STATUS: u16, T: Serialize> IntoResponse for JsonResponse<STATUS, T> {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(STATUS).unwrap_or(StatusCode::OK);
        let mut response = (status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        if let Some(etag) = self.version.and_then(etag) {
            headers.insert(header::ETAG, etag);
        }
        if let Some(path) = self
            .location
            .and_then(|path| HeaderValue::try_from(path).ok())
        {
            headers.insert(header::LOCATION, path);
        }
        response
    }
}

impl IntoResponse for DeletedResource {
    fn into_response(self) -> Response {
        let receipt = self.receipt.map(|path| [(header::LOCATION, path)]);
        (receipt, NoContent).into_response()
    }
}

impl<T: Serialize> IntoResponse for ConflictingJson<T> {
    fn into_response(self) -> Response {
        Json(self.0).into_response()
    }
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for FileDownload {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for StoredFileDownload {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<T: Serialize> IntoResponse for TableResponse<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Json(json) => json.into_response(),
            Self::Csv(response) => response,
        }
    }
}

impl<T: Serialize> IntoResponse for ListOrFile<T> {
    fn into_response(self) -> Response {
        match self {
            Self::List(list) => list.into_response(),
            Self::File(response) => response,
        }
    }
}

impl IntoResponse for DeletionResponse {
    fn into_response(self) -> Response {
        match self {
            Self::Done => NoContent.into_response(),
            Self::Accepted => {
                let body = AcceptedDeletion {
                    state: AcceptedState::Accepted,
                };
                (StatusCode::ACCEPTED, Json(body)).into_response()
            }
        }
    }
}
