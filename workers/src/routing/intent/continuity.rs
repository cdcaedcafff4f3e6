//! Whether a message leaves the matter of a running conversation. Pure.
//!
//! Most messages of a conversation are answers, thanks and further questions, which name other members' words at most by
//! chance. A change of topic shows in how a message is made as much as in what it names: it is longer, asks, announces
//! itself, and rarely follows an agent's question. The weights were fitted on `tests/routing/tuning` (logistic regression).

use super::language;
use super::words::words;

/// From this chance on the matter is changed, as far as can be told without a model.
const CHANGED_MIN: f32 = 0.3;
/// The same for what may be an answer to the agent's question.
const NO_ANSWER_MIN: f32 = 0.7;
/// The same for what has words of the present member too.
const BOTH_MIN: f32 = 0.5;
/// From this chance on a model is worth asking.
pub(super) const UNSURE_MIN: f32 = 0.2;
/// More words say no more.
const WORDS_MAX: usize = 8;
/// A larger lead, in powers of e, says no more.
const LEAD_MAX: f32 = 3.0;
/// Share below which a member is no candidate at all; keeps the logarithm finite.
const SHARE_MIN: f32 = 1e-6;

/// Figures of a turn.
const FIGURES: usize = 7;
/// Telling words up to which a message that neither asks nor announces anything is an answer to the agent's question.
const ANSWER_WORDS_MAX: f32 = 3.0;
/// The same where the agent asked nothing: thanks, a name, a remark.
const REMARK_WORDS_MAX: f32 = 2.0;
const CONSTANT: f32 = -6.63;
const WEIGHTS: [f32; FIGURES] = [0.57, 1.76, 0.94, 3.01, -1.63, 0.77, 2.6];

/// What is known of a message in a running conversation.
pub(super) struct Turn<'a> {
    /// The message.
    pub(super) message: &'a str,
    /// What the agent said last.
    pub(super) agent_said: Option<&'a str>,
    /// Whether the default agent has the conversation, whose matter is what is nobody's.
    pub(super) with_default: bool,
    /// Whether it has words of whoever has the conversation.
    pub(super) names_present: bool,
    /// Share of whoever has the conversation.
    pub(super) present: f32,
    /// Share of the best of the others.
    pub(super) other: f32,
}

impl Turn<'_> {
    fn agent_asked(&self) -> bool {
        self.agent_said
            .is_some_and(|said| said.trim_end().ends_with('?'))
    }
}

/// How likely the message is another member's matter.
pub(super) fn chance_of_change(turn: &Turn<'_>) -> f32 {
    let figures = figures(turn);
    if is_answer(&figures) {
        return 0.0;
    }
    let score: f32 = CONSTANT
        + figures
            .iter()
            .zip(WEIGHTS)
            .map(|(figure, weight)| figure * weight)
            .sum::<f32>();
    1.0 / (1.0 + (-score).exp())
}

/// What names nothing names no other matter either: numbers, thanks, a yes. And a few words that ask nothing are about what
/// a member said last, whatever they name: a place, a department, a product. The default agent has no matter to stay with.
fn is_answer([_, _, words, announces, agent_asked, asks, with_default]: &[f32; FIGURES]) -> bool {
    let is_plain = *announces == 0.0 && *asks == 0.0 && *with_default == 0.0;
    let words_max = if *agent_asked == 0.0 {
        REMARK_WORDS_MAX
    } else {
        ANSWER_WORDS_MAX
    };
    *words == 0.0 || is_plain && *words <= words_max
}

/// Chance from which a message is taken for a change. One that announces another matter needs less; a statement after the
/// agent's question is an answer, unless it clearly is none.
pub(super) fn changed_min(turn: &Turn<'_>) -> f32 {
    if language::announces_change(turn.message) {
        UNSURE_MIN
    } else if turn.agent_asked() && !turn.message.contains('?') {
        NO_ANSWER_MIN
    } else if turn.names_present {
        BOTH_MIN
    } else {
        CHANGED_MIN
    }
}

/// What tells a change from an answer.
#[expect(clippy::cast_precision_loss, reason = "a handful of words")]
pub(super) fn figures(turn: &Turn<'_>) -> [f32; FIGURES] {
    let lead = (turn.other.max(SHARE_MIN) / turn.present.max(SHARE_MIN))
        .ln()
        .clamp(-LEAD_MAX, LEAD_MAX);
    let sign = |holds: bool| if holds { 1.0 } else { 0.0 };
    [
        lead,
        turn.other,
        words(turn.message).len().min(WORDS_MAX) as f32,
        sign(language::announces_change(turn.message)),
        sign(turn.agent_asked()),
        sign(turn.message.contains('?')),
        sign(turn.with_default),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(message: &str, agent_said: Option<&str>, other: f32) -> f32 {
        chance_of_change(&Turn {
            message,
            agent_said,
            with_default: false,
            names_present: false,
            present: 0.2,
            other,
        })
    }

    #[test]
    fn short_answers_never_change_the_matter_whatever_their_words() {
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
    fn a_few_words_that_ask_and_announce_nothing_are_an_answer_whatever_they_name() {
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
    fn a_long_question_that_announces_itself_and_fits_another_member_does() {
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
    fn a_statement_after_a_question_is_an_answer_unless_it_clearly_is_none_or_announces_something()
    {
        let needed = |message: &str, agent_said: Option<&'static str>| {
            changed_min(&Turn {
                message,
                agent_said,
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
        let turn = Turn {
            message: other,
            agent_said: asked,
            with_default: false,
            names_present: false,
            present: 0.01,
            other: 0.98,
        };
        assert!(
            chance_of_change(&turn) >= changed_min(&turn),
            "a question of the agent holds nobody who announces a change"
        );
    }
}
