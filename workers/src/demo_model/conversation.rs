//! What the demo model understands of a conversation: who speaks, what was said before, and which rule answers.
//! Pure, so that a reply that was broken off is continued byte for byte from the same messages.

use serde_json::Value;

use super::{phrases, protocol::ChatRequest};

/// Longest quotation of an earlier message, in words.
const QUOTED_WORDS_MAX: usize = 14;
/// Longest quotation in characters, for scripts without spaces.
const QUOTED_CHARS_MAX: usize = 120;
/// Most items of a list, so that a reply stays short in a long conversation.
pub(super) const LISTED_MAX: usize = 8;

/// A conversation up to the message that is to be answered.
pub(super) struct Conversation {
    system: String,
    user_messages: Vec<String>,
    tool_result: Option<String>,
    prefix: String,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
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

/// The first row of which all words stand in the question decides; alternatives of a word are separated by `|`.
const RULES: &[(&str, Topic)] = &[
    ("what|whats name", Topic::Name),
    ("who am i", Topic::Name),
    (
        "what|which did|have i|we say|said|ask|asked|tell|told|talk|write|written",
        Topic::Memory,
    ),
    (
        "remember|repeat|earlier|history|recap|summarize|summarise",
        Topic::Memory,
    ),
    (
        "how many messages|message|turns|questions|times",
        Topic::Count,
    ),
    (
        "product|products|buy|shop|catalogue|catalog|price|prices|sell|order",
        Topic::Products,
    ),
    ("table", Topic::Table),
    ("setup|configure|code|openai|provider|api", Topic::Setup),
    ("real|language model|models|llm", Topic::Setup),
    ("list|markdown|format|formatting|bold", Topic::Markdown),
    ("help|demo", Topic::Help),
    ("who|what are|is you|this", Topic::Help),
    ("what can you", Topic::Help),
    (
        "thanks|thank|merci|danke|gracias|grazie|obrigado|спасибо|谢谢|ممنون|متشکرم|شكرا",
        Topic::Thanks,
    ),
    (
        "bye|goodbye|ciao|adios|tschüss|خداحافظ|再见",
        Topic::Goodbye,
    ),
];
const GREETINGS: &str = "hello|hi|hey|hola|bonjour|salut|hallo|moin|olá|namaste|salam|سلام|مرحبا|привет|你好|こんにちは|안녕하세요";
/// A greeting with more words than this is a question that begins politely.
const GREETING_WORDS_MAX: usize = 5;

impl Conversation {
    /// Reads the messages of a request.
    pub(super) fn read(request: &ChatRequest) -> Self {
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
                    conversation.user_messages.push(message.text());
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

    /// The message to answer; empty when nobody has written yet.
    pub(super) fn question(&self) -> &str {
        self.user_messages.last().map_or("", String::as_str)
    }

    /// What the visitor wrote before the question, oldest first.
    pub(super) fn earlier(&self) -> &[String] {
        self.user_messages
            .split_last()
            .map_or(&[], |(_, earlier)| earlier)
    }

    /// Number of the visitor's messages.
    pub(super) fn turns(&self) -> usize {
        self.user_messages.len()
    }

    /// The name that the visitor gave last.
    pub(super) fn name(&self) -> Option<String> {
        self.user_messages
            .iter()
            .rev()
            .find_map(|message| introduced_name(message))
    }

    /// Whether a tool that shows products might answer better than words: whatever no other rule is about may name one.
    pub(super) fn wants_tool(&self) -> bool {
        let may_be_about_products = matches!(self.topic(), Topic::Products | Topic::Anything);
        may_be_about_products && self.tool_result.is_none() && self.prefix.is_empty()
    }

    /// Whether a tool was asked, and found nothing.
    pub(super) fn found_nothing(&self) -> bool {
        self.tool_result
            .as_deref()
            .is_some_and(|result| products_of_result(result).is_empty())
    }

    /// The products that are known, as `(title, price)`: from a tool's result, else from the system prompt.
    pub(super) fn products(&self) -> Vec<(String, String)> {
        match &self.tool_result {
            Some(result) => products_of_result(result),
            None => products_of_prompt(&self.system),
        }
    }

    /// What the answer is about: products that were found, or what the question is about.
    pub(super) fn topic(&self) -> Topic {
        if self
            .tool_result
            .as_deref()
            .is_some_and(|result| !products_of_result(result).is_empty())
        {
            return Topic::Products;
        }
        let question = self.question();
        if introduced_name(question).is_some() {
            return Topic::Introduction;
        }
        let words = words(question);
        let has = |any: &str| {
            any.split('|')
                .any(|word| words.iter().any(|said| said == word))
        };
        let rule = RULES
            .iter()
            .find(|(pattern, _)| pattern.split(' ').all(has));
        match rule {
            Some((_, topic)) => *topic,
            None if words.len() <= GREETING_WORDS_MAX && has(GREETINGS) => Topic::Greeting,
            None => Topic::Anything,
        }
    }

    /// The reply without the part that was already said. A beginning that is not ours stays, and ours follows it.
    pub(super) fn rest_of_reply(&self) -> String {
        let reply = phrases::reply(self);
        match reply.strip_prefix(self.prefix.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{reply}"),
        }
    }
}

/// The beginning of a text on one line.
pub(super) fn quote(text: &str) -> String {
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

/// Words in lower case, without punctuation.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = text.replace(['\'', '’'], "").to_lowercase();
    lower
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The name in "my name is …", "call me …" or "I am called …".
fn introduced_name(text: &str) -> Option<String> {
    const OPENINGS: [&[&str]; 5] = [
        &["my", "name", "is"],
        &["my", "names"],
        &["call", "me"],
        &["i", "am", "called"],
        &["im", "called"],
    ];
    let spoken: Vec<&str> = text.split_whitespace().collect();
    let plain: Vec<String> = spoken.iter().map(|word| words(word).concat()).collect();
    let end = OPENINGS.iter().find_map(|opening| {
        plain
            .windows(opening.len())
            .position(|window| window == *opening)
            .map(|start| start + opening.len())
    })?;
    let is_name_end = |character: char| !character.is_alphanumeric();
    let name = spoken.get(end)?.trim_matches(is_name_end);
    // A family name follows only where the writer marks it with a capital and no sentence ends before it.
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

/// Titles and prices in the first list of a tool's JSON.
fn products_of_result(result: &str) -> Vec<(String, String)> {
    // Words for models may stand behind it.
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

/// The list that follows a line about products in the system prompt.
fn products_of_prompt(system: &str) -> Vec<(String, String)> {
    let about_products = |line: &&str| !line.to_lowercase().contains("product");
    let items = system.lines().skip_while(about_products).skip(1);
    items
        .filter_map(|line| line.trim_start().strip_prefix(['-', '*']))
        .map(|item| (quote(item), String::new()))
        .take(LISTED_MAX)
        .collect()
}
