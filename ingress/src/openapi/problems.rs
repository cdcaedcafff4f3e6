//! Errors of each operation, and the responses that the document shows for them. The code that
//! writes real error bodies writes the examples too.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;
use switchboard_schemas::ids::RequestId;
use utoipa::{
    IntoResponses,
    openapi::{
        AllOfBuilder, ContentBuilder, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Schema,
        example::ExampleBuilder, schema::Type,
    },
};

use crate::http::{
    ApiError,
    ErrorCode::{
        self, AgentInactive, AgentNotFound, AgentNotPublic, Conflict, ConversationNotFound,
        DomainNotAllowed, ExpiredApiKey, IdempotencyKeyReused, InsufficientScope, Internal,
        InvalidAgentId, InvalidApiKey, InvalidJson, InvalidRating, InvalidRequestData,
        InvalidSessionId, MessageNotFound, MissingApiKey, ModelError, ModelTimeout, NotFound,
        OrgMismatch, PayloadTooLarge, RangeNotSatisfiable, RateLimited, ReplyRestarted,
        Unavailable, UnsupportedMediaType,
    },
    problem::problem_json,
};

/// The media type of all errors.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";
const REQUEST_ID: &str = "req_77777777777777777777777777";

/// An error that an operation can answer with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemCase {
    Coded(ErrorCode),
    /// An error of this status without a code.
    Plain(StatusCode),
}

use ProblemCase::{Coded, Plain};

/// Errors of every operation that needs a key.
const KEY: &[ProblemCase] = &[
    Coded(MissingApiKey),
    Coded(InvalidApiKey),
    Coded(ExpiredApiKey),
    Coded(InsufficientScope),
    Coded(RateLimited),
    Coded(Internal),
    Coded(Unavailable),
];
/// Errors of a path with an agent.
const AGENT: &[ProblemCase] = &[
    Coded(InvalidAgentId),
    Coded(OrgMismatch),
    Coded(AgentNotPublic),
    Coded(AgentNotFound),
    Coded(NotFound),
];
/// Errors of a request body.
pub(crate) const BODY: &[ProblemCase] = &[
    Coded(InvalidJson),
    Coded(InvalidRequestData),
    Coded(PayloadTooLarge),
    Coded(UnsupportedMediaType),
    Plain(StatusCode::REQUEST_TIMEOUT),
];
/// Errors of a reply before its first byte.
pub(crate) const REPLY: &[ProblemCase] = &[Coded(Conflict), Coded(ModelError), Coded(ModelTimeout)];

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = [$($part:expr),* $(,)?];)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let parts: &[&[ProblemCase]] = &[$($part),*];
                responses(&parts.concat(), true)
            }
        }
    )*};
}

problems! {
    /// Errors of reading the configuration of an agent or its widget.
    AgentReadProblems = [KEY, AGENT, &[Coded(AgentInactive)]];
    /// Errors of a chat with an agent.
    AgentChatProblems = [
        KEY, AGENT, BODY, REPLY,
        &[Coded(AgentInactive), Coded(DomainNotAllowed), Coded(IdempotencyKeyReused), Coded(ReplyRestarted)],
    ];
    /// Errors of a chat with a team, some of which have no code.
    TeamChatProblems = [
        &[
            Coded(MissingApiKey), Coded(InvalidApiKey), Coded(ExpiredApiKey), Coded(InsufficientScope),
            Coded(RateLimited), Coded(Unavailable), Coded(InvalidJson), Coded(PayloadTooLarge),
            Coded(UnsupportedMediaType), Coded(IdempotencyKeyReused), Coded(ReplyRestarted),
            Plain(StatusCode::BAD_REQUEST), Plain(StatusCode::NOT_FOUND), Plain(StatusCode::REQUEST_TIMEOUT),
            Plain(StatusCode::INTERNAL_SERVER_ERROR),
        ],
        REPLY,
    ];
    /// Errors of reading a conversation.
    ConversationReadProblems = [KEY, AGENT, &[Coded(InvalidSessionId), Coded(ConversationNotFound)]];
    /// Errors of changing a conversation.
    ConversationChangeProblems =
        [KEY, AGENT, BODY, &[Coded(InvalidSessionId), Coded(ConversationNotFound), Coded(InvalidRating)]];
    /// Errors of reading a reply.
    MessageReadProblems = [KEY, &[Coded(MessageNotFound)]];
    /// Errors of streaming a reply.
    MessageStreamProblems = [
        KEY, REPLY,
        &[
            Coded(MessageNotFound), Coded(DomainNotAllowed), Coded(AgentInactive), Coded(InvalidRequestData),
            Coded(RangeNotSatisfiable), Coded(ReplyRestarted),
        ],
    ];
    /// Errors of uploading a file for an agent.
    AgentUploadProblems = [
        KEY, AGENT,
        &[
            Coded(AgentInactive), Coded(DomainNotAllowed), Coded(InvalidRequestData), Coded(PayloadTooLarge),
            Coded(UnsupportedMediaType), Plain(StatusCode::REQUEST_TIMEOUT),
        ],
    ];
    /// Errors of uploading a file for a team.
    TeamUploadProblems = [
        KEY,
        &[
            Coded(InvalidRequestData), Coded(PayloadTooLarge), Coded(UnsupportedMediaType),
            Plain(StatusCode::NOT_FOUND), Plain(StatusCode::REQUEST_TIMEOUT),
        ],
    ];
    /// Errors of downloading a file.
    FileReadProblems = [KEY, &[Coded(NotFound), Coded(DomainNotAllowed), Coded(RangeNotSatisfiable)]];
    /// Errors of creating a visitor token.
    VisitorTokenProblems = [KEY, AGENT, BODY, &[Coded(DomainNotAllowed)]];
    /// Errors of cancelling a reply.
    MessageCancelProblems = [KEY, &[Coded(MessageNotFound), Coded(DomainNotAllowed)]];
}

