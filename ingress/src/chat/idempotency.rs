//! A request that may come twice: its `Idempotency-Key` names its message, and the relay remembers what it said.

use http::{HeaderMap, HeaderName};
use switchboard_schemas::{
    ids::{EventId, MessageId},
    time::Timestamp,
    turn::Turn,
};

use crate::{
    caller::Caller,
    error::{ApiError, ApiResult, ErrorCode},
    state::AppState,
    turn::ChatBody,
};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The header as errors name it.
const PARAM: &str = "Idempotency-Key";
/// Longest key, in characters.
const KEY_CHARS_MAX: usize = 255;
/// Stands between what a request says, which one it was, and when it came; none of them holds it.
const SEPARATOR: &str = " ";

/// The key of a request and what the request says.
pub(crate) struct Repeat {
    sender: String,
    route: String,
    key: String,
    fingerprint: String,
}

/// Which time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence {
    /// Nobody has asked before.
    First,
    /// The same request is running, or has been answered, or was refused on its way.
    Again {
        /// When it was asked first.
        since: Timestamp,
    },
}

impl Repeat {
    /// Reads the header of a request to the agent or team `owner`; none without it.
    pub(crate) fn read<P>(
        headers: &HeaderMap,
        caller: &Caller<P>,
        owner: &str,
        body: &ChatBody,
    ) -> ApiResult<Option<Self>> {
        let Some(key) = key(headers)? else {
            return Ok(None);
        };
        let (sender, route) = (caller.sender().to_owned(), format!("{owner}/chat"));
        Ok(Some(Self {
            sender,
            route,
            key,
            fingerprint: body.fingerprint(),
        }))
    }

    /// The one message that all repeats are.
    pub(crate) fn name_message(&self, turn: &mut Turn) {
        let Self {
            sender,
            route,
            key,
            fingerprint,
        } = self;
        turn.message_id =
            MessageId::idempotent(&turn.conversation_id, sender, route, key, fingerprint);
    }

    /// Remembers the request, before anything is published. Without the relay no repeat could be told from a first one,
    /// and such a request is refused.
    pub(crate) async fn remember(&self, state: &AppState, turn: &Turn) -> ApiResult<Occurrence> {
        // Hashed, because a client's key is any text, and no name of ours may hold that.
        let name = EventId::of(&format!("{}/{}", self.sender, self.route), &self.key);
        let own = [
            &self.fingerprint,
            &turn.publish_nonce,
            &turn.accepted_at.micros().to_string(),
        ]
        .map(String::as_str)
        .join(SEPARATOR);
        let known = state
            .backends
            .relay
            .remember(&format!("request:{name}"), &own)
            .await
            .map_err(|error| {
                tracing::warn!(%error, "a request with an idempotency key cannot be remembered");
                ApiError::unavailable("repeats cannot be told apart at the moment")
            })?;
        if known == own {
            return Ok(Occurrence::First);
        }
        let mut noted = known.split(SEPARATOR);
        match (noted.next(), noted.nth(1)) {
            (Some(fingerprint), since) if fingerprint == self.fingerprint => {
                let since = Timestamp::from_micros(
                    since
                        .and_then(|since| since.parse().ok())
                        .unwrap_or_default(),
                );
                Ok(Occurrence::Again { since })
            }
            _ => {
                let detail = "this idempotency key was used for a request that says something else";
                Err(ApiError::new(ErrorCode::IdempotencyKeyReused, detail).param(PARAM))
            }
        }
    }
}

fn key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
    let is_short = (1..=KEY_CHARS_MAX).contains(&text.chars().count());
    if values.next().is_some() || !is_short || text.chars().any(char::is_control) {
        return Err(ApiError::field(
            PARAM,
            "must be one value of 1 to 255 printable characters",
        ));
    }
    Ok(Some(text.to_owned()))
}
