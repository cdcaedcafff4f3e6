//! Interpretation of a conversation by the demo model: its messages, and the rule that answers.
//! Pure, so that a reply that was broken off is continued byte for byte from the same messages.

use serde_json::Value;

use super::{phrases, protocol::ChatRequest};
use crate::tools::product_grid::SHOWN_MARK;

/// Longest quotation of an earlier message, in words.
const QUOTED_WORDS_MAX: usize = 14;
/// Longest quotation in characters, for scripts without spaces.
const QUOTED_CHARS_MAX: usize = 120;
/// Most items of a list, so that replies in long conversations stay short.
pub(super) const LISTED_MAX: usize = 8;

/// A conversation up to the message that is to be answered.
pub(super) struct DemoConversation {
    system: String,
    user_messages: Vec<String>,
    tool_result: Option<String>,
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionTopic {
    Introduction,
    Name,
    Memory,
    Count,
    Products,
    Table,
    Setup,
    Markdown,
    Help,
    Greeting,
    Thanks,
    Goodbye,
    Anything,
}

/// The first row of which all words occur in the question wins; alternatives of a word are
/// separated by `|`.
const RULES: &[(&str, QuestionTopic)] = &[
    ("what|whats name", QuestionTopic::Name),
    ("who am i", QuestionTopic::Name),
    (
        "what|which did|have i|we say|said|ask|asked|tell|told|talk|write|written",
        QuestionTopic::Memory,
    ),
    (
        "remember|repeat|earlier|history|recap|summarize|summarise",
        QuestionTopic::Memory,
    ),
    (
        "how many messages|message|turns|questions|times",
        QuestionTopic::Count,
    ),
    (
        "product|products|buy|shop|catalogue|catalog|price|prices|sell",
        QuestionTopic::Products,
    ),
    ("table", QuestionTopic::Table),
    (
        "setup|configure|code|openai|provider|api",
        QuestionTopic::Setup,
    ),
    ("real|language model|models|llm", QuestionTopic::Setup),
    (
        "list|markdown|format|formatting|bold",
        QuestionTopic::Markdown,
    ),
    ("help|demo", QuestionTopic::Help),
    ("who|what are|is you|this", QuestionTopic::Help),
    ("what can you", QuestionTopic::Help),
    (
        "thanks|thank|merci|danke|gracias|grazie|obrigado|спасибо|谢谢|ممنون|متشکرم|شكرا",
        QuestionTopic::Thanks,
    ),
    (
        "bye|goodbye|ciao|adios|tschüss|خداحافظ|再见",
        QuestionTopic::Goodbye,
    ),
];
const GREETINGS: &str = "hello|hi|hey|hola|bonjour|salut|hallo|moin|olá|namaste|salam|سلام|مرحبا|привет|你好|こんにちは|안녕하세요";
/// A greeting with more words than this is a question that begins politely.
const GREETING_WORDS_MAX: usize = 5;

impl DemoConversation {
    /// Reads the messages of a request.
    pub(super) fn from_request(request: &ChatRequest) -> Self {
        let mut conversation = Self {
            system: String::new(),
            user_messages: Vec::new(),
            tool_result: None,
            prefix: String::new(),
        };
        for message in &request.messages {
            match message.role.as_str() {
                "system" | "developer" => conversation.system.push_str(&message.text()),
                "user" => {
                    let text = message.text();
                    let words = text.split(SHOWN_MARK).next().unwrap_or_default();
                    conversation.user_messages.push(words.trim_end().to_owned());
                    conversation.tool_result = None;
                }
                "tool" => conversation.tool_result = Some(message.text()),
                _ => {}
            }
        }
        if let Some(last) = request
            .messages
            .last()
            .filter(|message| message.is_assistant_text())
        {
            conversation.prefix = last.text();
        }
        conversation
    }

    /// Returns the message to answer; empty if there is none.
    pub(super) fn last_question(&self) -> &str {
        self.user_messages.last().map_or("", String::as_str)
    }

    /// Returns the visitor's messages before the question, oldest first.
    pub(super) fn earlier_messages(&self) -> &[String] {
        self.user_messages
            .split_last()
            .map_or(&[], |(_, earlier)| earlier)
    }

    /// Returns the number of the visitor's messages.
    pub(super) fn message_count(&self) -> usize {
        self.user_messages.len()
    }

    /// Returns the latest name by which the visitor introduced themselves.
    pub(super) fn visitor_name(&self) -> Option<String> {
        self.user_messages
            .iter()
            .rev()
            .find_map(|message| introduced_name(message))
    }

    /// Returns true if a product tool might answer better than words: questions about products, and
    /// those that match no rule.
    pub(super) fn wants_tool(&self) -> bool {
        let may_be_about_products = matches!(
            self.reply_topic(),
            QuestionTopic::Products | QuestionTopic::Anything
        );
        may_be_about_products && self.tool_result.is_none() && self.prefix.is_empty()
    }