impl ProblemCase {
    fn status(self) -> StatusCode {
        match self {
            Coded(code) => code.status(),
            Plain(status) => status,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Coded(code) => code.name(),
            Plain(_) => "without a code",
        }
    }

    fn error(self) -> ApiError {
        let error = match self {
            Coded(code) => ApiError::new(code, code.title()),
            Plain(status) => ApiError::uncoded(status, "the request cannot be served"),
        };
        match self {
            Coded(InvalidRequestData) => error.param("message"),
            Coded(InvalidRating) => error.param("rating"),
            _ => error,
        }
    }

    fn example(self) -> Value {
        let request_id = REQUEST_ID.parse::<RequestId>();
        let body = request_id
            .map(|id| problem_json(&self.error().into_parts(), &id))
            .unwrap_or_default();
        serde_json::from_slice(&body).unwrap_or_default()
    }
}

/// Returns the responses of these errors by status, with an example of each error if wanted.
pub(crate) fn responses(
    cases: &[ProblemCase],
    has_examples: bool,
) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status = BTreeMap::<u16, Vec<ProblemCase>>::new();
    for case in cases {
        let of_status = by_status.entry(case.status().as_u16()).or_default();
        if !of_status.contains(case) {
            of_status.push(*case);
        }
    }
    by_status
        .into_iter()
        .map(|(status, cases)| (status.to_string(), response(&cases, has_examples).into()))
        .collect()
}

fn response(cases: &[ProblemCase], has_examples: bool) -> Response {
    let titles = cases.iter().map(|case| match case {
        Coded(code) => format!("`{}`: {}.", code.name(), code.title()),
        Plain(status) => format!(
            "{}; this error has no code.",
            status.canonical_reason().unwrap_or("Error")
        ),
    });
    let examples = cases.iter().filter(|_| has_examples).map(|case| {
        let example = ExampleBuilder::new()
            .summary(case.name())
            .value(Some(case.example()));
        (case.name().replace(' ', "-"), example)
    });
    let content = ContentBuilder::new()
        .schema(Some(schema(cases)))
        .examples_from_iter(examples);
    ResponseBuilder::new()
        .description(titles.collect::<Vec<_>>().join("\n\n"))
        .content(PROBLEM_JSON, content.build())
        .build()
}

/// Returns the schema of a problem with the codes of one status, so that any other code fails the
/// contract test.
fn schema(cases: &[ProblemCase]) -> Schema {
    let codes: Vec<_> = cases
        .iter()
        .filter(|case| matches!(case, Coded(_)))
        .map(|case| case.name())
        .collect();
    let mut narrowed = ObjectBuilder::new();
    if !codes.is_empty() {
        narrowed = narrowed.property(
            "code",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(codes.clone())),
        );
    }
    if codes.len() == cases.len() {
        narrowed = narrowed.required("code");
    }
    Schema::AllOf(
        AllOfBuilder::new()
            .item(Ref::from_schema_name("Problem"))
            .item(narrowed)
            .build(),
    )
}
