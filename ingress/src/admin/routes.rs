//! The routes of the administrative API, and nothing else.

use axum::{
    Router,
    routing::{delete, post},
};

use super::{apply_document, delete_key::delete_key};
use crate::state::AppState;

/// Everything below `/api/admin`.
pub(crate) fn routes() -> Router<AppState> {
    Router::new().route("/api/admin/apply", post(apply_document))
        .route("/api/admin/organizations/{org}/keys/{key}", delete(delete_key))
}