    /// Returns true if a tool was called and found nothing.
    pub(super) fn found_nothing(&self) -> bool {
        self.tool_result
            .as_deref()
            .is_some_and(|result| products_of_result(result).is_empty())
    }

    /// Returns the known products as `(title, price)`: from a tool's result, else from the system
    /// prompt.
    pub(super) fn known_products(&self) -> Vec<(String, String)> {
        match &self.tool_result {
            Some(result) => products_of_result(result),
            None => products_of_prompt(&self.system),
        }
    }

    /// Returns the topic of the answer: products that were found, else the topic of the question.
    pub(super) fn reply_topic(&self) -> QuestionTopic {
        if self
            .tool_result
            .as_deref()
            .is_some_and(|result| !products_of_result(result).is_empty())
        {
            return QuestionTopic::Products;
        }
        let question = self.last_question();
        if introduced_name(question).is_some() {
            return QuestionTopic::Introduction;
        }
        let words = split_words(question);
        let has = |any: &str| {
            any.split('|')
                .any(|word| words.iter().any(|said| said == word))
        };
        let rule = RULES
            .iter()
            .find(|(pattern, _)| pattern.split(' ').all(has));
        match rule {
            Some((_, topic)) => *topic,
            None if words.len() <= GREETING_WORDS_MAX && has(GREETINGS) => QuestionTopic::Greeting,
            None => QuestionTopic::Anything,
        }
    }

    /// Returns the reply without the part that was already sent. After a beginning that is not
    /// ours, our whole reply follows.
    pub(super) fn rest_of_reply(&self) -> String {
        let reply = phrases::whole_reply(self);
        match reply.strip_prefix(self.prefix.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{reply}"),
        }
    }
}

pub(super) fn quote_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words
        .iter()
        .take(QUOTED_WORDS_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(" ");
    let short: String = line.chars().take(QUOTED_CHARS_MAX).collect();
    let whole = words.len() <= QUOTED_WORDS_MAX && short.len() == line.len();
    if whole { short } else { format!("{short}…") }
}

/// Returns the words in lower case, without punctuation.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let lower = text.replace(['\'', '’'], "").to_lowercase();
    lower
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the name in "my name is …", "call me …" or "I am called …".
fn introduced_name(text: &str) -> Option<String> {
    const OPENINGS: [&[&str]; 5] = [
        &["my", "name", "is"],
        &["my", "names"],
        &["call", "me"],
        &["i", "am", "called"],
        &["im", "called"],
    ];
    let spoken: Vec<&str> = text.split_whitespace().collect();
    let plain: Vec<String> = spoken
        .iter()
        .map(|word| split_words(word).concat())
        .collect();
    let end = OPENINGS.iter().find_map(|opening| {
        plain
            .windows(opening.len())
            .position(|window| window == *opening)
            .map(|start| start + opening.len())
    })?;
    let is_name_end = |character: char| !character.is_alphanumeric();
    let name = spoken.get(end)?.trim_matches(is_name_end);
    // A family name follows only if it is capitalized and no sentence ends before it.
    let ends_sentence = spoken[end].ends_with(is_name_end);
    let family = spoken
        .get(end + 1)
        .filter(|word| !ends_sentence && word.starts_with(char::is_uppercase));
    let full = [
        Some(name),
        family.map(|word| word.trim_matches(is_name_end)),
    ]
    .into_iter()
    .flatten();
    Some(full.collect::<Vec<_>>().join(" ")).filter(|name| !name.is_empty())
}

/// Returns titles and prices of the first list in a tool's JSON.
fn products_of_result(result: &str) -> Vec<(String, String)> {
    // Text for models may follow the JSON.
    let first = serde_json::Deserializer::from_str(result)
        .into_iter::<Value>()
        .next();
    let Some(Ok(value)) = first else {
        return Vec::new();
    };
    let nested = value
        .as_object()
        .and_then(|object| object.values().find_map(Value::as_array));
    let Some(items) = value.as_array().or(nested) else {
        return Vec::new();
    };
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .map(|item| (text(item, "title"), text(item, "price")))
        .filter(|(title, _)| !title.is_empty())
        .take(LISTED_MAX)
        .collect()
}

/// Returns the list that follows a line about products in the system prompt.
fn products_of_prompt(system: &str) -> Vec<(String, String)> {
    let about_products = |line: &&str| !line.to_lowercase().contains("product");
    let items = system.lines().skip_while(about_products).skip(1);
    items
        .filter_map(|line| line.trim_start().strip_prefix(['-', '*']))
        .map(|item| (quote_line(item), String::new()))
        .take(LISTED_MAX)
        .collect()
}
