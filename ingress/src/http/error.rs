//! The one table of error codes and the one error type of all routes; nothing else makes a response with an error
//! status. What a client reads of it is written in [`crate::problem`].

use std::{borrow::Cow, fmt, time::Duration};

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;
use switchboard_backends::store::StoreError;

/// What a client is told to wait when something of ours is away.
pub(crate) const RETRY_AFTER_OUTAGE: Duration = Duration::from_secs(2);

/// The answer of every handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// A code that clients can rely on: a code's name and status never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// All codes, in the order of the table.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the body.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The status of the response.
            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// The kind of problem, in words for people.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

// The specification's codes that this crate answers with stand first, the contract's own behind them.
codes! {
    InvalidAgentId = "INVALID_AGENT_ID", BAD_REQUEST, "Agent id missing or empty";
    InvalidSessionId = "INVALID_SESSION_ID", BAD_REQUEST, "Session id missing or empty";
    InvalidRequestData = "INVALID_REQUEST_DATA", BAD_REQUEST, "Request data not valid";
    InvalidJson = "INVALID_JSON", BAD_REQUEST, "Body is not valid JSON";
    InvalidRating = "INVALID_RATING", BAD_REQUEST, "Rating is not a number from 1 to 5";
    MissingApiKey = "MISSING_API_KEY", UNAUTHORIZED, "API key missing";
    InvalidApiKey = "INVALID_API_KEY", UNAUTHORIZED, "API key not valid";
    ExpiredApiKey = "EXPIRED_API_KEY", UNAUTHORIZED, "API key expired";
    OrgMismatch = "ORG_MISMATCH", FORBIDDEN, "Agent belongs to another organization";
    InsufficientScope = "INSUFFICIENT_SCOPE", FORBIDDEN, "API key lacks the scope";
    AgentNotPublic = "AGENT_NOT_PUBLIC", FORBIDDEN, "Agent is not public";
    AgentInactive = "AGENT_INACTIVE", FORBIDDEN, "Agent is not active";
    DomainNotAllowed = "DOMAIN_NOT_ALLOWED", FORBIDDEN, "Origin not allowed";
    AgentNotFound = "AGENT_NOT_FOUND", NOT_FOUND, "Agent not found";
    ConversationNotFound = "CONVERSATION_NOT_FOUND", NOT_FOUND, "Conversation not found";
    RateLimited = "RATE_LIMITED", TOO_MANY_REQUESTS, "Too many requests";
    NotFound = "NOT_FOUND", NOT_FOUND, "Not found";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED, "Method not allowed";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", PAYLOAD_TOO_LARGE, "Body too large";
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE, "Media type not supported";
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", UNPROCESSABLE_ENTITY, "Idempotency key used for another request";
    Conflict = "CONFLICT", CONFLICT, "Conflict";
    ReplyRestarted = "REPLY_RESTARTED", CONFLICT, "Reply was begun anew";
    MessageNotFound = "MESSAGE_NOT_FOUND", NOT_FOUND, "Message not found";
    RangeNotSatisfiable = "RANGE_NOT_SATISFIABLE", RANGE_NOT_SATISFIABLE, "Nothing at that offset";
    ModelError = "MODEL_ERROR", BAD_GATEWAY, "Model gave no answer";
    Unavailable = "UNAVAILABLE", SERVICE_UNAVAILABLE, "Temporarily unavailable";
    ModelTimeout = "MODEL_TIMEOUT", GATEWAY_TIMEOUT, "Model did not answer in time";
    Internal = "INTERNAL", INTERNAL_SERVER_ERROR, "Internal error";
}

/// Why a request was not served. Boxed inside, because results of it travel through every function of the crate.
#[derive(Debug)]
pub(crate) struct ApiError(Box<ErrorFacts>);

/// Everything that a response says of an error.
#[derive(Clone, Debug)]
pub(crate) struct ErrorFacts {
    /// Status of the response.
    pub(crate) status: StatusCode,
    /// The code, where the specification has one.
    pub(crate) code: Option<ErrorCode>,
    /// This occurrence, in words for people; without text of the client.
    pub(crate) detail: Cow<'static, str>,
    /// The field or header concerned.
    pub(crate) param: Option<String>,
    /// Further facts for programs.
    pub(crate) details: Option<Value>,
    /// When to come again.
    pub(crate) retry_after: Option<Duration>,
}

impl ApiError {
    /// An error with a code.
    pub(crate) fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::of(code.status(), Some(code), detail.into())
    }

    /// An error for which no code is defined.
    pub(crate) fn uncoded(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::of(status, None, detail.into())
    }

    /// A field of the request that is missing or wrong; `fault` goes on with the sentence that its name begins.
    pub(crate) fn field(param: impl Into<String>, fault: impl fmt::Display) -> Self {
        let param = param.into();
        Self::new(ErrorCode::InvalidRequestData, format!("{param} {fault}")).param(param)
    }

    /// Something of ours is away; trying again is safe.
    pub(crate) fn unavailable(detail: &'static str) -> Self {
        Self::new(ErrorCode::Unavailable, detail).retry_after(RETRY_AFTER_OUTAGE)
    }

    /// A fault of ours: told to the log here, once, and hidden from the client.
    pub(crate) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(error = %cause, "request failed inside");
        Self::new(ErrorCode::Internal, "the request failed inside the service")
    }

    /// Its code.
    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        self.0.code
    }

    /// The same error on a route that gives it no code.
    pub(crate) fn without_code(mut self) -> Self {
        self.0.code = None;
        self
    }

    /// Names the field or header concerned.
    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    /// Adds facts for programs.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Says when to come again.
    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// Whether something that the request names does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.0.status == StatusCode::NOT_FOUND
    }

    /// What the response will say.
    pub(crate) fn into_facts(self) -> ErrorFacts {
        *self.0
    }

    fn of(status: StatusCode, code: Option<ErrorCode>, detail: Cow<'static, str>) -> Self {
        Self(Box::new(ErrorFacts {
            status,
            code,
            detail,
            param: None,
            details: None,
            retry_after: None,
        }))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "store away");
                Self::unavailable("the store cannot be reached")
            }
            StoreError::Malformed(_) => Self::internal(&error),
        }
    }
}

/// The body is written by the outermost layer, which knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self.into_facts());
        response
    }
}
