//! The texts of a member, split into the words and phrases that messages are compared with.

use super::lexical::MemberWords;

/// Words between two phrases of a list, in eight languages.
const JOINING_WORDS: [&str; 11] = [
    " and ", " or ", " & ", " und ", " oder ", " sowie ", " et ", " ou ", " oraz ", " y ", " e ",
];
/// Shortest phrase that is compared, in characters.
const PHRASE_CHARS_MIN: usize = 3;
/// Most phrases of one member.
const PHRASES_MAX: usize = 60;

/// A member's texts, prepared for comparison with messages.
pub(super) struct MemberProfile {
    /// The words of all its texts.
    pub(super) words: MemberWords,
    /// Name, description and specialization, by which its language is detected.
    pub(super) whole: String,
    /// The text of the specialization.
    pub(super) specialization: String,
    /// The name and each phrase of specialization and description, as a question of a visitor. A
    /// visitor's sentence resembles a sentence more than a phrase: right first choices on public
    /// sets rise by a point with MiniLM.
    pub(super) questions: Vec<String>,
}

impl MemberProfile {
    /// Creates the profile of a member.
    pub(super) fn of(name: &str, description: &str, specialization: &str) -> Self {
        let topics: Vec<String> = phrases(specialization).collect();
        let texts = [specialization, description, name].join("\n");
        let words = MemberWords::of(&texts, &topics);
        let questions = std::iter::once(name.to_owned())
            .chain(topics)
            .chain(phrases(description))
            .take(PHRASES_MAX)
            .map(|phrase| format!("I have a question about {phrase}."))
            .collect();
        Self {
            words,
            whole: format!("{name}. {description} {specialization}"),
            specialization: specialization.to_owned(),
            questions,
        }
    }

    /// Returns the texts whose vectors are compared: the questions, then the specialization.
    pub(super) fn embedded_texts(&self) -> impl Iterator<Item = &str> {
        let questions = self.questions.iter().map(String::as_str);
        questions.chain([self.specialization.as_str()])
    }
}

/// Returns the phrases of a text, which is a list or a few sentences.
fn phrases(text: &str) -> impl Iterator<Item = String> {
    let list = JOINING_WORDS
        .iter()
        .fold(text.to_owned(), |list, word| list.replace(word, ","));
    let phrases: Vec<String> = list
        .split([',', ';', '.', ':', '\n', '/', '(', ')'])
        .map(|phrase| phrase.trim().to_owned())
        .collect();
    phrases
        .into_iter()
        .filter(|phrase| phrase.chars().count() >= PHRASE_CHARS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_into_phrases() {
        let profile = MemberProfile::of("Billing", "", "Refunds und Rechnungen, tax (VAT); a");
        let about = |phrase: &str| format!("I have a question about {phrase}.");
        assert_eq!(
            profile.questions,
            ["Billing", "Refunds", "Rechnungen", "tax", "VAT"].map(about)
        );
        assert_eq!(profile.embedded_texts().count(), 6);
    }
}
