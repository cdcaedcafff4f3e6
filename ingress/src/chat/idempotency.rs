//! Idempotency keys: a retried request maps to the same message id, and the stored record detects
//! reuse.

use std::fmt;

use http::{HeaderMap, HeaderName};
use switchboard_schemas::{
    ids::{EventId, MessageId},
    time::Timestamp,
    turn::Turn,
};
use utoipa::IntoParams;

use super::request::ChatBody;
use crate::{
    auth::caller::AuthorizedCaller,
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Name of the header in error bodies.
const PARAM: &str = "Idempotency-Key";
/// Maximum length of a key, in Unicode characters.
const KEY_CHARS_MAX: usize = 255;

/// The `Idempotency-Key` of a request, scoped to its sender and route, with the fingerprint of its
/// body.
pub(crate) struct IdempotencyKey {
    sender: String,
    route: String,
    key: String,
    fingerprint: String,
}

/// The stored record of a used key: three words, in the order of the fields.
#[derive(Debug, PartialEq, Eq)]
struct KeyRecord {
    fingerprint: String,
    /// Nonce of the first publish, which distinguishes concurrent requests with the same key.
    publish_nonce: String,
    accepted_at: Timestamp,
}

/// Result of recording an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdempotencyKeyUse {
    /// The key was not used before.
    New,
    /// The same request was received earlier; it may be running, finished, or rejected.
    Duplicate {
        /// Acceptance time of the first request.
        since: Timestamp,
    },
}

impl IdempotencyKey {
    /// Returns the key of a request to the agent or team `owner`, or `None` without the header.
    pub(crate) fn from_request<P>(
        headers: &HeaderMap,
        caller: &AuthorizedCaller<P>,
        owner: &str,
        body: &ChatBody,
    ) -> ApiResult<Option<Self>> {
        let Some(key) = IdempotencyKeyHeader::from_headers(headers)?.key else {
            return Ok(None);
        };
        let (sender, route) = (caller.sender_id().to_owned(), format!("{owner}/chat"));
        Ok(Some(Self {
            sender,
            route,
            key,
            fingerprint: body.fingerprint(),
        }))
    }

    /// Sets the message id that all requests with this key share.
    pub(crate) fn assign_message_id(&self, turn: &mut Turn) {
        let Self {
            sender,
            route,
            key,
            fingerprint,
        } = self;
        turn.message_id =
            MessageId::from_idempotency_key(&turn.conversation_id, sender, route, key, fingerprint);
    }

    /// Records the request before anything is published. Fails if the key belongs to a different
    /// request, or if the store of keys is unavailable, because duplicates could not be detected
    /// then.
    pub(crate) async fn record_use(
        &self,
        state: &AppState,
        turn: &Turn,
    ) -> ApiResult<IdempotencyKeyUse> {
        // Hashed, because client keys are arbitrary text and must not become part of a store key.
        let name = EventId::derive(&format!("{}/{}", self.sender, self.route), &self.key);
        let own = KeyRecord {
            fingerprint: self.fingerprint.clone(),
            publish_nonce: turn.publish_nonce.clone(),
            accepted_at: turn.accepted_at,
        };
        let stored = state
            .backends
            .relay
            .get_or_insert(&format!("request:{name}"), &own.to_string())
            .await
            .map_err(|error| {
                tracing::warn!(%error, "idempotency key not recorded");
                ApiError::unavailable("duplicate requests cannot be detected at the moment")
            })?;
        match KeyRecord::parse(&stored) {
            Some(record) if record == own => Ok(IdempotencyKeyUse::New),
            Some(record) if record.fingerprint == self.fingerprint => {
                Ok(IdempotencyKeyUse::Duplicate {
                    since: record.accepted_at,
                })
            }
            _ => {
                let detail = "this idempotency key was used for a request with other content";
                Err(ApiError::new(ErrorCode::IdempotencyKeyReused, detail).param(PARAM))
            }
        }
    }
}

impl KeyRecord {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            fingerprint: words.next()?.to_owned(),
            publish_nonce: words.next()?.to_owned(),
            accepted_at: Timestamp::from_micros(words.next()?.parse().ok()?),
        })
    }
}

impl fmt::Display for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.accepted_at.micros();
        write!(f, "{} {} {micros}", self.fingerprint, self.publish_nonce)
    }
}

/// The idempotency key as the client sent it.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKeyHeader {
    /// Makes retries safe for 24 hours: a request with the same key and content joins the reply of
    /// the first one, in any format, and other content gets 422. Keys count per sender and path.
    #[param(
        rename = "Idempotency-Key",
        value_type = String,
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "6f1c2a9e-order-1"
    )]
    key: Option<String>,
}

impl IdempotencyKeyHeader {
    fn from_headers(headers: &HeaderMap) -> ApiResult<Self> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else {
            return Ok(Self { key: None });
        };
        let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
        let is_short = (1..=KEY_CHARS_MAX).contains(&text.chars().count());
        if values.next().is_some() || !is_short || text.chars().any(char::is_control) {
            return Err(ApiError::field(
                PARAM,
                "must be one value of 1 to 255 printable characters",
            ));
        }
        Ok(Self {
            key: Some(text.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_record_is_read_as_it_was_written() {
        let record = KeyRecord {
            fingerprint: "f00d".into(),
            publish_nonce: "req_1".into(),
            accepted_at: Timestamp::from_micros(1_000_001),
        };
        // Processes of different versions share the stored text during an upgrade.
        assert_eq!(record.to_string(), "f00d req_1 1000001");
        assert_eq!(KeyRecord::parse(&record.to_string()), Some(record));
        assert_eq!(KeyRecord::parse("f00d req_1"), None);
    }
}
