//! Selects the newest turns of a conversation that fit into a prompt verbatim. Pure.

use switchboard_schemas::conversation::{ContextTruncation, Message, MessageAuthor, ReplyStatus};

use super::tokens;

/// A user message with its reply.
pub(crate) type PastTurn<'a> = (&'a Message, &'a Message);

/// The newest turns that fit, oldest first, and the size of the rest.
pub(crate) struct ContextWindow<'a> {
    /// Turns that the prompt contains verbatim.
    pub(crate) turns: Vec<PastTurn<'a>>,
    /// Messages that were left out, of those that a prompt may contain.
    pub(crate) omitted: u64,
    /// Position of the first message in the window; earlier ones are left out.
    pub(crate) start: u64,
}

/// Returns the turns that a prompt may contain. A turn that failed, or was cancelled before any
/// text, is skipped, and so is a blank message, for which some providers refuse the whole prompt.
pub(crate) fn answered_turns(past: &[Message]) -> Vec<PastTurn<'_>> {
    let is_blank = |message: &Message| message.content.trim().is_empty();
    let pairs = past
        .windows(2)
        .filter_map(|pair| match (&pair[0].author, &pair[1].author) {
            (MessageAuthor::User, MessageAuthor::Assistant(facts))
                if facts.status != ReplyStatus::Failed && !pair.iter().any(is_blank) =>
            {
                Some((&pair[0], &pair[1]))
            }
            _ => None,
        });
    pairs.collect()
}

/// Returns as many of the newest turns as fit into `budget` tokens. `past` may itself be the end of
/// a longer conversation.
pub(crate) fn select_newest(past: &[Message], budget: usize) -> ContextWindow<'_> {
    let all = answered_turns(past);
    let unread = past.first().map_or(0, |first| first.position);
    let dropped = all.len() - count_fitting(&all, budget);
    let start = all.get(dropped).map_or_else(
        || past.last().map_or(0, |last| last.position + 1),
        |turn| turn.0.position,
    );
    ContextWindow {
        turns: all[dropped..].to_vec(),
        omitted: unread + 2 * dropped as u64,
        start,
    }
}

/// Returns how many of the newest turns fit into `budget` tokens.
pub(crate) fn count_fitting(turns: &[PastTurn<'_>], budget: usize) -> usize {
    let bound = |turn: &PastTurn<'_>| {
        tokens::message_cost_bound(&turn.0.content) + tokens::message_cost_bound(&turn.1.content)
    };
    if turns.iter().map(bound).sum::<usize>() <= budget {
        return turns.len();
    }
    let mut left = budget;
    let newest_first = turns.iter().rev();
    let kept = newest_first.take_while(|turn| {
        let cost = tokens::message_cost(&turn.0.content) + tokens::message_cost(&turn.1.content);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    kept.count()
}

impl ContextWindow<'_> {
    /// Returns what was left out, or `None` if everything fits. `summary_end` is the position
    /// before which a summary covers the messages.
    pub(crate) fn truncation(&self, summary_end: Option<u64>) -> Option<ContextTruncation> {
        if self.omitted == 0 {
            return None;
        }
        let gap = self.start.saturating_sub(summary_end.unwrap_or(0));
        let summarized = if summary_end.is_some() {
            self.omitted.saturating_sub(gap)
        } else {
            0
        };
        Some(ContextTruncation {
            messages: self.omitted,
            summarized,
        })
    }
}
