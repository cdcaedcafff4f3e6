//! Headers of responses: `headers.json` describes each of them once, and every response that has
//! one refers to it.

use std::collections::BTreeMap;

use utoipa::openapi::{
    Components, Header, OpenApi, Ref, RefOr,
    path::{Operation, PathItem},
};

const DESCRIPTIONS: &str = include_str!("headers.json");
/// Headers of responses to a known key.
const LIMITS: [&str; 2] = ["RateLimit-Policy", "RateLimit"];
/// Mark of generated text.
const AI_GENERATED: &str = "X-AI-Generated";
/// Headers of every reply.
const REPLY: [&str; 2] = ["X-Conversation-Id", "X-Message-Id"];
/// Headers of text and JSON replies, which are sent when the reply has begun; the last three only
/// by teams.
const BEGUN_REPLY: [&str; 8] = [
    AI_GENERATED,
    "X-Reply-Generation",
    "X-Model",
    "X-UI-Spec",
    "X-UI-Spec-Truncated",
    "X-Agent-Id",
    "X-Agent-Name",
    "X-Routing-Reason",
];

/// Headers of a file.
const FILE: [&str; 2] = ["Content-Disposition", "Accept-Ranges"];

/// Adds the descriptions of all headers to the document, and references to them to its responses.
pub(super) fn add(document: &mut OpenApi) {
    let descriptions: BTreeMap<String, Header> =
        serde_json::from_str(DESCRIPTIONS).unwrap_or_default();
    let components = document.components.get_or_insert_with(Components::new);
    for (name, header) in descriptions {
        components.headers.insert(name, RefOr::T(header));
    }
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let id = operation.operation_id.clone().unwrap_or_default();
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(response) = response else {
                continue;
            };
            for name in header_names(&id, status) {
                let reference = Ref::new(format!("#/components/headers/{name}"));
                let reference = RefOr::Ref(reference);
                response.headers.insert(name.to_owned(), reference);
            }
        }
    }
}

/// Returns the operations of a path, of the methods that the public API has.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.patch]
        .into_iter()
        .flatten()
}

fn header_names(operation: &str, status: &str) -> Vec<&'static str> {
    let mut names = vec!["X-Request-Id"];
    if operation == "getOpenApi" {
        names.push("ETag");
        return names;
    }
    if status != "401" {
        names.extend(LIMITS);
    }
    match status {
        "200" if operation.starts_with("chat") || operation == "streamMessage" => {
            names.extend(REPLY);
            names.extend(BEGUN_REPLY);
        }
        "200"
            if matches!(
                operation,
                "getMessage" | "cancelMessage" | "getConversation"
            ) =>
        {
            names.push(AI_GENERATED)
        }
        "200" if operation == "getFile" => names.extend(FILE),
        "206" => {
            names.extend(FILE);
            names.push("Content-Range");
        }
        "202" => {
            names.extend(REPLY);
            names.extend(["Location", "Preference-Applied"]);
        }
        "401" => names.push("WWW-Authenticate"),
        "429" | "503" => names.push("Retry-After"),
        _ => {}
    }
    names
}
