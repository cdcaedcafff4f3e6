//! Problem bodies (RFC 9457) of all error responses.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use switchboard_schemas::ids::RequestId;
use utoipa::ToSchema;

use super::{ApiError, ErrorCode, error::ErrorParts};

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The body of an error (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem<'a> {
    /// The kind of problem, as the address of its description on this service.
    #[schema(format = "uri-reference")]
    r#type: String,
    /// The kind of problem, for people; the text may change.
    title: &'a str,
    /// The status of the response.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The cause of this occurrence, for people; the text may change.
    detail: &'a str,
    /// The kind of problem, for programs; never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^[A-Z_]+$")]
    code: Option<&'a str>,
    /// The id of the request, to quote when asking for help.
    request_id: &'a RequestId,
    /// The name of the invalid field, query parameter or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    param: Option<&'a str>,
    /// Details for programs; their fields depend on the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    details: Option<&'a Value>,
}

/// Writes the body of an error response; other responses are unchanged.
pub(crate) fn with_problem_body(mut response: Response, request_id: &RequestId) -> Response {
    let Some(facts) = take_error_parts(&mut response) else {
        return response;
    };
    // Errors of the framework have their own body and length.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, PROBLEM_JSON);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if facts.status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(after) = facts.retry_after {
        let seconds = after.as_millis().div_ceil(1000).max(1);
        response.headers_mut().insert(
            header::RETRY_AFTER,
            HeaderValue::from(u64::try_from(seconds).unwrap_or(1)),
        );
    }
    *response.body_mut() = Body::from(problem_json(&facts, request_id));
    response
}

fn take_error_parts(response: &mut Response) -> Option<ErrorParts> {
    if let Some(facts) = response.extensions_mut().remove::<ErrorParts>() {
        return Some(facts);
    }
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    is_error.then(|| ApiError::uncoded(status, "the request cannot be served").into_parts())
}

/// Serializes the problem object, for a response body or an error event.
pub(crate) fn problem_json(facts: &ErrorParts, request_id: &RequestId) -> Vec<u8> {
    let standard_title = facts.status.canonical_reason().unwrap_or("Error");
    let problem = Problem {
        r#type: problem_type(facts.code),
        title: facts.code.map_or(standard_title, ErrorCode::title),
        status: facts.status.as_u16(),
        detail: &facts.detail,
        code: facts.code.map(ErrorCode::name),
        request_id,
        param: facts.param.as_deref(),
        details: facts.details.as_ref(),
    };
    serde_json::to_vec(&problem).unwrap_or_default()
}

/// Returns the address of a code's section on the page of errors. It has no host, because
/// installations have no common domain.
fn problem_type(code: Option<ErrorCode>) -> String {
    let section = code.map_or_else(|| "without-a-code".to_owned(), ErrorCode::slug);
    format!("/docs/errors#{section}")
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use std::{fmt::Write, time::Duration};

    use super::*;

    fn request_id() -> RequestId {
        format!("req_{}", "0".repeat(26)).parse().unwrap()
    }

    async fn render(error: ApiError) -> (http::response::Parts, Value) {
        let (parts, body) = with_problem_body(error.into_response(), &request_id()).into_parts();
        (
            parts,
            serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap(),
        )
    }

    #[tokio::test]
    async fn problem_codes_statuses_and_bodies_are_stable() {
        let mut table = String::new();
        for code in ErrorCode::ALL {
            let (parts, body) = render(ApiError::new(*code, "detail")).await;
            writeln!(table, "{} {body}", parts.status.as_u16()).unwrap();
        }
        insta::assert_snapshot!(table);
    }

    #[tokio::test]
    async fn error_without_a_code_has_the_standard_title() {
        let (parts, body) = render(ApiError::uncoded(StatusCode::NOT_FOUND, "no such team")).await;
        assert_eq!(
            parts.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        assert!(body.get("code").is_none());
        assert_eq!(
            (body["type"].as_str(), body["title"].as_str()),
            (Some("/docs/errors#without-a-code"), Some("Not Found"))
        );
    }

    #[tokio::test]
    async fn retry_after_is_rounded_up_to_at_least_one_second() {
        for (wait, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2")] {
            let error = ApiError::unavailable("away").retry_after(Duration::from_millis(wait));
            assert_eq!(render(error).await.0.headers[header::RETRY_AFTER], seconds);
        }
    }

    #[tokio::test]
    async fn framework_error_has_a_problem_body() {
        let response = (StatusCode::BAD_REQUEST, "framework text").into_response();
        let body = with_problem_body(response, &request_id())
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["status"], 400);
        assert!(!body.to_string().contains("framework text"));
    }
}
