//! The edge: what connections may do that no well-behaved client does, what they may not, and what comes through a proxy.

mod header_limits;
mod http1;
mod http2;
mod http2_frames;
mod nginx;
mod paths_and_methods;
mod request_smuggling;
mod slow_clients;

use serde_json::json;

use crate::support::{Organization, SharedService};

/// A whole chat request of HTTP/1.1 with these further header lines.
fn chat_request(organization: &Organization, session: &str, headers: &str) -> String {
    let body = json!({"message": "hi", "sessionId": session}).to_string();
    format!(
        "{}content-length: {}\r\n\r\n{body}",
        chat_head(organization, headers),
        body.len()
    )
}

/// The same without its end and its body.
fn chat_head(organization: &Organization, headers: &str) -> String {
    let (agent, key) = (organization.shop(), organization.key_text("all"));
    format!(
        "POST /api/public/agents/{agent}/chat HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{headers}"
    )
}

/// A whole request for the agent's configuration.
fn config_request(organization: &Organization, headers: &str) -> String {
    let (agent, key) = (organization.shop(), organization.key_text("all"));
    format!(
        "GET /api/public/agents/{agent} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n{headers}\r\n"
    )
}

fn url(service: &SharedService) -> String {
    service.public_urls().remove(0)
}
