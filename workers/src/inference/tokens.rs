//! Counts tokens of texts and messages.
//!
//! The vocabulary is OpenAI's `o200k_base`. Other models' vocabularies differ by a few percent,
//! which is far closer than a rule about characters: four per token is right for English and wrong
//! by half for Persian, Chinese or code. It is loaded only when an exact count is needed.

use tiktoken_rs::o200k_base_singleton;

/// Rough number of characters per token, for estimates.
const CHARS_PER_TOKEN: usize = 4;
/// Approximate cost of the role and separators of a message.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;

/// Returns the tokens of a message with its overhead.
pub(crate) fn message_cost(text: &str) -> usize {
    count_tokens(text) + MESSAGE_OVERHEAD_TOKENS
}

pub(crate) fn count_tokens(text: &str) -> usize {
    o200k_base_singleton().count_ordinary(text)
}

/// Returns an upper bound of [`message_cost`]: a token is at least one byte. Most conversations fit
/// by this bound alone, and a process that sees no other never loads the 46 MB of the vocabulary.
pub(crate) const fn message_cost_bound(text: &str) -> usize {
    text.len() + MESSAGE_OVERHEAD_TOKENS
}

/// Returns an estimate, for providers that report no usage.
pub(crate) fn estimate_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_follow_the_vocabulary() {
        assert_eq!(count_tokens("Which lamps do you have?"), 6);
        assert!(count_tokens("سلام، حال شما چطور است؟") > estimate_tokens("سلام، حال شما چطور است؟"));
    }

    proptest! {
        #[test]
        fn message_cost_is_within_its_bound(text in "\\PC{0,200}") {
            prop_assert!(message_cost(&text) <= message_cost_bound(&text));
        }
    }
}
