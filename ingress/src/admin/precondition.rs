//! Which version an editor means to change: `If-Match`, or the `version` that they read and send back.

use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use super::one_thing::Fields;
use crate::http::{ApiError, ApiResult, ErrorCode};

const VERSION: &str = "version";

/// The versions that a change is meant for; none: whatever is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Precondition {
    header: Option<Vec<String>>,
    body: Option<String>,
}

impl Precondition {
    /// Reads the header, and takes `version` out of the body.
    pub(super) fn take(headers: &HeaderMap, fields: &mut Fields) -> ApiResult<Self> {
        let body = match fields.remove(VERSION) {
            None | Some(Value::Null) => None,
            Some(Value::String(version)) => Some(version),
            Some(_) => return Err(ApiError::field(VERSION, "must be the text that was read")),
        };
        Ok(Self {
            header: if_match(headers),
            body,
        })
    }

    /// Of a request without a body.
    pub(super) fn of_headers(headers: &HeaderMap) -> Self {
        Self {
            header: if_match(headers),
            body: None,
        }
    }

    /// Whether the editor named a version at all.
    pub(super) const fn is_given(&self) -> bool {
        self.header.is_some() || self.body.is_some()
    }

    /// Refuses a change of what is no longer what was read.
    pub(super) fn check(&self, version: i64) -> ApiResult<()> {
        let current = version.to_string();
        let header_fits = self
            .header
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&current));
        let body_fits = self.body.as_ref().is_none_or(|wanted| *wanted == current);
        if header_fits && body_fits {
            Ok(())
        } else {
            Err(changed_meanwhile(version))
        }
    }
}

/// The version as a header.
pub(super) fn etag(version: i64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}\"")).ok()
}

/// Someone else was faster.
pub(super) fn changed_meanwhile(version: i64) -> ApiError {
    let detail = "this was changed since it was read: read it again";
    ApiError::new(ErrorCode::Conflict, detail).details(json!({ VERSION: version.to_string() }))
}

/// The strong tags of all `If-Match` headers; a star is no condition here, because what is absent is refused anyway.
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
    use super::*;

    fn fits(if_match: Option<&'static str>, body: Value) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(value) = if_match {
            headers.insert(header::IF_MATCH, HeaderValue::from_static(value));
        }
        let Value::Object(mut fields) = body else {
            panic!("an object")
        };
        Precondition::take(&headers, &mut fields)
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
            assert!(fits(if_match, body.clone()), "{if_match:?} {body}");
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
            assert!(!fits(if_match, body.clone()), "{if_match:?} {body}");
        }
    }
}
