//! Parses the responses of the relay's scripts.

use std::time::Duration;

use bytes::Bytes;
use switchboard_schemas::{ids::MessageId, reply_event::Frame};

use super::scripts::SLOT_FIELD_PREFIX;
use crate::relay::{CancelOutcome, ClaimOutcome, ClaimTask, ClaimToken, RelayError};

/// Response of the claim script: outcome, attempt or milliseconds, task, message count or the
/// holder's attempt, finalized end and milliseconds since the queue slot was reserved.
type ClaimResponse = (
    String,
    Option<u64>,
    Option<String>,
    Option<i64>,
    Option<Bytes>,
    Option<i64>,
);

/// Parses the response of the claim script; `nonce` is part of the granted token.
pub(super) fn parse_claim(
    reply_id: &MessageId,
    nonce: u64,
    response: redis::Value,
) -> Result<ClaimOutcome, RelayError> {
    let redis::Value::Array(mut parts) = response else {
        return Err(unexpected_response());
    };
    parts.resize(6, redis::Value::Nil);
    let response: ClaimResponse =
        redis::from_redis_value(redis::Value::Array(parts)).map_err(|_| unexpected_response())?;
    let (verdict, number, task, count, end, queue_wait) = response;
    let number = number.unwrap_or_default();
    match verdict.as_str() {
        "voided" => Ok(ClaimOutcome::Voided),
        "done" => Ok(ClaimOutcome::Done),
        "busy" => Ok(ClaimOutcome::Busy {
            retry_after: Duration::from_millis(number),
            attempt: count.and_then(|attempt| u32::try_from(attempt).ok()),
        }),
        "granted" => {
            let attempt = u32::try_from(number).map_err(|_| unexpected_response())?;
            let token = ClaimToken {
                reply_id: reply_id.clone(),
                attempt,
                nonce,
            };
            let task = parse_task(task.as_deref(), end)?;
            let message_count = count.and_then(|count| u64::try_from(count).ok());
            Ok(ClaimOutcome::Granted {
                token,
                task,
                message_count,
                queue_wait: queue_wait
                    .and_then(|queue_wait| u64::try_from(queue_wait).ok())
                    .map(Duration::from_millis),
            })
        }
        _ => Err(unexpected_response()),
    }
}

fn parse_task(task: Option<&str>, end: Option<Bytes>) -> Result<ClaimTask, RelayError> {
    match task {
        Some("answer") => Ok(ClaimTask::Generate),
        Some("announce") => Ok(ClaimTask::Announce),
        Some("give_up") => Ok(ClaimTask::GiveUp),
        Some("store") => {
            let end = Frame::decode(end.unwrap_or_default()).map_err(|_| unexpected_response())?;
            Ok(ClaimTask::StoreFinalized { end })
        }
        _ => Err(unexpected_response()),
    }
}

/// Parses the response of the cancel script.
pub(super) fn parse_cancellation(outcome: &str) -> Result<CancelOutcome, RelayError> {
    match outcome {
        "ended" => Ok(CancelOutcome::Ended),
        "requested" => Ok(CancelOutcome::Requested),
        "late" => Ok(CancelOutcome::TooLate),
        _ => Err(unexpected_response()),
    }
}

/// Returns the reply of a queue slot, given a field of its conversation.
pub(super) fn queued_reply(field: &str) -> Option<MessageId> {
    let reply_key = field.strip_prefix(SLOT_FIELD_PREFIX)?;
    reply_key.rsplit(':').next()?.parse().ok()
}

/// Creates the error of a response that no script returns.
pub(super) fn unexpected_response() -> RelayError {
    RelayError::Unavailable("unexpected response from redis".into())
}
