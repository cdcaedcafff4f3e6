//! A door before the service that says who is signed in, so that the pages can be tried in each role. Everything else is
//! the service's own: the door only shows it the administrator's token.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, Organization, SharedService, background};

/// What an owner may.
pub(super) const OWNER: &[&str] =
    &["readConfiguration", "readConversations", "configure", "readAudit", "manageKeys", "manageUsers"];
/// What a viewer may.
pub(super) const VIEWER: &[&str] = &["readConfiguration", "readConversations"];

const BODY_BYTES_MAX: usize = 1 << 20;

struct Door {
    service: String,
    session: Value,
    client: reqwest::Client,
}

/// Opens a door to this organization; its address.
pub(super) fn open(service: &SharedService, organization: &Organization, rights: &[&str]) -> String {
    let admin = service.admin_urls().into_iter().next().unwrap();
    let session = json!({
        "user": {"id": "usr_door", "email": "olga@example.com", "name": "Olga", "role": "owner"},
        "organization": {"id": organization.id, "slug": "door", "name": "Organization of the door"},
        "rights": rights,
    });
    let door = Arc::new(Door { service: admin, session, client: reqwest::Client::new() });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/api/dashboard/session", get(who)).fallback(forward).with_state(door);
    background().spawn(async move { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), router).await });
    url
}

async fn who(State(door): State<Arc<Door>>) -> Json<Value> {
    Json(door.session.clone())
}

async fn forward(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_admin = parts.uri.path().starts_with("/api/admin/");
    parts.headers.remove(header::HOST);
    if is_admin {
        parts.headers.insert(header::AUTHORIZATION, format!("Bearer {ADMIN_TOKEN}").parse().unwrap());
    }
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.unwrap();
    let url = format!("{}{}", door.service, parts.uri);
    let answer = door.client.request(parts.method, url).headers(parts.headers).body(body).send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut response = (status, Body::from_stream(answer.bytes_stream())).into_response();
    *response.headers_mut() = headers;
    response
}
