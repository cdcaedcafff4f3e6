//! Texts of the demo model: one small function for each topic, friendly and plain about its nature.

use super::conversation::{DemoConversation, LISTED_MAX, QuestionTopic, quote_line, split_words};

/// Added to the first reply of a conversation and where it helps, so that nobody takes the demo for
/// a language model.
const NOTICE: &str =
    "*This assistant is not connected to a language model yet. A built-in demo answers.*";
const TIPS: [&str; 5] = [
    "tell me *my name is …* and ask for it later: the history of this conversation comes back with every message.",
    "ask *what did I say?* to see what the service keeps of this conversation.",
    "ask for *a table* or *a list* to see how markdown is shown.",
    "ask *how do I configure a model?* to learn what replaces me with a real model.",
    "reload the page while I write: the reply continues where you left it.",
];

/// Returns the whole reply to the last message of the visitor.
pub(super) fn whole_reply(conversation: &DemoConversation) -> String {
    let topic = conversation.reply_topic();
    let body = match topic {
        QuestionTopic::Introduction => introduction_phrase(conversation),
        QuestionTopic::Name => name_phrase(conversation),
        QuestionTopic::Memory => memory_phrase(conversation),
        QuestionTopic::Count => count_phrase(conversation),
        QuestionTopic::Products => products_phrase(conversation),
        QuestionTopic::Table => table_phrase(conversation),
        QuestionTopic::Setup => setup_phrase(),
        QuestionTopic::Markdown => markdown_phrase(conversation),
        QuestionTopic::Help => help_phrase(),
        QuestionTopic::Greeting => greeting_phrase(conversation),
        QuestionTopic::Thanks => format!(
            "You are welcome{}! Anything else?",
            name_suffix(conversation)
        ),
        QuestionTopic::Goodbye => format!(
            "Goodbye{}! This conversation is kept; come back any time.",
            name_suffix(conversation)
        ),
        QuestionTopic::Anything => echo_phrase(conversation),
    };
    let speaks_of_itself = matches!(topic, QuestionTopic::Help | QuestionTopic::Anything);
    if conversation.message_count() <= 1 || speaks_of_itself {
        format!("{body}\n\n{NOTICE}")
    } else {
        body
    }
}

/// Returns `, Ada` once the visitor has a name.
fn name_suffix(conversation: &DemoConversation) -> String {
    conversation
        .visitor_name()
        .map(|name| format!(", {name}"))
        .unwrap_or_default()
}

fn greeting_phrase(conversation: &DemoConversation) -> String {
    let again = if conversation.message_count() > 1 {
        " again"
    } else {
        ""
    };
    format!(
        "Hello{again}{}! 👋 I am the demo model of this installation. Ask me for **help** to see what I can do.",
        name_suffix(conversation)
    )
}

fn introduction_phrase(conversation: &DemoConversation) -> String {
    format!(
        "Nice to meet you{}! I will remember that for the rest of this conversation.",
        name_suffix(conversation)
    )
}

fn name_phrase(conversation: &DemoConversation) -> String {
    match conversation.visitor_name() {
        Some(name) => format!("You told me that your name is **{name}**."),
        None => "You have not told me yet. Try *my name is …* and ask again.".into(),
    }
}

fn memory_phrase(conversation: &DemoConversation) -> String {
    let earlier = conversation.earlier_messages();
    if earlier.is_empty() {
        return "This is your first message, so there is nothing to look back on yet.".into();
    }
    let first = earlier.len().saturating_sub(LISTED_MAX);
    let list = (first..earlier.len())
        .map(|index| format!("{}. {}", index + 1, quote_line(&earlier[index])));
    format!(
        "Before this message you wrote:\n\n{}",
        list.collect::<Vec<_>>().join("\n")
    )
}

fn count_phrase(conversation: &DemoConversation) -> String {
    let words: usize = conversation
        .earlier_messages()
        .iter()
        .map(|message| split_words(message).len())
        .sum();
    let turns = conversation.message_count();
    format!(
        "This is message **{turns}** from you in this conversation; the ones before it have {words} words together."
    )
}

fn products_phrase(conversation: &DemoConversation) -> String {
    let products = conversation.known_products();
    if conversation.found_nothing() {
        return "I searched the products and found nothing like that.".into();
    }
    if products.is_empty() {
        return "I have no products to offer. An agent with a product catalog shows them here as cards."
            .into();
    }
    let lines = products.iter().map(|(title, price)| {
        if price.is_empty() {
            format!("- **{title}**")
        } else {
            format!("- **{title}**, {price}")
        }
    });
    format!(
        "Here is what I can offer:\n\n{}\n\nDoes one of these suit you?",
        lines.collect::<Vec<_>>().join("\n")
    )
}

fn table_phrase(conversation: &DemoConversation) -> String {
    let messages = [
        conversation.earlier_messages(),
        &[conversation.last_question().to_owned()],
    ]
    .concat();
    let first = messages.len().saturating_sub(LISTED_MAX);
    let rows = messages
        .iter()
        .enumerate()
        .skip(first)
        .map(|(index, message)| {
            // A bar would start another column.
            format!(
                "| {} | {} | {} |",
                index + 1,
                quote_line(message).replace('|', "/"),
                split_words(message).len()
            )
        });
    format!(
        "Your messages so far:\n\n| # | Message | Words |\n|--:|:--------|------:|\n{}",
        rows.collect::<Vec<_>>().join("\n")
    )
}

fn setup_phrase() -> String {
    "Any endpoint that speaks the OpenAI protocol will do. Those who manage this assistant add it in the dashboard \
     under **Settings → Providers**; from then on it answers in my place, without a restart."
        .into()
}

fn markdown_phrase(conversation: &DemoConversation) -> String {
    format!(
        "Here is a list{}:\n\n1. **bold** and *italic* words\n2. `code` in a line\n3. a [link](https://example.com)\n\n\
         > and a quotation, because every list needs a last word.",
        name_suffix(conversation)
    )
}

fn help_phrase() -> String {
    "I am the demo model of this installation, and I follow a handful of rules. Try:\n\n- *My name is Ada*, and later *what is my name?*\n- *What did I say?* or \
     *How many messages was that?*\n- *Show me a table*, *a list*, or *how to configure a model*\n- *Which products do \
     you have?*, with an agent that has a product catalog"
        .into()
}

fn echo_phrase(conversation: &DemoConversation) -> String {
    let question = conversation.last_question();
    if question.trim().is_empty() {
        return "I am listening. Ask me for **help** to see what I can do.".into();
    }
    let tip = TIPS[conversation.message_count() % TIPS.len()];
    let words = split_words(question).len();
    format!(
        "> {}\n\nThat is a thought of {} {}{}, and a real model would have an answer. I can only pass it back to you \
         with care.\n\n**A tip:** {tip}",
        quote_line(question),
        words,
        if words == 1 { "word" } else { "words" },
        name_suffix(conversation)
    )
}
