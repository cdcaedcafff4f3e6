//! Request bodies of the admin API. The type that the document shows for a body is the type that it
//! is parsed into.

use std::{convert::Infallible, marker::PhantomData};

use axum::extract::{FromRequest, Request};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    document::ApplyDocument,
    errors::{ValidateFields, ValidationError},
    preconditions::VersionPrecondition,
};
use crate::{
    http::{
        ApiError, ApiResult,
        body::{self, BodyLimits},
        strict_value::StrictValue,
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

/// A file of products, which the handler reads as it arrives.
pub(super) struct ProductFile(pub(super) axum::body::Body);

/// A change to the fields `F`. It can also contain `version` and the fields that only responses
/// have, because a resource can be sent back as it was read.
pub(super) struct ChangeBody<F, const IS_PATCH: bool>(PhantomData<fn() -> F>);

/// A form with a file, which the handler reads as it arrives.
pub(super) struct FormBody(pub(super) Request);

/// The fields of a change; omitted ones get their defaults.
pub(super) type VersionedFields<F> = ChangeBody<F, false>;

/// A JSON merge patch (RFC 7396) of the fields `F`.
pub(super) type MergePatch<F> = ChangeBody<F, true>;

/// The type of a body in the document, into which the body is parsed.
pub(super) trait RequestBody: Sized {
    /// Parses the fields of a body and validates their values.
    fn from_fields(fields: JsonObject) -> ApiResult<Self>;
}

impl<T: DeserializeOwned + ValidateFields> RequestBody for T {
    fn from_fields(fields: JsonObject) -> ApiResult<Self> {
        let body: Self = parse_fields(fields)?;
        body.validate()?;
        Ok(body)
    }
}

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

impl FromRequest<AppState> for FormBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, Infallible> {
        Ok(Self(request))
    }
}

impl<T: RequestBody> JsonBody<T> {
    /// Reads, parses and validates the body.
    pub(super) async fn parse(self, state: &AppState) -> ApiResult<T> {
        T::from_fields(self.fields(state).await?)
    }
}

impl<F, const IS_PATCH: bool> JsonBody<ChangeBody<F, IS_PATCH>> {
    /// Reads the fields of a change without parsing them, and moves `version` to the condition.
    pub(super) async fn read_change(
        self,
        state: &AppState,
        precondition: VersionPrecondition,
    ) -> ApiResult<(JsonObject, VersionPrecondition)> {
        let mut fields = self.fields(state).await?;
        let precondition = precondition.with_body(&mut fields)?;
        Ok((fields, precondition))
    }
}

impl JsonBody<ApplyDocument> {
    /// Reads a document, which may be larger than a resource, without parsing its fields.
    pub(super) async fn document(self, state: &AppState) -> ApiResult<JsonObject> {
        self.fields_within(BodyLimits::admin(&state.config)).await
    }
}

impl<T> JsonBody<T> {
    /// Reads the body without parsing its fields.
    async fn fields(self, state: &AppState) -> ApiResult<JsonObject> {
        let limits = BodyLimits::resource(&state.config);
        self.fields_within(limits).await
    }

    async fn fields_within(self, limits: BodyLimits) -> ApiResult<JsonObject> {
        let (parts, body) = self.request.into_parts();
        let body = body::read_body(&parts.headers, body, limits).await?;
        body::parse_large_object(body).await
    }
}

pub(super) fn parse_fields<T: DeserializeOwned>(fields: JsonObject) -> Result<T, ValidationError> {
    parse_value(fields.into()).map_err(ValidationError::naming_missing_field)
}

/// Parses a JSON value, whose arrays are lists and never objects.
///
/// # Errors
/// The path of the invalid field. The text of the error contains no values, because they may be
/// secrets.
pub(super) fn parse_value<T: DeserializeOwned>(value: Value) -> Result<T, ValidationError> {
    serde_path_to_error::deserialize(StrictValue(value)).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        ValidationError::new(path, described(&error.into_inner().to_string()))
    })
}

/// Checks a field whose error has a place in the order of errors and a text of its own. `null`
/// counts as absent and is removed.
///
/// # Errors
/// 400 with `rule` as the text if the value does not parse.
pub(super) fn check_field<T: DeserializeOwned>(
    fields: &mut JsonObject,
    name: &str,
    rule: &'static str,
) -> ApiResult<Option<T>> {
    if fields.get(name) == Some(&Value::Null) {
        fields.remove(name);
    }
    let value = fields.get(name).cloned().map(parse_value).transpose();
    value.map_err(|_| ApiError::field(name, rule))
}

/// Parses fields whose values were checked, so that only unknown and missing fields are errors.
pub(super) fn parse_checked<T: DeserializeOwned>(
    fields: JsonObject,
    unknown: &'static str,
) -> ApiResult<T> {
    parse_fields(fields).map_err(|ValidationError { path, reason }| {
        let is_unknown = reason.starts_with("unknown field");
        ApiError::field(path, if is_unknown { unknown } else { &reason })
    })
}

/// Describes an error of serde without the values and the names of types in its text. Names of
/// unknown fields stay, names of unknown variants are values.
fn described(text: &str) -> String {
    match text.rsplit_once(", expected ") {
        Some((given, expected)) if !given.starts_with("unknown ") => {
            format!(
                "{}, expected {}",
                without_values(given),
                plain_name(expected)
            )
        }
        _ => without_values(text),
    }
}

/// Returns the JSON name of what serde expected.
fn plain_name(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ if [
            "struct ",
            "enum ",
            "internally tagged enum ",
            "adjacently tagged enum ",
        ]
        .iter()
        .any(|kind| expected.starts_with(kind)) =>
        {
            "an object"
        }
        _ => expected,
    }
}

/// Returns a text with an ellipsis in place of each quoted value.
fn without_values(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("unknown variant `")
        && let Some((_, expected)) = rest.rsplit_once("`, expected ")
    {
        return format!("must be {expected}");
    }
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
