//! Finish reasons of providers, in any spelling: `stop`, `MAX_TOKENS`, `endTurn`, `content-filter`.

use switchboard_schemas::conversation::FinishReason;

/// Meaning of a finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinishKind {
    /// The model ended its answer.
    Regular(FinishReason),
    /// The provider says that the answer is not whole.
    Interrupted,
    /// A reason that nobody knows: whether the answer is whole depends on the rest of the stream.
    Unknown,
}

/// Words of interruptions. They come first, because `timeout_limit` is no length.
const INTERRUPTIONS: [&str; 37] = [
    "error",
    "incomplete",
    "unfinished",
    "abort",
    "cancel",
    "fail",
    "insufficient",
    "interrupt",
    "timeout",
    "timedout",
    "malformed",
    "unexpected",
    "exception",
    "unavailable",
    "overload",
    "ratelimit",
    "quota",
    "disconnect",
    "preempt",
    "shutdown",
    "killed",
    "outofmemory",
    "unspecified",
    "notfinish",
    "notcomplete",
    "abandon",
    "deadline",
    "exhaust",
    "connection",
    "terminated",
    "crash",
    "evict",
    "dropped",
    "network",
    "internal",
    "lost",
    "server",
];
/// Words of answers that a filter ended.
const FILTERS: [&str; 12] = [
    "filter",
    "safety",
    "refus",
    "recitation",
    "block",
    "prohibited",
    "spii",
    "guardrail",
    "moderat",
    "sensitive",
    "policy",
    "language",
];
/// Words of answers that reached a limit.
const LENGTHS: [&str; 8] = [
    "length",
    "maxtoken",
    "maxoutput",
    "maxnew",
    "limit",
    "contextwindow",
    "toolong",
    "truncat",
];
/// Words of complete answers.
const STOPS: [&str; 11] = [
    "stop", "endturn", "turnend", "endof", "eos", "eot", "tool", "function", "complete", "finish",
    "done",
];

impl FinishKind {
    /// Returns the meaning of a reason; `None` if it says that there is none yet.
    pub(super) fn parse(reason: &str) -> Option<Self> {
        let letters: String = reason
            .chars()
            .filter(|character| character.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        if matches!(letters.as_str(), "" | "null" | "none" | "undefined") {
            return None;
        }
        let has_any = |words: &[&str]| words.iter().any(|word| letters.contains(word));
        Some(if has_any(&INTERRUPTIONS) {
            Self::Interrupted
        } else if has_any(&FILTERS) {
            Self::Regular(FinishReason::ContentFilter)
        } else if has_any(&LENGTHS) {
            Self::Regular(FinishReason::Length)
        } else if has_any(&STOPS) {
            Self::Regular(FinishReason::Stop)
        } else {
            Self::Unknown
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_providers_are_understood_in_any_spelling() {
        let table = [
            (
                Some(FinishKind::Regular(FinishReason::Stop)),
                "stop STOP end_turn endTurn eos eos_token stop_sequence tool_calls tool_use function_call completed",
            ),
            (
                Some(FinishKind::Regular(FinishReason::Length)),
                "length MAX_TOKENS max_new_tokens too_long truncated max-output-tokens model_length model_context_window_exceeded",
            ),
            (
                Some(FinishKind::Regular(FinishReason::ContentFilter)),
                "content_filter SAFETY RECITATION PROHIBITED_CONTENT BLOCKLIST refusal sensitive guardrail_intervened",
            ),
            (
                Some(FinishKind::Interrupted),
                "error not_finished FINISH_REASON_UNSPECIFIED abandoned connection_reset deadline_exceeded abort aborted cancelled incomplete insufficient_system_resource network_error MALFORMED_FUNCTION_CALL timeout engine_overloaded",
            ),
            (Some(FinishKind::Unknown), "because OTHER pending"),
            (None, "null None"),
        ];
        for (want, reasons) in table {
            for reason in reasons.split(' ') {
                assert_eq!(FinishKind::parse(reason), want, "{reason}");
            }
        }
        assert_eq!(FinishKind::parse(""), None);
    }
}
