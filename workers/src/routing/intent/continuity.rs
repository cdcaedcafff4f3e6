//! Estimates the probability that a message changes the topic of a running conversation. Pure
//! functions.
//!
//! Most messages of a conversation are answers, thanks and further questions, which contain words
//! of other members at most by chance. A change of topic shows in the form of a message as much as
//! in its scores: it has more words, announces itself, and rarely is a statement after an agent's
//! question. The weights were fitted on the dialogues of `tests/routing/tuning` (one logistic
//! regression over the scores of all three kinds of model).

use super::lexical::content_words;
use crate::text::tokens::{TextPart, split_parts};

/// Phrases that announce another topic, folded, in the languages that most visitors write.
#[rustfmt::skip]
const CHANGE_PHRASES: [&str; 48] = [
    "by the way", "btw", "another question", "one more thing", "something else", "different question", "also",
    "unrelated", "on another note", "back to", "oh and", "while i am here",
    "ubrigens", "ausserdem", "noch etwas", "noch eine frage", "andere frage", "was anderes", "nebenbei", "ach ja",
    "au fait", "d ailleurs", "sinon", "autre chose", "autre question", "par ailleurs", "en passant",
    "por cierto", "otra cosa", "otra pregunta", "ademas", "tambien", "ya que estoy", "cambiando de tema",
    "a proposito", "un altra cosa", "altra domanda", "inoltre", "gia che ci sono",
    "przy okazji", "jeszcze jedno", "poza tym", "inna sprawa",
    "outra coisa", "outra pergunta", "alem disso",
    "trouwens", "nog een vraag",
];

/// Probability from which the local stage assumes a change of topic.
pub(super) const CHANGED_MIN: f32 = 0.4;
/// Probability from which the local stage is unsure, so that a model is asked.
pub(super) const UNSURE_MIN: f32 = 0.25;
/// Most content words that count.
const WORDS_MAX: usize = 8;

const CONSTANT: f32 = -4.90;
/// Weight of the difference between the scores of the best other member and of the current agent.
const LEAD: f32 = 1.94;
/// Weight of each content word.
const WORD: f32 = 0.96;
const ANNOUNCED: f32 = 2.82;
/// Weight of a statement after the agent's question, unless it announces a change; it is usually an
/// answer.
const ANSWER: f32 = -2.79;
/// Weight of a conversation with the default agent, which has no topic of its own.
const WITH_DEFAULT: f32 = 2.85;

/// A message in a running conversation.
pub(super) struct LaterMessage<'a> {
    /// Text of the message.
    pub(super) message: &'a str,
    /// The last message of the agent, if the visitor has written nothing since.
    pub(super) last_agent_text: Option<&'a str>,
    /// True if the default agent has the conversation.
    pub(super) with_default: bool,
    /// Highest score of the other members less the score of the current agent.
    pub(super) lead: f32,
}

/// Returns the probability that the message belongs to another member.
#[expect(clippy::cast_precision_loss, reason = "a handful of words")]
pub(super) fn chance_of_change(later: &LaterMessage<'_>) -> f32 {
    let words = content_words(later.message).len().min(WORDS_MAX);
    let mut logit = CONSTANT + LEAD * later.lead + WORD * words as f32;
    if announces_change(later.message) {
        logit += ANNOUNCED;
    } else if later.agent_asked() && !later.message.contains('?') {
        logit += ANSWER;
    }
    if later.with_default {
        logit += WITH_DEFAULT;
    }
    1.0 / (1.0 + (-logit).exp())
}

impl LaterMessage<'_> {
    fn agent_asked(&self) -> bool {
        self.last_agent_text
            .is_some_and(|text| text.trim_end().ends_with('?'))
    }
}

/// Returns true if the text announces another topic.
fn announces_change(text: &str) -> bool {
    let words = split_parts(text).into_iter().map(|part| match part {
        TextPart::Word { text, .. } | TextPart::Unspaced(text) => text,
    });
    let words: Vec<String> = words.collect();
    let text = format!(" {} ", words.join(" "));
    CHANGE_PHRASES
        .iter()
        .any(|phrase| text.contains(&format!(" {phrase} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_changes_are_recognized_in_any_language() {
        for text in [
            "oh, by the way: my invoice",
            "Außerdem brauche ich",
            "au fait, ma facture",
            "por cierto, otra duda",
        ] {
            assert!(announces_change(text), "{text}");
        }
        assert!(!announces_change("thanks, that is all"));
    }

    fn chance(message: &str, last_agent_text: Option<&str>, lead: f32) -> f32 {
        chance_of_change(&LaterMessage {
            message,
            last_agent_text,
            with_default: false,
            lead,
        })
    }

    #[test]
    fn short_answers_never_change_the_topic() {
        for message in [
            "Billing",
            "42",
            "thanks!",
            "yes please",
            "Berlin",
            "OG-44871",
            "jo@mailbox.example",
            "broken screen, cracked glass",
        ] {
            let chance = chance(message, Some("Which department are you in?"), 0.99);
            assert!(chance < UNSURE_MIN, "{message}: {chance}");
        }
        let remark = chance("Mahnung, Rechnung", None, 0.6);
        assert!(remark < UNSURE_MIN, "{remark}");
    }

    #[test]
    fn announced_question_changes_the_topic() {
        let message =
            "great. By the way, could you repair the zip of my old leather jacket before winter?";
        assert!(chance(message, None, 0.4) >= CHANGED_MIN);
        assert!(
            chance(message, None, 0.4) > chance(message, None, -0.1),
            "less if it fits the present member"
        );
    }

    #[test]
    fn statement_after_a_question_is_an_answer() {
        let asked = Some("Does one of these suit you?");
        let statement = "the invoice of last month was charged twice on Monday";
        assert!(chance(statement, asked, 0.4) < UNSURE_MIN);
        assert!(chance(statement, None, 0.4) >= CHANGED_MIN);
        let announced = "By the way, I was charged twice last month";
        assert!(
            chance(announced, asked, 0.97) >= CHANGED_MIN,
            "an announced change moves also after a question of the agent"
        );
    }

    #[test]
    fn default_agent_has_no_topic_to_stay_with() {
        let chance = |with_default| {
            chance_of_change(&LaterMessage {
                message: "a refund for my invoice",
                last_agent_text: None,
                with_default,
                lead: 0.5,
            })
        };
        assert!(chance(false) < CHANGED_MIN && chance(true) >= CHANGED_MIN);
    }
}
