//! Search over the texts of conversations, and what a list shows of each.
//!
//! The store has no index over texts. A request reads the latest messages of a bounded number of
//! conversations; the cursor of its page leads to older ones.

use std::borrow::Cow;

use futures::try_join;
use serde::Serialize;
use switchboard_schemas::conversation::{Conversation, Message, ReplyStatus};
use utoipa::ToSchema;

use super::{
    view::{AuthorView, ConversationView, MessageView},
    with_failures,
};
use crate::{
    http::{ApiError, ApiResult},
    state::AppState,
};

/// The most characters of a search.
const SEARCH_CHARS_MAX: usize = 200;
/// The most messages of a conversation that a search reads, the latest ones.
const SEARCHED_MESSAGES_MAX: u32 = 200;
/// The most characters of an excerpt.
const EXCERPT_CHARS_MAX: usize = 160;
/// The characters of an excerpt before the found word.
const EXCERPT_CHARS_BEFORE: usize = 40;
/// A visitor's message and its reply.
const TURN_MESSAGES: u32 = 2;

/// Words that all occur in a conversation, in lower case.
#[derive(Debug)]
pub(super) struct TextSearch {
    words: Vec<String>,
}

/// A conversation in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ListedConversationView {
    #[serde(flatten)]
    conversation: ConversationView,
    /// The first words of the conversation, or the passage that a search found.
    excerpt: String,
    /// The final state of the latest reply; `null` before the first one ended.
    #[schema(required)]
    last_status: Option<ReplyStatus>,
}

impl TextSearch {
    /// Parses the parameter `text`; without words there is no search.
    pub(super) fn parse(text: Option<&str>) -> ApiResult<Option<Self>> {
        let text = text.unwrap_or_default();
        if text.chars().count() > SEARCH_CHARS_MAX {
            let rule = format!("must have at most {SEARCH_CHARS_MAX} characters");
            return Err(ApiError::field("text", rule));
        }
        let words = text.split_whitespace().map(str::to_lowercase);
        let words: Vec<String> = words.collect();
        Ok((!words.is_empty()).then_some(Self { words }))
    }

    /// Returns the passage of a conversation with the first word, if it has all words.
    pub(super) async fn find(
        &self,
        state: &AppState,
        conversation: &Conversation,
    ) -> ApiResult<Option<String>> {
        let count = u64::from(SEARCHED_MESSAGES_MAX);
        let from = conversation.message_count.saturating_sub(count);
        let store = &state.backends.store;
        let messages = store.messages(
            &conversation.org_id,
            &conversation.id,
            from,
            SEARCHED_MESSAGES_MAX,
        );
        let messages = messages.await?;
        Ok(self.passage(messages.iter().map(|message| message.content.as_str())))
    }

    fn passage<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Option<String> {
        let mut missing: Vec<&String> = self.words.iter().collect();
        let mut passage = None;
        for text in texts {
            let lower = text.to_lowercase();
            missing.retain(|word| !lower.contains(word.as_str()));
            if passage.is_none()
                && let Some(at) = self.words.first().and_then(|word| lower.find(word))
            {
                passage = Some(excerpt(text, lower[..at].chars().count()));
            }
        }
        passage.filter(|_| missing.is_empty())
    }
}

impl ListedConversationView {
    /// Reads the first words, unless a search found a passage, and the state of the latest reply.
    pub(super) async fn read(
        state: &AppState,
        conversation: &Conversation,
        passage: Option<String>,
    ) -> ApiResult<Self> {
        let (store, org, id) = (
            &state.backends.store,
            &conversation.org_id,
            &conversation.id,
        );
        let count = u64::from(TURN_MESSAGES);
        let last_from = conversation.message_count.saturating_sub(count);
        let (first, last) = try_join!(
            store.messages(org, id, 0, u32::from(passage.is_none())),
            store.messages(org, id, last_from, TURN_MESSAGES),
        )?;
        let first_words = || first.first().map(|first| excerpt(&words_of(first), 0));
        Ok(Self {
            conversation: ConversationView::new(conversation),
            excerpt: passage.or_else(first_words).unwrap_or_default(),
            last_status: last_status(state, conversation, &last).await?,
        })
    }
}

/// Returns the end of the latest reply; a reply without text is found through its message.
async fn last_status(
    state: &AppState,
    conversation: &Conversation,
    messages: &[Message],
) -> ApiResult<Option<ReplyStatus>> {
    let shown = with_failures(state, conversation, messages).await?;
    let end_of = |message: &MessageView| match &message.author {
        AuthorView::User => message.unanswered.as_ref().map(|end| end.status),
        AuthorView::Assistant(facts) => Some(facts.status),
    };
    Ok(shown.iter().rev().find_map(end_of))
}

/// Returns the text of a message, or the names of its files if it has no text.
fn words_of(message: &Message) -> Cow<'_, str> {
    if message.content.is_empty() {
        let names = message.attachments.iter().map(|file| file.name.as_str());
        names.collect::<Vec<_>>().join(", ").into()
    } else {
        message.content.as_str().into()
    }
}

/// Returns the text around a character, on one line.
fn excerpt(text: &str, at: usize) -> String {
    let fits_from_the_start = at < EXCERPT_CHARS_MAX - EXCERPT_CHARS_BEFORE;
    let from = if fits_from_the_start {
        0
    } else {
        at - EXCERPT_CHARS_BEFORE
    };
    let mut rest = text.chars().skip(from);
    let part: String = rest.by_ref().take(EXCERPT_CHARS_MAX).collect();
    let words: Vec<&str> = part.split_whitespace().collect();
    let ellipsis = |is_cut| if is_cut { "…" } else { "" };
    let (before, after) = (ellipsis(from > 0), ellipsis(rest.next().is_some()));
    format!("{before}{}{after}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &str, texts: &[&str]) -> Option<String> {
        let search = TextSearch::parse(Some(words)).unwrap().unwrap();
        search.passage(texts.iter().copied())
    }

    #[test]
    fn all_words_of_a_search_occur_somewhere() {
        let texts = ["Do you have TEA?", "Yes: green tea\n and a Kanne."];
        assert_eq!(found("tea", &texts).unwrap(), "Do you have TEA?");
        assert_eq!(
            found("kanne YOU", &texts).unwrap(),
            "Yes: green tea and a Kanne."
        );
        assert_eq!(found("tea coffee", &texts), None);
        assert!(TextSearch::parse(Some("  ")).unwrap().is_none());
        TextSearch::parse(Some(&"x".repeat(201))).unwrap_err();
    }

    #[test]
    fn excerpt_is_bounded_and_around_the_word() {
        let text = format!("{} needle {}", "ä ".repeat(300), "ö ".repeat(300));
        let passage = found("needle", &[&text]).unwrap();
        assert!(
            passage.starts_with('…') && passage.ends_with('…'),
            "{passage}"
        );
        assert!(passage.contains(" needle "), "{passage}");
        assert!(
            passage.chars().count() <= EXCERPT_CHARS_MAX + 2,
            "{passage}"
        );
    }
}
