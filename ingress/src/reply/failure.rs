//! What a failure before the first byte is in HTTP. After the first byte there is only one answer: the transfer breaks.

use serde_json::json;
use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::MessageId,
    reply_event::{ReplyEnd, ReplyFailure},
};

use super::follower::Loss;
use crate::error::{ApiError, ErrorCode};

/// The error of a reply that ended and was not completed. The message can be read all the same, under its id.
pub(crate) fn of_end(end: &ReplyEnd, reply: &MessageId) -> ApiError {
    let error = match (end.status, end.failure) {
        (ReplyStatus::Cancelled, _) => {
            ApiError::new(ErrorCode::Conflict, "the reply was cancelled")
        }
        (
            ReplyStatus::Incomplete,
            Some(ReplyFailure::ModelTimeout | ReplyFailure::DeadlineExceeded),
        ) => ApiError::new(ErrorCode::ModelTimeout, "the model fell silent"),
        (ReplyStatus::Incomplete, _) | (_, None) => {
            ApiError::new(ErrorCode::ModelError, "the model broke off")
        }
        (_, Some(failure)) => of_failure(failure),
    };
    error.details(json!({ "messageId": reply, "status": end.status }))
}

/// The error of a reply that cannot be followed.
pub(crate) fn of_loss(loss: Loss, reply: &MessageId) -> ApiError {
    let error = match loss {
        Loss::Unheard | Loss::Silent => {
            ApiError::unavailable("the reply did not begin in time; it may still be stored")
        }
        Loss::Breach(_) => ApiError::unavailable("the reply was begun anew"),
    };
    error.details(json!({ "messageId": reply }))
}

fn of_failure(failure: ReplyFailure) -> ApiError {
    match failure {
        ReplyFailure::ModelError => ApiError::new(
            ErrorCode::ModelError,
            "the model provider refused the request, or sent no usable answer",
        ),
        ReplyFailure::ModelUnavailable => {
            ApiError::unavailable("the model provider cannot be reached")
        }
        ReplyFailure::ModelTimeout => {
            ApiError::new(ErrorCode::ModelTimeout, "the model did not answer in time")
        }
        ReplyFailure::DeadlineExceeded => ApiError::new(
            ErrorCode::ModelTimeout,
            "the reply did not begin in its time",
        ),
        ReplyFailure::AttemptsExhausted => {
            ApiError::unavailable("every attempt to answer broke off")
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
