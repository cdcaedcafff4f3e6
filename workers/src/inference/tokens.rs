//! Counts tokens: with a real vocabulary where it matters, and never loads it where it does not.
//!
//! The vocabulary is OpenAI's `o200k_base`; other models' differ by some percent, which is far nearer than any rule about
//! characters: four to a token is right for English and wrong by half for Persian, Chinese or code.

use tiktoken_rs::o200k_base_singleton;

/// Characters of one token, roughly: for figures that only inform.
const CHARS_PER_TOKEN: usize = 4;
/// What roles and separators cost for each message, about.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;

/// Tokens of a message, as the window counts them.
pub(crate) fn of_message(text: &str) -> usize {
    count(text) + MESSAGE_OVERHEAD_TOKENS
}

/// Tokens of a text.
pub(crate) fn count(text: &str) -> usize {
    o200k_base_singleton().count_ordinary(text)
}

/// More than a message can cost: a token is at least one byte. Most conversations fit by this alone, and a process that
/// sees no other never takes the 46 MB of the vocabulary.
pub(crate) const fn bound_of_message(text: &str) -> usize {
    text.len() + MESSAGE_OVERHEAD_TOKENS
}

/// A rough figure, for providers that tell none.
pub(crate) fn estimate(text: &str) -> usize {
    text.chars().count().div_ceil(CHARS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_those_of_the_vocabulary() {
        assert_eq!(count("Which lamps do you have?"), 6);
        assert!(count("سلام، حال شما چطور است؟") > estimate("سلام، حال شما چطور است؟"));
    }

    proptest! {
        #[test]
        fn no_text_costs_more_than_its_bound(text in "\\PC{0,200}") {
            prop_assert!(of_message(&text) <= bound_of_message(&text));
        }
    }
}
