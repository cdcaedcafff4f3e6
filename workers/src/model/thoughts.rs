//! Removes thoughts that a model writes into its text, as servers without a parser for them send
//! them: `<think>…</think>` at the beginning of an answer.

/// Names of the tags.
const TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];
/// Longest closing tag.
const CLOSING_BYTES_MAX: usize = "</reasoning>".len();
/// White space before thoughts; more of it is text.
const BLANK_BYTES_MAX: usize = 64;

/// Filter of the text of one answer.
#[derive(Debug, Default)]
pub(super) struct ThoughtFilter {
    state: FilterState,
    /// Text that may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Default)]
enum FilterState {
    /// Nothing but white space has arrived.
    #[default]
    Begin,
    /// Inside thoughts that end with this tag.
    Inside(String),
    /// Behind thoughts, whose trailing white space belongs to them.
    Behind,
    /// Text.
    Open,
}

impl ThoughtFilter {
    /// Creates a filter; one that is not `active` lets everything pass.
    pub(super) fn new(active: bool) -> Self {
        Self {
            state: if active {
                FilterState::Begin
            } else {
                FilterState::Open
            },
            held: String::new(),
        }
    }

    /// Removes thoughts from the part of `text` behind `begin`, which has just arrived.
    pub(super) fn filter(&mut self, text: &mut String, begin: usize) {
        if matches!(self.state, FilterState::Open) || text.len() == begin {
            return;
        }
        self.held.push_str(&text[begin..]);
        text.truncate(begin);
        loop {
            match &self.state {
                FilterState::Begin if is_blank(&self.held) => return,
                FilterState::Begin => match opening_tag(&self.held) {
                    OpeningTag::Is(tag, bytes) => {
                        self.held.drain(..bytes);
                        self.state = FilterState::Inside(format!("</{tag}>"));
                    }
                    OpeningTag::MayBe => return,
                    OpeningTag::No => self.state = FilterState::Open,
                },
                FilterState::Inside(closing) => {
                    let Some(at) = self.held.to_ascii_lowercase().find(closing) else {
                        // Thoughts can be long; only a beginning of the tag is kept.
                        let rest = self.held.len().saturating_sub(CLOSING_BYTES_MAX);
                        self.held.drain(..self.held.floor_char_boundary(rest));
                        return;
                    };
                    self.held.drain(..at + closing.len());
                    self.state = FilterState::Behind;
                }
                FilterState::Behind => {
                    let blank = self.held.len() - self.held.trim_start().len();
                    self.held.drain(..blank);
                    if self.held.is_empty() {
                        return;
                    }
                    self.state = FilterState::Open;
                }
                FilterState::Open => {
                    text.push_str(&self.held);
                    self.held.clear();
                    return;
                }
            }
        }
    }

    /// Ends the text: what only looked like the beginning of a tag was text.
    pub(super) fn finish(&mut self, text: &mut String) {
        if matches!(self.state, FilterState::Begin) {
            text.push_str(&self.held);
        }
        self.held.clear();
    }
}

enum OpeningTag {
    /// This tag, which ends at this byte.
    Is(&'static str, usize),
    MayBe,
    No,
}

fn opening_tag(held: &str) -> OpeningTag {
    let text = held.trim_start();
    let blank = held.len() - text.len();
    let begins = |text: &str, opening: &str| {
        let beginning = text.as_bytes().get(..opening.len());
        beginning.is_some_and(|bytes| bytes.eq_ignore_ascii_case(opening.as_bytes()))
    };
    let mut may_be = false;
    for tag in TAGS {
        let opening = format!("<{tag}>");
        if begins(text, &opening) {
            return OpeningTag::Is(tag, blank + opening.len());
        }
        may_be |= begins(&opening, text);
    }
    if may_be {
        OpeningTag::MayBe
    } else {
        OpeningTag::No
    }
}

/// Returns true for white space that is short enough to be held.
fn is_blank(held: &str) -> bool {
    held.len() <= BLANK_BYTES_MAX && held.trim_start().is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filtered<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let (mut filter, mut text) = (ThoughtFilter::new(true), String::new());
        for piece in pieces {
            let begin = text.len();
            text.push_str(piece);
            filter.filter(&mut text, begin);
        }
        filter.finish(&mut text);
        text
    }

    #[test]
    fn only_thoughts_at_the_beginning_are_removed() {
        for (text, want) in [
            ("<think>\nSECRET\n</think>\n\nHello", "Hello"),
            ("\n<thinking>SECRET</thinking>Hello", "Hello"),
            ("<THINK>SECRET</Think>Hello", "Hello"),
            ("<think></think>Hello <think>", "Hello <think>"),
            ("<think>SECRET", ""),
            ("<thin", "<thin"),
            ("  ", "  "),
            (" <b>Hello</b>", " <b>Hello</b>"),
            ("Write <think>", "Write <think>"),
        ] {
            assert_eq!(filtered([text]), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_split_results_in_the_same_text(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let text = "\n<think>a 🦀 </thin </think> \nHello <think>é";
            let mut at: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &text[pair[0]..pair[1]]);
            prop_assert_eq!(filtered(pieces), "Hello <think>é");
        }
    }
}
