//! Error codes and the error type of all routes. [`crate::http::problem`] writes the response body.

use std::{borrow::Cow, fmt, time::Duration};

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};
use switchboard_backends::StoreError;
use switchboard_schemas::provider::ProviderError;

/// `Retry-After` while a dependency is unavailable.
pub(crate) const RETRY_AFTER_OUTAGE: Duration = Duration::from_secs(2);

/// Result of every handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// A stable error code: its name and status never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// All codes in table order.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in the response body.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// Returns a short description for people.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

// Codes of the specification first, then those of the contract.
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

impl ErrorCode {
    /// Returns the name in the address of its description, such as `agent-not-found`.
    pub(crate) fn slug(self) -> String {
        self.name().to_ascii_lowercase().replace('_', "-")
    }
}

/// Error response of a request. Boxed, because results of this type travel through every function
/// of the crate.
#[derive(Debug)]
pub(crate) struct ApiError(Box<ErrorParts>);

/// Content of an error response.
#[derive(Clone, Debug)]
pub(crate) struct ErrorParts {
    /// HTTP status of the response.
    pub(crate) status: StatusCode,
    /// Error code, if the specification defines one.
    pub(crate) code: Option<ErrorCode>,
    /// Description of this occurrence; never contains client text.
    pub(crate) detail: Cow<'static, str>,
    /// Name of the invalid field or header.
    pub(crate) param: Option<String>,
    /// Machine-readable details.
    pub(crate) details: Option<Value>,
    /// Delay after which the client may retry.
    pub(crate) retry_after: Option<Duration>,
    /// Error of the provider. Not rendered.
    provider_error: Option<ProviderError>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::from_status(code.status(), Some(code), detail.into())
    }

    /// Creates an error without a code.
    pub(crate) fn uncoded(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::from_status(status, None, detail.into())
    }

    /// Creates an error about a missing or invalid field. The detail is the field name followed by
    /// `fault`.
    pub(crate) fn field(param: impl Into<String>, fault: impl fmt::Display) -> Self {
        let param = param.into();
        Self::new(ErrorCode::InvalidRequestData, format!("{param} {fault}")).param(param)
    }

    /// Creates a 503: a dependency is unavailable, and retrying is safe.
    pub(crate) fn unavailable(detail: &'static str) -> Self {
        Self::new(ErrorCode::Unavailable, detail).retry_after(RETRY_AFTER_OUTAGE)
    }

    /// Logs the cause and creates a 500 that does not reveal it.
    pub(crate) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(error = %cause, "internal error");
        Self::new(ErrorCode::Internal, "the request failed inside the service")
    }

    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        self.0.code
    }

    /// Removes the code, for routes that document none.
    pub(crate) fn without_code(mut self) -> Self {
        self.0.code = None;
        self
    }

    /// Sets the name of the invalid field or header.
    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    /// Sets the machine-readable details.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Sets the `Retry-After` delay.
    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// Adds what the provider said, which only [`Self::reveal_provider_error`] shows.
    pub(crate) fn provider_error(mut self, said: Option<ProviderError>) -> Self {
        self.0.provider_error = said;
        self
    }

    /// Shows what the provider said in the details, for members of the organization.
    pub(crate) fn reveal_provider_error(mut self) -> Self {
        if let (Some(said), Some(Value::Object(details))) =
            (self.0.provider_error.take(), &mut self.0.details)
        {
            details.insert("providerError".to_owned(), json!(said));
        }
        self
    }

    /// Returns true for status 404.
    pub(crate) fn is_not_found(&self) -> bool {
        self.0.status == StatusCode::NOT_FOUND
    }

    /// Returns the content of the response.
    pub(crate) fn into_parts(self) -> ErrorParts {
        *self.0
    }

    fn from_status(status: StatusCode, code: Option<ErrorCode>, detail: Cow<'static, str>) -> Self {
        Self(Box::new(ErrorParts {
            status,
            code,
            detail,
            param: None,
            details: None,
            retry_after: None,
            provider_error: None,
        }))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "store unavailable");
                Self::unavailable("the store cannot be reached")
            }
            StoreError::Refused(_) | StoreError::Malformed(_) => Self::internal(&error),
        }
    }
}

/// [`super::unknown_routes::write_problems`] writes the body, because it knows the request id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self.into_parts());
        response
    }
}
