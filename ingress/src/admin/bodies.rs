//! Request bodies of the admin API. The type that the document shows for a body is the type that it
//! is parsed into.

use std::{convert::Infallible, marker::PhantomData};

use axum::extract::{FromRequest, Request};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::errors::ValidationError;
use crate::{
    http::{
        ApiError, ApiResult,
        body::{self, BodyLimits},
    },
    state::AppState,
};

pub(super) type JsonObject = Map<String, Value>;

/// A JSON body of type `T`. The handler reads it when it has checked the path, because errors of
/// the path come before errors of the body.
pub(super) struct JsonBody<T> {
    request: Request,
    body_type: PhantomData<fn() -> T>,
}

/// A CSV or JSON file of products, which the handler reads as it arrives.
pub(super) struct ProductFile(pub(super) axum::body::Body);

/// A JSON merge patch (RFC 7396) of the fields `F`.
pub(super) struct MergePatch<F>(PhantomData<fn() -> F>);

impl<T> FromRequest<AppState> for JsonBody<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, Infallible> {
        Ok(Self {
            request,
            body_type: PhantomData,
        })
    }
}

impl FromRequest<AppState> for ProductFile {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, Infallible> {
        Ok(Self(request.into_body()))
    }
}

impl<T> JsonBody<T> {
    /// Reads the body as an object, without checking its fields.
    pub(super) async fn fields(self, state: &AppState) -> ApiResult<JsonObject> {
        let (parts, body) = self.request.into_parts();
        let limits = BodyLimits::admin(&state.config);
        body::parse_object(&body::read_body(&parts.headers, body, limits).await?)
    }
}

pub(super) fn parse_fields<T: DeserializeOwned>(fields: JsonObject) -> Result<T, ValidationError> {
    parse_value(fields.into()).map_err(ValidationError::naming_missing_field)
}

/// Parses a JSON value.
///
/// # Errors
/// The path of the invalid field. The text of the error contains no values, because they may be
/// secrets.
pub(super) fn parse_value<T: DeserializeOwned>(value: Value) -> Result<T, ValidationError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        ValidationError::new(path, without_quotes(&error.into_inner().to_string()))
    })
}

/// Removes a field from a body and parses it; `null` counts as absent.
///
/// # Errors
/// 400 with `rule` as the text if the value does not parse.
pub(super) fn take_field<T: DeserializeOwned>(
    fields: &mut JsonObject,
    name: &str,
    rule: &'static str,
) -> ApiResult<Option<T>> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value)
            .map(Some)
            .map_err(|_| ApiError::field(name, rule)),
    }
}

/// Fails with 400 if a field is left.
pub(super) fn refuse_unknown(fields: &JsonObject, reason: &'static str) -> ApiResult<()> {
    match fields.keys().next() {
        Some(unknown) => Err(ApiError::field(unknown, reason)),
        None => Ok(()),
    }
}

/// Returns an error text of serde with an ellipsis in place of each quoted value.
fn without_quotes(text: &str) -> String {
    let mut is_quoted = false;
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '"' {
            is_quoted = !is_quoted;
            kept.push_str(if is_quoted { "\"…" } else { "\"" });
        } else if !is_quoted {
            kept.push(character);
        }
    }
    kept
}

pub(super) fn fields_of(value: &impl Serialize) -> ApiResult<JsonObject> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(ApiError::internal(&"a resource is not an object")),
        Err(error) => Err(ApiError::internal(&error)),
    }
}
