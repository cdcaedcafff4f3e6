//! What operators configure with: `POST /api/admin/apply` makes a declarative document so, and a key can be deleted.

pub mod apply;
pub mod document;

mod check;
mod delete_key;
mod keys;
mod known_fields;
mod publish_changes;
mod theme;

use axum::{
    Json,
    extract::{FromRequestParts, Request, State},
};
use http::{StatusCode, header, request::Parts};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

pub(crate) use self::delete_key::delete_key;
use self::{
    apply::{Applied, ApplyError, apply},
    document::Document,
};
use crate::{
    body::{self, BodyLimits},
    client_address::CountedAddress,
    error::{ApiError, ApiResult},
    key_headers::bearer_token,
    state::AppState,
};

/// Proof that the request carries the administrator's token.
pub(crate) struct Administrator(());

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let Ok(CountedAddress(address)) = CountedAddress::from_request_parts(parts, state).await;
        let guesser = address.map(|address| format!("admin:{address}"));
        state.limits.failed_authentications.check(guesser.as_deref())?;
        let token = parts.headers.get(header::AUTHORIZATION).and_then(bearer_token).unwrap_or_default();
        let expected = state.admin_token.as_ref().map(|token| token.expose_secret().as_bytes());
        // An empty token is no token: it must not open an installation that set none.
        match expected {
            Some(expected) if !expected.is_empty() && bool::from(expected.ct_eq(token)) => Ok(Self(())),
            _ => {
                state.limits.failed_authentications.miss(guesser.as_deref()).await?;
                Err(ApiError::uncoded(StatusCode::UNAUTHORIZED, "the administrator's token is needed"))
            }
        }
    }
}

/// Serves the route.
pub(crate) async fn apply_document(
    State(state): State<AppState>,
    _: Administrator,
    request: Request,
) -> ApiResult<Json<Applied>> {
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
