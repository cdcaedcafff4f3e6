//! The HTTP edge: protocol corner cases, hostile clients and proxies.

mod header_limits;
mod http1;
mod http2;
mod http2_frames;
mod nginx;
mod paths_and_methods;
mod request_smuggling;
mod slow_clients;

use serde_json::json;

use crate::support::{Organization, RawConnection, TestService};

/// Returns a complete HTTP/1.1 chat request with additional header lines.
fn chat_request(organization: &Organization, session: &str, headers: &str) -> String {
    let body = json!({"message": "hi", "sessionId": session}).to_string();
    format!(
        "{}content-length: {}\r\n\r\n{body}",
        chat_head(organization, headers),
        body.len()
    )
}

/// Returns the head of a chat request without its blank line and body.
fn chat_head(organization: &Organization, headers: &str) -> String {
    let (agent, key) = (organization.shop(), organization.key_text("all"));
    format!(
        "POST /api/public/agents/{agent}/chat HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{headers}"
    )
}

/// Returns a complete request for the agent's configuration.
fn config_request(organization: &Organization, headers: &str) -> String {
    let (agent, key) = (organization.shop(), organization.key_text("all"));
    format!(
        "GET /api/public/agents/{agent} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{headers}\r\n"
    )
}

async fn connect(organization: &Organization) -> RawConnection {
    RawConnection::open(&url(organization.service())).await
}

fn url(service: &TestService) -> String {
    service.public_urls().remove(0)
}
