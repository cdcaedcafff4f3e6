//! Links from the response to a chat request to the operations that take its ids.

use utoipa::openapi::{
    RefOr,
    link::{Link, LinkBuilder},
    path::Operation,
};

const REPLY_ID: &str = "$response.header.X-Message-Id";
const SESSION_ID: &str = "$request.body#/sessionId";

/// Adds links to the responses of an operation that begins a reply.
pub(super) fn add(operation: &mut Operation) {
    let agent_id = match operation.operation_id.as_deref() {
        Some("chatWithAgent") => "$request.path.agentId",
        Some("chatWithTeam") => "$response.header.X-Agent-Id",
        _ => return,
    };
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let mut links = vec![];
        if matches!(status.as_str(), "200" | "202") {
            links.extend([
                ("message", link("getMessage", &[("messageId", REPLY_ID)])),
                ("stream", link("streamMessage", &[("messageId", REPLY_ID)])),
                ("cancel", link("cancelMessage", &[("messageId", REPLY_ID)])),
            ]);
        }
        // The agent of a team's reply is known when the reply has begun.
        if status == "200" {
            let path = [("agentId", agent_id), ("sessionId", SESSION_ID)];
            links.push(("conversation", link("getConversation", &path)));
            links.push(("rate", link("updateConversation", &path)));
        }
        response.links.extend(
            links
                .into_iter()
                .map(|(name, link)| (name.to_owned(), RefOr::T(link))),
        );
    }
}

fn link(operation: &str, parameters: &[(&str, &str)]) -> Link {
    let link = LinkBuilder::new().operation_id(operation);
    parameters
        .iter()
        .fold(link, |link, (name, expression)| {
            link.parameter(*name, *expression)
        })
        .build()
}
