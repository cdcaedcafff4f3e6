//! A phrase as a visitor who asks about it would say it. A model that was taught English only finds two sentences more alike
//! than a sentence and a bare phrase that means the same: on five public sets the pieces of members brought 84.8 % of the
//! messages to the right one with this frame, 83.9 % without it (all-MiniLM-L6-v2). Neither multilingual E5 nor English that was
//! read word by word gains by it.

/// The phrase in a sentence.
pub(super) fn about(phrase: &str) -> String {
    format!("I have a question about {phrase}.")
}
