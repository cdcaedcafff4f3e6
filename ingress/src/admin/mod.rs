//! What operators configure with: `POST /api/admin/apply` makes a declarative document so, and below
//! `/api/admin/organizations` each thing is read, made, changed and removed alone.
//!
//! Reading order: `routes`; `administrator` says who may; `document` and `check` are the one reader of what comes in, and
//! `apply` the one plan of what it becomes; `things` and `change` use them for one thing at a time.
//! `trials` let a draft answer before it is saved. `users` are people; `audit_log` is what everybody here leaves behind.

pub mod apply;
pub mod document;

mod administrator;
mod analytics;
mod api_keys;
mod audit_fields;
mod audit_log;
mod change;
mod check;
mod conversations;
mod csv;
mod keys;
mod known_fields;
mod one_thing;
mod organizations;
mod page;
mod precondition;
mod product_items;
mod products;
mod publish_changes;
mod routes;
mod theme;
mod things;
mod trial_request;
mod trials;
mod users;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod audit_log_tests;
#[cfg(test)]
mod products_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials_tests;

use axum::{
    Json,
    extract::{Request, State},
};

pub(crate) use self::{administrator::rights_of, routes::routes};
use self::{
    administrator::{Action, Administrator, Ground},
    apply::{Applied, ApplyError, apply},
    audit_fields::record_written,
    document::{Document, Invalid},
};
use crate::{
    http::{
        ApiError, ApiResult, ErrorCode,
        body::{self, BodyLimits},
    },
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
    let document = Document::from_json(fields.into())
        .map_err(|invalid| ApiError::from(ApplyError::from(invalid)))?;
    let applied = apply(&state.apply, document).await?;
    record_written(&administrator, &state, &applied.written).await;
    Ok(Json(applied))
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let error = Self::new(ErrorCode::InvalidRequestData, invalid.reason);
        if invalid.path.is_empty() {
            error
        } else {
            error.param(invalid.path)
        }
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Invalid(invalid) => invalid.into(),
            ApplyError::Store(error) => error.into(),
            ApplyError::Seal(error) => Self::internal(&error),
        }
    }
}
