//! Responses to paths without a route and to methods that a path does not support. Each says what
//! to send instead.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, Uri, header};
use switchboard_schemas::ids::RequestId;

use super::{ApiError, ErrorCode, error::ErrorParts, problem::with_problem_body};

/// Beginnings of paths of the OpenAI API.
const OPENAI_PATHS: [&str; 5] = [
    "/v1/chat",
    "/v1/completions",
    "/v1/models",
    "/v1/responses",
    "/chat/completions",
];

/// Creates the response to a path without a route.
pub(crate) fn unknown_route(uri: &Uri) -> ApiError {
    let path = uri.path();
    let hint = if OPENAI_PATHS.iter().any(|known| path.starts_with(known)) {
        "this is not the OpenAI API: send messages to POST /api/public/agents/{agentId}/chat"
    } else if path.len() > 1 && path.ends_with('/') {
        "leave out the slash at its end"
    } else if ["/agents/", "/teams/", "/messages/"]
        .iter()
        .any(|known| path.starts_with(known))
    {
        "paths of the API begin with /api/public"
    } else {
        ""
    };
    let separator = if hint.is_empty() { "" } else { "; " };
    let detail = format!("no route has this path{separator}{hint} (/docs lists all routes)");
    ApiError::new(ErrorCode::NotFound, detail)
}

/// Creates the response to a method that the path does not support. [`write_problems`] completes
/// its text.
pub(crate) async fn unsupported_method() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, "")
}

/// Writes the bodies of errors. Around the whole router, which adds the header `Allow` after all
/// layers of its routes.
pub(crate) async fn write_problems(request: Request, next: Next) -> Response {
    let used = standard_name(request.method());
    let mut response = next.run(request).await;
    let Some(request_id) = response.extensions_mut().remove::<RequestId>() else {
        return response;
    };
    let allowed = response.headers().get(header::ALLOW);
    let allowed = allowed.and_then(|allowed| allowed.to_str().ok());
    // A `HEAD` request is answered with the headers of a `GET`.
    let used = if used == "HEAD" { "GET" } else { used };
    let detail = method_detail(used, allowed.unwrap_or_default());
    if let Some(error) = response.extensions_mut().get_mut::<ErrorParts>()
        && error.code == Some(ErrorCode::MethodNotAllowed)
    {
        error.detail = detail.into();
    }
    with_problem_body(response, &request_id)
}

fn method_detail(used: &str, allowed: &str) -> String {
    let allowed: Vec<_> = allowed
        .split(',')
        .map(str::trim)
        .filter(|method| !method.is_empty() && *method != "HEAD")
        .collect();
    match allowed.split_last() {
        None => format!("this path does not support {used}"),
        Some((last, [])) => format!("this path does not support {used}; use {last}"),
        Some((last, others)) => {
            let others = others.join(", ");
            format!("this path does not support {used}; use {others} or {last}")
        }
    }
}

/// Returns the name of a standard method. Other names are text of the client. HEAD is answered like
/// GET, to the byte.
fn standard_name(method: &Method) -> &'static str {
    let standard = [
        (Method::GET, "GET"),
        (Method::HEAD, "GET"),
        (Method::POST, "POST"),
        (Method::PUT, "PUT"),
        (Method::PATCH, "PATCH"),
        (Method::DELETE, "DELETE"),
        (Method::OPTIONS, "OPTIONS"),
    ];
    let found = standard.iter().find(|(known, _)| known == method);
    found.map_or("this method", |(_, name)| name)
}

/// Handles requests without a route.
pub(crate) async fn answer_unknown_route(uri: Uri) -> Response {
    unknown_route(&uri).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[tokio::test]
    async fn unsupported_method_is_named_with_the_allowed_ones() {
        let world = World::new().await;
        let chat = World::agent_path("/chat");
        let session = World::agent_path("/conversations/s");
        for (method, path, allowed, detail) in [
            (
                "GET",
                &chat,
                "POST",
                "this path does not support GET; use POST",
            ),
            (
                "POST",
                &session,
                "GET,HEAD,PATCH",
                "this path does not support POST; use GET or PATCH",
            ),
            (
                "BREW",
                &chat,
                "POST",
                "this path does not support this method; use POST",
            ),
        ] {
            let answer = world.send_with(method, path, &[], "").await;
            assert_eq!(answer.problem(), (405, "METHOD_NOT_ALLOWED".to_owned()));
            assert_eq!(answer.headers[header::ALLOW], allowed, "{method} {path}");
            assert_eq!(answer.json()["detail"], detail);
        }
    }

    #[test]
    fn unknown_path_gets_a_fitting_hint_and_the_documentation() {
        for (path, hint) in [
            ("/v1/chat/completions", "not the OpenAI API"),
            ("/api/public/agents/agt_1/chat/", "leave out the slash"),
            ("/agents/agt_1/chat", "begin with /api/public"),
            ("/nowhere", "no route has this path (/docs"),
        ] {
            let detail = unknown_route(&path.parse().unwrap()).into_parts().detail;
            assert!(detail.contains(hint), "{path}: {detail}");
            assert!(detail.ends_with("(/docs lists all routes)"), "{detail}");
        }
    }
}
