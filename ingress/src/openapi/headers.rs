//! The headers of answers, each described once and referred to by every response that carries it.

use utoipa::openapi::{
    Components, Header, HeaderBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Response,
    path::{Operation, PathItem},
    schema::Type,
};

/// A header as the document shows it.
struct Described {
    name: &'static str,
    description: &'static str,
    kind: Type,
    pattern: Option<&'static str>,
    example: &'static str,
}

const fn text(name: &'static str, description: &'static str, example: &'static str) -> Described {
    Described {
        name,
        description,
        kind: Type::String,
        pattern: None,
        example,
    }
}

const fn number(name: &'static str, description: &'static str, example: &'static str) -> Described {
    Described {
        name,
        description,
        kind: Type::Integer,
        pattern: None,
        example,
    }
}

const fn id(
    name: &'static str,
    description: &'static str,
    pattern: &'static str,
    example: &'static str,
) -> Described {
    Described {
        name,
        description,
        kind: Type::String,
        pattern: Some(pattern),
        example,
    }
}

/// On every answer.
const EVERYWHERE: &[Described] = &[id(
    "X-Request-Id",
    "The request, to quote when asking for help.",
    "^req_[0-9a-z]+$",
    "req_77777777777777777777777777",
)];
/// On every answer to a known key.
const LIMITS: &[Described] = &[
    text(
        "RateLimit-Policy",
        "The limits that count here (IETF draft): requests `q` in `w` seconds.",
        "\"chat\";q=60;w=60",
    ),
    text(
        "RateLimit",
        "What is left of them: `r` requests, something more in `t` seconds.",
        "\"chat\";r=59;t=60",
    ),
];
/// On every reply, in whatever shape.
const REPLY: &[Described] = &[
    id(
        "X-Conversation-Id",
        "The conversation.",
        "^conv_[0-9a-z]+$",
        "conv_77777777777777777777777777",
    ),
    id(
        "X-Message-Id",
        "The reply.",
        "^msg_[0-9a-z]+$",
        "msg_7777777777777777777777777777777777777777777777777777",
    ),
];
/// On replies that begin before their headers are sent: text and JSON.
const BEGUN: &[Described] = &[
    number(
        "X-Reply-Generation",
        "Which making of the reply this is; bytes of two are never joined.",
        "1",
    ),
    text("X-Model", "The model that answers.", "demo"),
    text(
        "X-UI-Spec",
        "Structured data to show, as JSON in ASCII; in text replies.",
        "{\"type\":\"product-grid\",\"data\":[]}",
    ),
    text(
        "X-UI-Spec-Truncated",
        "`true` when `X-UI-Spec` leaves something out, or all of it and is not there; the `ui` event and the history have all of it.",
        "true",
    ),
];
/// On replies of teams.
const ROUTED: &[Described] = &[
    id(
        "X-Agent-Id",
        "Who answers.",
        "^agt_[0-9a-z]+$",
        "agt_77777777777777777777777777",
    ),
    text(
        "X-Agent-Name",
        "Its name, percent-encoded where it is not ASCII.",
        "Support",
    ),
    text(
        "X-Routing-Reason",
        "Why it was chosen, percent-encoded where it is not ASCII.",
        "matches billing",
    ),
];
const LATER: &[Described] = &[
    text(
        "Location",
        "Where the reply will be found.",
        "/api/public/messages/msg_7777777777777777777777777777777777777777777777777777",
    ),
    text("Preference-Applied", "`respond-async`.", "respond-async"),
];
const RETRY: &[Described] = &[number(
    "Retry-After",
    "Whole seconds after which to come again.",
    "1",
)];
const AUTHENTICATE: &[Described] = &[text("WWW-Authenticate", "How to authenticate.", "Bearer")];
const CACHED: &[Described] = &[text(
    "ETag",
    "Names this version of the document.",
    "\"5f2b\"",
)];

/// Describes all headers and gives every response its own.
pub(super) fn add(document: &mut OpenApi) {
    let components = document.components.get_or_insert_with(Components::new);
    let all = [
        EVERYWHERE,
        LIMITS,
        REPLY,
        BEGUN,
        ROUTED,
        LATER,
        RETRY,
        AUTHENTICATE,
        CACHED,
    ];
    for described in all.into_iter().flatten() {
        components
            .headers
            .insert(described.name.to_owned(), RefOr::T(described.header()));
    }
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let id = operation.operation_id.clone().unwrap_or_default();
        for (status, response) in &mut operation.responses.responses {
            if let RefOr::T(response) = response {
                groups(&id, status)
                    .into_iter()
                    .flatten()
                    .for_each(|described| described.refer(response));
            }
        }
    }
}

/// The operations of a path, as far as this API has them.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.patch]
        .into_iter()
        .flatten()
}

fn groups(operation: &str, status: &str) -> Vec<&'static [Described]> {
    let (is_document, is_chat) = (operation == "getOpenApi", operation.starts_with("chat"));
    let mut groups = vec![EVERYWHERE];
    if is_document {
        groups.push(CACHED);
        return groups;
    }
    if !matches!(status, "401") {
        groups.push(LIMITS);
    }
    match status {
        "200" if is_chat || operation == "streamMessage" => groups.extend([REPLY, BEGUN, ROUTED]),
        "202" => groups.extend([REPLY, LATER]),
        "401" => groups.push(AUTHENTICATE),
        "429" | "503" => groups.push(RETRY),
        _ => {}
    }
    groups
}

impl Described {
    fn header(&self) -> Header {
        let is_number = self.kind == Type::Integer;
        let schema = ObjectBuilder::new()
            .schema_type(self.kind.clone())
            .pattern(self.pattern);
        let schema = if is_number {
            schema.minimum(Some(0))
        } else {
            schema
        };
        let example = if is_number {
            serde_json::from_str(self.example).ok()
        } else {
            Some(self.example.into())
        };
        HeaderBuilder::new()
            .schema(Some(schema))
            .description(Some(self.description))
            .example(example)
            .build()
    }

    fn refer(&self, response: &mut Response) {
        let reference = Ref::new(format!("#/components/headers/{}", self.name));
        response
            .headers
            .insert(self.name.to_owned(), RefOr::Ref(reference));
    }
}
