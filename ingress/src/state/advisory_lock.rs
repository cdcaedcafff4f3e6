//! Who of several processes may change something that the store cannot compare: they agree by a note in the relay. A note
//! whose writer died holds others up for a moment only.

use std::time::Duration;

use switchboard_schemas::{ids::RequestId, time::Timestamp};

use crate::state::AppState;

/// Longer than a write may take: what still stands after this was not changed by whoever noted it.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Between two looks at what another one is changing.
pub(crate) const CHANGE_POLL: Duration = Duration::from_millis(50);
const SEPARATOR: char = ' ';

/// Who may make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// This request.
    Ours,
    /// Another one, which is at it.
    Another,
    /// Whoever comes: the relay is away, and two processes are told apart only by what they read.
    Anybodys,
}

/// Notes that this request makes the change of this name, unless another one has noted that lately.
pub(crate) async fn right_to(state: &AppState, change: &str, nonce: &RequestId) -> Right {
    let now = Timestamp::now();
    let own = format!("{}{SEPARATOR}{nonce}", now.micros());
    match state.backends.relay.remember(change, &own).await {
        Ok(noted) if is_recent_note_of_another(&noted, now, nonce) => Right::Another,
        Ok(_) => Right::Ours,
        Err(error) => {
            tracing::warn!(%error, "a change is made without asking other processes");
            Right::Anybodys
        }
    }
}

fn is_recent_note_of_another(noted: &str, now: Timestamp, nonce: &RequestId) -> bool {
    let Some((at, owner)) = noted.split_once(SEPARATOR) else {
        return false;
    };
    let at = Timestamp::from_micros(at.parse().unwrap_or_default());
    owner != nonce.as_str() && u128::from(now.millis_since(at)) < CHANGE_TIME_MAX.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_others_up_only_for_as_long_as_a_write_may_take() {
        let (own, other) = (RequestId::random(), RequestId::random());
        let noted = format!("1000000 {other}");
        let seconds = |seconds: i64| Timestamp::from_micros(1_000_000 + seconds * 1_000_000);
        assert!(is_recent_note_of_another(&noted, seconds(1), &own));
        assert!(!is_recent_note_of_another(&noted, seconds(1), &other));
        assert!(!is_recent_note_of_another(&noted, seconds(5), &own));
    }
}
