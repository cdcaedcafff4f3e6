//! A door before the service that says who is signed in, so that the pages can be tried in each role. Everything else is
//! the service's own: the door only shows it the administrator's token.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, Organization, SharedService, background};

/// What an owner may.
pub(super) const OWNER: &[&str] = &[
    "readConfiguration",
    "readConversations",
    "actOnConversations",
    "configure",
    "readAudit",
    "manageKeys",
    "manageUsers",
];
/// What a viewer may.
pub(super) const VIEWER: &[&str] = &["readConfiguration", "readConversations"];

const BODY_BYTES_MAX: usize = 1 << 20;

struct Door {
    service: String,
    session: Value,
    is_open: AtomicBool,
    client: reqwest::Client,
}

/// Opens a door to this organization, through which somebody with these rights has come; its address.
pub(super) fn open(service: &SharedService, organization: &Organization, rights: &[&str]) -> String {
    build(service, organization, rights, true)
}

/// One that takes any password, and has seen none.
pub(super) fn closed(service: &SharedService, organization: &Organization) -> String {
    build(service, organization, OWNER, false)
}

fn build(service: &SharedService, organization: &Organization, rights: &[&str], is_open: bool) -> String {
    let admin = service.admin_urls().into_iter().next().unwrap();
    let session = json!({
        "user": {"id": "usr_door", "email": "olga@example.com", "name": "Olga", "role": "owner"},
        "organization": {"id": organization.id, "slug": "door", "name": "Organization of the door"},
        "rights": rights,
    });
    let door = Door { service: admin, session, is_open: AtomicBool::new(is_open), client: reqwest::Client::new() };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let session = get(who).post(enter).delete(leave);
    let router = Router::new().route("/api/dashboard/session", session).fallback(forward).with_state(Arc::new(door));
    background().spawn(async move { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), router).await });
    url
}

async fn who(State(door): State<Arc<Door>>) -> Response {
    if door.is_open.load(Ordering::SeqCst) {
        Json(door.session.clone()).into_response()
    } else {
        (StatusCode::UNAUTHORIZED, Json(json!({"title": "nobody is signed in"}))).into_response()
    }
}

async fn enter(State(door): State<Arc<Door>>) -> Response {
    door.is_open.store(true, Ordering::SeqCst);
    who(State(door)).await
}

async fn leave(State(door): State<Arc<Door>>) -> StatusCode {
    door.is_open.store(false, Ordering::SeqCst);
    StatusCode::NO_CONTENT
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
