//! Conditional changes: the version to change, from `If-Match` or from `version` in the body.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderValue, header, request::Parts};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::bodies::{JsonObject, parse_fields};
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

const VERSION: &str = "version";

/// The versions that a change is limited to; a change without any applies to every version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VersionPrecondition {
    header: Option<Vec<String>>,
    body: Option<String>,
}

/// The version that the body of a change names.
#[derive(Deserialize, ToSchema)]
pub(super) struct ExpectedVersion {
    /// The version that was read; the response is 409 if the resource has another one.
    version: Option<String>,
}

impl FromRequestParts<AppState> for VersionPrecondition {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

impl VersionPrecondition {
    fn from_headers(headers: &HeaderMap) -> Self {
        Self {
            header: if_match(headers),
            body: None,
        }
    }

    /// Removes `version` from the body and adds it to the condition.
    pub(super) fn with_body(mut self, fields: &mut JsonObject) -> ApiResult<Self> {
        let version = fields.remove_entry(VERSION).into_iter().collect();
        let ExpectedVersion { version } = parse_fields(version)
            .map_err(|_| ApiError::field(VERSION, "must be the text that was read"))?;
        self.body = version;
        Ok(self)
    }

    /// Returns whether the request named a version.
    pub(super) const fn is_given(&self) -> bool {
        self.header.is_some() || self.body.is_some()
    }

    /// Fails with 409 if the change is limited to other versions than the stored one.
    pub(super) fn check(&self, version: i64) -> ApiResult<()> {
        let current = version.to_string();
        let header_matches = self
            .header
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&current));
        let body_matches = self.body.as_ref().is_none_or(|wanted| *wanted == current);
        if header_matches && body_matches {
            Ok(())
        } else {
            Err(changed_meanwhile(version))
        }
    }
}

/// Returns the version as the value of `ETag`.
pub(super) fn etag(version: i64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}\"")).ok()
}

/// Creates the error for a resource that was changed by another request.
pub(super) fn changed_meanwhile(version: i64) -> ApiError {
    let detail = "the resource has changed since it was read; read it again";
    ApiError::new(ErrorCode::Conflict, detail).details(json!({ VERSION: version.to_string() }))
}

/// Returns the strong tags of all `If-Match` headers. `*` counts as no condition, because a change
/// of a missing resource fails anyway.
fn if_match(headers: &HeaderMap) -> Option<Vec<String>> {
    let texts = headers
        .get_all(header::IF_MATCH)
        .iter()
        .map(|value| value.to_str().unwrap_or_default());
    let tags: Vec<&str> = texts
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .collect();
    if tags.is_empty() || tags.contains(&"*") {
        return None;
    }
    let versions = tags
        .into_iter()
        .filter_map(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
    Some(versions.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn matches(if_match: Option<&'static str>, body: Value) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(value) = if_match {
            headers.insert(header::IF_MATCH, HeaderValue::from_static(value));
        }
        let Value::Object(mut fields) = body else {
            panic!("an object")
        };
        VersionPrecondition::from_headers(&headers)
            .with_body(&mut fields)
            .is_ok_and(|precondition| precondition.check(7).is_ok())
    }

    #[test]
    fn precondition_holds_when_all_named_versions_are_current() {
        for (if_match, body) in [
            (None, json!({})),
            (Some("*"), json!({})),
            (Some("\"7\""), json!({})),
            (Some("\"6\", \"7\""), json!({})),
            (None, json!({ "version": "7" })),
            (None, json!({ "version": null })),
        ] {
            assert!(matches(if_match, body.clone()), "{if_match:?} {body}");
        }
        for (if_match, body) in [
            (Some("\"6\""), json!({})),
            (Some("7"), json!({})),
            (Some("W/\"7\""), json!({})),
            (Some(""), json!({})),
            (Some("\"7\""), json!({ "version": "6" })),
            (None, json!({ "version": "8" })),
            (None, json!({ "version": 7 })),
        ] {
            assert!(!matches(if_match, body.clone()), "{if_match:?} {body}");
        }
    }
}
