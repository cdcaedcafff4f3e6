//! What operators configure with: `POST /api/admin/apply` makes a declarative document so, and a key can be deleted.

pub mod apply;
pub mod document;

mod administrator;
mod check;
mod delete_key;
mod keys;
mod known_fields;
mod publish_changes;
mod routes;
mod theme;

use axum::{
    Json,
    extract::{Request, State},
};

pub(crate) use self::routes::routes;
use self::{
    administrator::{Action, Administrator, Ground},
    apply::{Applied, ApplyError, apply},
    document::Document,
};
use crate::{
    body::{self, BodyLimits},
    error::{ApiError, ApiResult},
    state::AppState,
};

/// Serves `POST /api/admin/apply`. A document can name any organization.
async fn apply_document(
    State(state): State<AppState>,
    administrator: Administrator,
    request: Request,
) -> ApiResult<Json<Applied>> {
    administrator.may(Ground::Installation, Action::ManageOrganizations)?;
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, BodyLimits::admin(&state.config)).await?;
    let fields = body::parse_object(&body)?;
    let document = Document::from_json(fields.into()).map_err(|invalid| ApiError::from(ApplyError::from(invalid)))?;
    Ok(Json(apply(&state.apply, document).await?))
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Invalid(invalid) => Self::field(invalid.path, invalid.reason),
            ApplyError::Store(error) => error.into(),
            ApplyError::Seal(error) => Self::internal(&error),
        }
    }
}
