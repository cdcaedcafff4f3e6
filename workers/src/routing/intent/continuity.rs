//! Estimates the probability that a message changes the topic of a running conversation. Pure functions.
//!
//! Most messages of a conversation are answers, thanks and further questions, which contain words of other members at most by
//! chance. A change of topic shows in the form of a message as much as in its words: it is longer, asks, announces itself,
//! and rarely follows an agent's question. The weights were fitted on `tests/routing/tuning` (logistic regression).

use super::lexical::content_words;
use crate::text::folding::fold;

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
const CHANGED_MIN: f32 = 0.3;
/// The same threshold for a possible answer to the agent's question.
const NO_ANSWER_MIN: f32 = 0.7;
/// The same threshold for a message with words of the current member.
const BOTH_MIN: f32 = 0.5;
/// Probability from which the local stage is unsure, so that a model is asked.
pub(super) const UNSURE_MIN: f32 = 0.2;
/// Most words that count.
const WORDS_MAX: usize = 8;
/// Largest lead of another member that counts, as a natural logarithm.
const LEAD_MAX: f32 = 3.0;
/// Lowest score that counts; keeps the logarithm finite.
const SHARE_MIN: f32 = 1e-6;

/// Number of features of a message.
const FEATURES: usize = 7;
/// Most content words of an answer to the agent's question that neither asks nor announces anything.
const ANSWER_WORDS_MAX: f32 = 3.0;
/// Most content words of a remark if the agent asked nothing, such as thanks or a name.
const REMARK_WORDS_MAX: f32 = 2.0;
const CONSTANT: f32 = -6.63;
const WEIGHTS: [f32; FEATURES] = [0.57, 1.76, 0.94, 3.01, -1.63, 0.77, 2.6];

/// A message in a running conversation, with the scores of the agents.
pub(super) struct LaterMessage<'a> {
    /// Text of the message.
    pub(super) message: &'a str,
    /// The last message of the agent, if the visitor has written nothing since.
    pub(super) last_agent_text: Option<&'a str>,
    /// True if the default agent has the conversation.
    pub(super) with_default: bool,
    /// True if the message has words of the current member.
    pub(super) names_present: bool,
    /// Score of the current agent.
    pub(super) present: f32,
    /// Highest score of the other members.
    pub(super) other: f32,
}

impl LaterMessage<'_> {
    fn agent_asked(&self) -> bool {
        self.last_agent_text
            .is_some_and(|said| said.trim_end().ends_with('?'))
    }
}

/// Returns the probability that the message belongs to another member.
pub(super) fn chance_of_change(turn: &LaterMessage<'_>) -> f32 {
    let features = features(turn);
    if is_answer(&features) {
        return 0.0;
    }
    let score: f32 = CONSTANT
        + features
            .iter()
            .zip(WEIGHTS)
            .map(|(feature, weight)| feature * weight)
            .sum::<f32>();
    1.0 / (1.0 + (-score).exp())
}

/// Returns true for a message without content words (a number, thanks, a yes) and for a few words that ask nothing, which
/// answer the member's last message even if they name a place, a department or a product. The default agent has no topic of
/// its own to stay with.
fn is_answer([_, _, words, announces, agent_asked, asks, with_default]: &[f32; FEATURES]) -> bool {
    let is_plain = *announces == 0.0 && *asks == 0.0 && *with_default == 0.0;
    let words_max = if *agent_asked == 0.0 {
        REMARK_WORDS_MAX
    } else {
        ANSWER_WORDS_MAX
    };
    *words == 0.0 || is_plain && *words <= words_max
}

/// Returns the probability from which the message changes the topic. An announced change needs less; a statement after the
/// agent's question needs more, because it is usually an answer.
pub(super) fn changed_min(turn: &LaterMessage<'_>) -> f32 {
    if announces_change(turn.message) {
        UNSURE_MIN
    } else if turn.agent_asked() && !turn.message.contains('?') {
        NO_ANSWER_MIN
    } else if turn.names_present {
        BOTH_MIN
    } else {
        CHANGED_MIN
    }
}

/// Returns the features that distinguish a change of topic from an answer.
#[expect(clippy::cast_precision_loss, reason = "a handful of words")]
pub(super) fn features(turn: &LaterMessage<'_>) -> [f32; FEATURES] {
    let lead = (turn.other.max(SHARE_MIN) / turn.present.max(SHARE_MIN))
        .ln()
        .clamp(-LEAD_MAX, LEAD_MAX);
    let sign = |holds: bool| if holds { 1.0 } else { 0.0 };
    [
        lead,
        turn.other,
        content_words(turn.message).len().min(WORDS_MAX) as f32,
        sign(announces_change(turn.message)),
        sign(turn.agent_asked()),
        sign(turn.message.contains('?')),
        sign(turn.with_default),
    ]
}

/// Returns true if the text announces another topic.
fn announces_change(text: &str) -> bool {
    let words: Vec<String> = text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(fold)
        .collect();
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

    fn chance(message: &str, last_agent_text: Option<&str>, other: f32) -> f32 {
        chance_of_change(&LaterMessage {
            message,
            last_agent_text,
            with_default: false,
            names_present: false,
            present: 0.2,
            other,
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
        ] {
            let chance = chance(message, Some("Which department are you in?"), 0.79);
            assert!(chance < UNSURE_MIN, "{message}: {chance}");
        }
    }

    #[test]
    fn few_words_without_a_question_are_an_answer() {
        let answer = "broken screen, cracked glass";
        assert!(chance(answer, Some("What happened?"), 0.99) < UNSURE_MIN);
        assert!(chance("Mahnung, Rechnung", None, 0.99) < UNSURE_MIN);
        for question in ["by the way, broken screen", "broken screen?"] {
            assert!(
                chance(question, None, 0.99) > chance(answer, Some("What happened?"), 0.99),
                "{question}"
            );
        }
    }

    #[test]
    fn announced_question_changes_the_topic() {
        let message =
            "great. By the way, could you repair the zip of my old leather jacket before winter?";
        assert!(chance(message, None, 0.6) >= CHANGED_MIN);
        assert!(
            chance(message, None, 0.6) > chance(message, Some("Which size?"), 0.6),
            "less after a question"
        );
        assert!(
            chance(message, None, 0.6) > chance(message, None, 0.1),
            "less if it fits the present member"
        );
    }

    #[test]
    fn statement_after_a_question_is_an_answer() {
        let needed = |message: &str, last_agent_text: Option<&'static str>| {
            changed_min(&LaterMessage {
                message,
                last_agent_text,
                with_default: false,
                names_present: false,
                present: 0.2,
                other: 0.6,
            })
        };
        let asked = Some("Does one of these suit you?");
        assert!(needed("my invoice is wrong", asked) > needed("my invoice is wrong", None));
        assert!(
            needed("by the way, my invoice is wrong", asked) < needed("my invoice is wrong", None)
        );
        let other = "By the way, I was charged twice last month";
        let turn = LaterMessage {
            message: other,
            last_agent_text: asked,
            with_default: false,
            names_present: false,
            present: 0.01,
            other: 0.98,
        };
        assert!(
            chance_of_change(&turn) >= changed_min(&turn),
            "an announced change moves also after a question of the agent"
        );
    }
}
