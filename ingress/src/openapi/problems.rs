//! Which errors each operation can answer with, as one table, and the responses that the document shows for them. Each
//! body's example is written by the code that writes the real ones.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;
use switchboard_schemas::ids::RequestId;
use utoipa::{
    IntoResponses, ToSchema,
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

/// Media type of every error.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";
const REQUEST_ID: &str = "req_77777777777777777777777777";

/// An error as its body has it (RFC 9457).
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by the generator of the document alone")]
pub(crate) struct Problem {
    /// A name of the kind of problem; `about:blank` where there is no code.
    r#type: String,
    /// The kind of problem, for people; may change.
    title: String,
    /// The response's status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// This occurrence, for people; may change.
    detail: String,
    /// For programs; never changes.
    #[schema(nullable = false, pattern = "^[A-Z_]+$")]
    code: Option<String>,
    /// What to quote when asking for help.
    request_id: RequestId,
    /// The field, query parameter or header concerned.
    #[schema(nullable = false)]
    param: Option<String>,
    /// Further facts for programs, depending on the code.
    #[schema(value_type = Object, required = false)]
    details: Option<Value>,
}

/// An error that an operation can answer with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemCase {
    /// An error with this code.
    Coded(ErrorCode),
    /// An error of this status without a code.
    Plain(StatusCode),
}

use ProblemCase::{Coded, Plain};

/// What every operation behind a key can answer with.
const KEY: &[ProblemCase] = &[
    Coded(MissingApiKey),
    Coded(InvalidApiKey),
    Coded(ExpiredApiKey),
    Coded(InsufficientScope),
    Coded(RateLimited),
    Coded(Internal),
    Coded(Unavailable),
];
/// What a path with an agent adds.
const AGENT: &[ProblemCase] = &[
    Coded(InvalidAgentId),
    Coded(OrgMismatch),
    Coded(AgentNotPublic),
    Coded(AgentNotFound),
    Coded(NotFound),
];
/// What a body adds.
const BODY: &[ProblemCase] = &[
    Coded(InvalidJson),
    Coded(InvalidRequestData),
    Coded(PayloadTooLarge),
    Coded(UnsupportedMediaType),
    Plain(StatusCode::REQUEST_TIMEOUT),
];
/// What a reply can end with before its first byte.
const REPLY: &[ProblemCase] = &[Coded(Conflict), Coded(ModelError), Coded(ModelTimeout)];

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = [$($part:expr),* $(,)?];)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let parts: &[&[ProblemCase]] = &[$($part),*];
                responses(&parts.concat())
            }
        }
    )*};
}

problems! {
    /// Of reading an agent's configuration, in either form.
    AgentReadProblems = [KEY, AGENT, &[Coded(AgentInactive)]];
    /// Of a chat with an agent.
    AgentChatProblems = [
        KEY, AGENT, BODY, REPLY,
        &[Coded(AgentInactive), Coded(DomainNotAllowed), Coded(IdempotencyKeyReused), Coded(ReplyRestarted)],
    ];
    /// Of a chat with a team, most of which have no code.
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
    /// Of reading a conversation.
    ConversationReadProblems = [KEY, AGENT, &[Coded(InvalidSessionId), Coded(ConversationNotFound)]];
    /// Of changing a conversation.
    ConversationChangeProblems =
        [KEY, AGENT, BODY, &[Coded(InvalidSessionId), Coded(ConversationNotFound), Coded(InvalidRating)]];
    /// Of reading a message.
    MessageReadProblems = [KEY, &[Coded(MessageNotFound)]];
    /// Of following a message.
    MessageStreamProblems = [
        KEY, REPLY,
        &[
            Coded(MessageNotFound), Coded(DomainNotAllowed), Coded(AgentInactive), Coded(InvalidRequestData),
            Coded(RangeNotSatisfiable), Coded(ReplyRestarted),
        ],
    ];
    /// Of a page's request for a token.
    VisitorTokenProblems = [KEY, AGENT, BODY, &[Coded(DomainNotAllowed)]];
    /// Of stopping a message.
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

/// Returns the responses of these errors by status.
pub(crate) fn responses(answers: &[ProblemCase]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status = BTreeMap::<u16, Vec<ProblemCase>>::new();
    for answer in answers {
        let of_status = by_status.entry(answer.status().as_u16()).or_default();
        if !of_status.contains(answer) {
            of_status.push(*answer);
        }
    }
    by_status
        .into_iter()
        .map(|(status, answers)| (status.to_string(), response(&answers).into()))
        .collect()
}

fn response(answers: &[ProblemCase]) -> Response {
    let titles = answers.iter().map(|answer| match answer {
        Coded(code) => format!("`{}`: {}.", code.name(), code.title()),
        Plain(status) => format!(
            "{}; this error has no code.",
            status.canonical_reason().unwrap_or("Error")
        ),
    });
    let examples = answers.iter().map(|answer| {
        let example = ExampleBuilder::new()
            .summary(answer.name())
            .value(Some(answer.example()));
        (answer.name().replace(' ', "-"), example)
    });
    let content = ContentBuilder::new()
        .schema(Some(schema(answers)))
        .examples_from_iter(examples);
    ResponseBuilder::new()
        .description(titles.collect::<Vec<_>>().join("\n\n"))
        .content(PROBLEM_JSON, content.build())
        .build()
}

/// Every problem, narrowed to the codes of this status, so that a code that no table names fails the contract test.
fn schema(answers: &[ProblemCase]) -> Schema {
    let codes: Vec<_> = answers
        .iter()
        .filter(|answer| matches!(answer, Coded(_)))
        .map(|answer| answer.name())
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
    if codes.len() == answers.len() {
        narrowed = narrowed.required("code");
    }
    Schema::AllOf(
        AllOfBuilder::new()
            .item(Ref::from_schema_name("Problem"))
            .item(narrowed)
            .build(),
    )
}
