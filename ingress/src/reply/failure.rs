//! Maps failures before the first byte to HTTP errors. After the first byte the transfer is aborted
//! instead.

use std::time::Duration;

use serde_json::json;
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::MessageId,
    reply_event::{ReplyEnd, ReplyFailure},
};

use super::stream::StreamFailure;
use crate::http::{ApiError, ErrorCode, RETRY_AFTER_OUTAGE};

/// Returns the error of a reply that ended without completing. The message stays readable under its
/// id.
pub(crate) fn error_of_end(end: &ReplyEnd, reply: &MessageId) -> ApiError {
    let error = match (end.status, end.failure) {
        (ReplyStatus::Cancelled, _) => {
            ApiError::new(ErrorCode::Conflict, "the reply was cancelled")
        }
        (
            ReplyStatus::Incomplete,
            Some(ReplyFailure::ModelTimeout | ReplyFailure::DeadlineExceeded),
        ) => ApiError::new(ErrorCode::ModelTimeout, "the model stopped sending"),
        (ReplyStatus::Incomplete, _) | (_, None) => {
            ApiError::new(ErrorCode::ModelError, "the model cut off its reply")
        }
        (_, Some(ReplyFailure::ModelUnavailable)) => {
            ApiError::unavailable("the model provider cannot be reached")
                .retry_after(client_pause(end))
        }
        (_, Some(failure)) => error_of_failure(failure),
    };
    error
        .details(json!({ "messageId": reply, "status": end.status }))
        .provider_error(end.provider_error.clone())
}

/// Returns the error of a reply that can no longer be followed.
pub(crate) fn error_of_loss(loss: StreamFailure, reply: &MessageId) -> ApiError {
    let error = match loss {
        StreamFailure::NeverStarted | StreamFailure::WentSilent => {
            ApiError::unavailable("the reply did not start in time; it may still be stored")
        }
        StreamFailure::TextConflict(_) => ApiError::unavailable("the reply was restarted"),
    };
    error.details(json!({ "messageId": reply }))
}

/// Returns the pause for the client: at least that for which the provider asked.
fn client_pause(end: &ReplyEnd) -> Duration {
    let said = end.provider_error.as_ref();
    let asked = said.and_then(|said| said.retry_after_ms).unwrap_or(0);
    Duration::from_millis(asked).max(RETRY_AFTER_OUTAGE)
}

fn error_of_failure(failure: ReplyFailure) -> ApiError {
    match failure {
        ReplyFailure::ModelError => ApiError::new(
            ErrorCode::ModelError,
            "the model provider rejected the request or sent no valid response",
        ),
        ReplyFailure::ModelUnavailable => {
            ApiError::unavailable("the model provider cannot be reached")
        }
        ReplyFailure::ModelTimeout => {
            ApiError::new(ErrorCode::ModelTimeout, "the model did not respond in time")
        }
        ReplyFailure::DeadlineExceeded => {
            ApiError::new(ErrorCode::ModelTimeout, "the reply did not start in time")
        }
        ReplyFailure::AttemptsExhausted => {
            ApiError::unavailable("every attempt to generate the reply failed")
        }
        ReplyFailure::AgentUnavailable => {
            ApiError::new(ErrorCode::AgentInactive, "the agent no longer answers")
        }
        ReplyFailure::NoRoute => ApiError::new(ErrorCode::Internal, "no agent can answer"),
        ReplyFailure::Internal => {
            ApiError::new(ErrorCode::Internal, "the reply failed inside the service")
        }
    }
}
