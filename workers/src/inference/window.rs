//! Which part of a conversation a prompt holds word for word: as many of the newest turns as fit. Pure.

use switchboard_schemas::conversation::{ContextTruncation, Message, MessageAuthor, ReplyStatus};

use super::tokens;

/// A question and its answer.
pub(crate) type PastTurn<'a> = (&'a Message, &'a Message);

/// The newest turns that fit, oldest first, and what was left out.
pub(crate) struct Window<'a> {
    /// What is told word for word.
    pub(crate) turns: Vec<PastTurn<'a>>,
    /// Messages before it that could have been told.
    pub(crate) left_out: u64,
    /// Position before which everything is left out, where anything is.
    pub(crate) begins_at: u64,
}

/// Questions with their answers. A question without one failed, or was cancelled before any text: neither is told.
pub(crate) fn turns(past: &[Message]) -> Vec<PastTurn<'_>> {
    let pairs = past
        .windows(2)
        .filter_map(|pair| match (&pair[0].author, &pair[1].author) {
            (MessageAuthor::User, MessageAuthor::Assistant(facts))
                if facts.status != ReplyStatus::Failed =>
            {
                Some((&pair[0], &pair[1]))
            }
            _ => None,
        });
    pairs.collect()
}

/// As many of the newest turns as `budget` tokens hold. `past` may itself be the end of a longer conversation.
pub(crate) fn newest_fitting(past: &[Message], budget: usize) -> Window<'_> {
    let all = turns(past);
    let unread = past.first().map_or(0, |first| first.position);
    let dropped = all.len() - count_fitting(&all, budget);
    let begins_at = all.get(dropped).map_or_else(
        || past.last().map_or(0, |last| last.position + 1),
        |turn| turn.0.position,
    );
    Window {
        turns: all[dropped..].to_vec(),
        left_out: unread + 2 * dropped as u64,
        begins_at,
    }
}

/// How many of the newest turns fit.
pub(crate) fn count_fitting(turns: &[PastTurn<'_>], budget: usize) -> usize {
    let bound = |turn: &PastTurn<'_>| {
        tokens::bound_of_message(&turn.0.content) + tokens::bound_of_message(&turn.1.content)
    };
    if turns.iter().map(bound).sum::<usize>() <= budget {
        return turns.len();
    }
    let mut left = budget;
    let newest_first = turns.iter().rev();
    let fitting = newest_first.take_while(|turn| {
        let cost = tokens::of_message(&turn.0.content) + tokens::of_message(&turn.1.content);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    fitting.count()
}

impl Window<'_> {
    /// What was left out, of which a summary covers the messages before `until`; none when nothing was.
    pub(crate) fn facts(&self, until: Option<u64>) -> Option<ContextTruncation> {
        if self.left_out == 0 {
            return None;
        }
        let gap = self.begins_at.saturating_sub(until.unwrap_or(0));
        let summarized = if until.is_some() {
            self.left_out.saturating_sub(gap)
        } else {
            0
        };
        Some(ContextTruncation {
            messages: self.left_out,
            summarized,
        })
    }
}
