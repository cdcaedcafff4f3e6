//! Outermost layer of routes: assigns a request id, opens a span, logs and measures the request.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, Method};
use switchboard_backends::bus::trace::TraceContext;
use switchboard_schemas::ids::RequestId;
use tokio::time::Instant;

use crate::metrics::IngressMetrics;

const REQUEST_ID_HEADER: &str = "x-request-id";
const MESSAGE_ID_HEADER: &str = "x-message-id";
/// Route label of requests without a route.
const UNMATCHED: &str = "unmatched";

/// Arrival time of a request.
#[derive(Clone, Copy)]
pub(crate) struct ArrivedAt(pub(crate) Instant);

/// Runs a request within its span and records the result.
pub(crate) async fn observe<S: AsRef<IngressMetrics>>(
    State(state): State<S>,
    mut request: Request,
    next: Next,
) -> Response {
    let arrived = Instant::now();
    let request_id = RequestId::random();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| UNMATCHED.to_owned(), |path| path.as_str().to_owned());
    let method = method_label(request.method());
    let span = tracing::info_span!(
        "request",
        request.id = %request_id,
        trace.id = tracing::field::Empty,
        http.method = method,
        http.route = route,
        org.id = tracing::field::Empty,
        key.id = tracing::field::Empty,
        user.id = tracing::field::Empty,
    );
    let headers = request.headers();
    let trace = TraceContext::enter(&span, |name| headers.get(name)?.to_str().ok());
    span.record("trace.id", tracing::field::display(trace.trace_id()));
    request.extensions_mut().insert(request_id.clone());
    request.extensions_mut().insert(ArrivedAt(arrived));

    let mut response = trace.run(span.clone(), next.run(request)).await;
    response.extensions_mut().insert(request_id.clone());
    if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
        response.headers_mut().insert(REQUEST_ID_HEADER, value);
    }
    let (status, elapsed) = (response.status().as_u16(), arrived.elapsed());
    state
        .as_ref()
        .record_request(&route, method, status, elapsed);
    let message = response
        .headers()
        .get(MESSAGE_ID_HEADER)
        .and_then(|id| id.to_str().ok());
    let elapsed_ms = elapsed.as_millis() as u64;
    span.in_scope(|| {
        tracing::info!(
            http.status = status,
            elapsed_ms,
            message.id = message,
            "response begins"
        )
    });
    response
}

/// Maps unknown methods to one label, because methods are client text.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
