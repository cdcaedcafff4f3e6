//! The words of the demo model: one small function for each topic, friendly and plain about what it is.

use super::conversation::{Conversation, LISTED_MAX, Topic, quote, words};

/// Stands below the first reply of a conversation and wherever it helps: nobody is to take this for intelligence.
const NOTICE: &str = "*No language model is configured: this is the built-in demo. Set `OPENAI_BASE_URL`, \
    `OPENAI_API_KEY` and `OPENAI_MODEL` and restart to talk to a real one.*";
const TIPS: [&str; 5] = [
    "tell me *my name is …* and ask for it later: the history of this conversation comes back with every message.",
    "ask *what did I say?* to see what the service keeps of this conversation.",
    "ask for *a table* or *a list* to see how markdown is shown.",
    "ask *how do I configure a model?* for the three variables that make me step aside.",
    "reload the page while I speak: the reply goes on where you left it.",
];

/// The whole reply to the last message of the visitor.
pub(super) fn reply(conversation: &Conversation) -> String {
    let topic = conversation.topic();
    let body = match topic {
        Topic::Introduction => introduction(conversation),
        Topic::Name => name(conversation),
        Topic::Memory => memory(conversation),
        Topic::Count => count(conversation),
        Topic::Products => products(conversation),
        Topic::Table => table(conversation),
        Topic::Setup => setup(),
        Topic::Markdown => markdown(conversation),
        Topic::Help => help(),
        Topic::Greeting => greeting(conversation),
        Topic::Thanks => format!("You are welcome{}! Anything else?", address(conversation)),
        Topic::Goodbye => format!(
            "Goodbye{}! This conversation is kept; come back any time.",
            address(conversation)
        ),
        Topic::Anything => echo(conversation),
    };
    let speaks_of_itself = matches!(topic, Topic::Help | Topic::Anything);
    if conversation.turns() <= 1 || speaks_of_itself {
        format!("{body}\n\n{NOTICE}")
    } else {
        body
    }
}

/// `, Ada` once the visitor has a name.
fn address(conversation: &Conversation) -> String {
    conversation
        .name()
        .map(|name| format!(", {name}"))
        .unwrap_or_default()
}

fn greeting(conversation: &Conversation) -> String {
    let again = if conversation.turns() > 1 {
        " again"
    } else {
        ""
    };
    format!(
        "Hello{again}{}! 👋 I am the demo model of this installation. Ask me for **help** to see what I can do.",
        address(conversation)
    )
}

fn introduction(conversation: &Conversation) -> String {
    format!(
        "Nice to meet you{}! I will remember that for the rest of this conversation.",
        address(conversation)
    )
}

fn name(conversation: &Conversation) -> String {
    match conversation.name() {
        Some(name) => format!("You told me that your name is **{name}**."),
        None => "You have not told me yet. Try *my name is …* and ask again.".into(),
    }
}

fn memory(conversation: &Conversation) -> String {
    let earlier = conversation.earlier();
    if earlier.is_empty() {
        return "This is your first message, so there is nothing to look back on yet.".into();
    }
    let first = earlier.len().saturating_sub(LISTED_MAX);
    let list =
        (first..earlier.len()).map(|index| format!("{}. {}", index + 1, quote(&earlier[index])));
    format!(
        "Before this message you wrote:\n\n{}",
        list.collect::<Vec<_>>().join("\n")
    )
}

fn count(conversation: &Conversation) -> String {
    let words: usize = conversation
        .earlier()
        .iter()
        .map(|message| words(message).len())
        .sum();
    let turns = conversation.turns();
    format!(
        "This is message **{turns}** from you in this conversation; the ones before it have {words} words together."
    )
}

fn products(conversation: &Conversation) -> String {
    let products = conversation.products();
    if conversation.found_nothing() {
        return "I looked, and found nothing like that among the products.".into();
    }
    if products.is_empty() {
        return "I was told of no products. An agent with a catalogue shows them here as cards."
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

fn table(conversation: &Conversation) -> String {
    let messages = [
        conversation.earlier(),
        &[conversation.question().to_owned()],
    ]
    .concat();
    let first = messages.len().saturating_sub(LISTED_MAX);
    let rows = messages
        .iter()
        .enumerate()
        .skip(first)
        .map(|(index, message)| {
            // A bar would open another column.
            format!(
                "| {} | {} | {} |",
                index + 1,
                quote(message).replace('|', "/"),
                words(message).len()
            )
        });
    format!(
        "Your messages so far:\n\n| # | Message | Words |\n|--:|:--------|------:|\n{}",
        rows.collect::<Vec<_>>().join("\n")
    )
}

fn setup() -> String {
    "Any endpoint that speaks the OpenAI protocol will do, hosted or on your own machine:\n\n```sh\n\
     export OPENAI_BASE_URL=https://api.example.com/v1\nexport OPENAI_API_KEY=your-key\n\
     export OPENAI_MODEL=the-model-you-like\n```\n\nStart the service again and your agents answer with it. An \
     organization can also bring its own provider with `switchboard apply`."
        .into()
}

fn markdown(conversation: &Conversation) -> String {
    format!(
        "A list, as you asked{}:\n\n1. **bold** and *italic* words\n2. `code` in a line\n3. a [link](https://example.com)\n\n\
         > and a quotation, because every list needs a last word.",
        address(conversation)
    )
}

fn help() -> String {
    "I am the demo model of this installation, and I follow a handful of rules. Try:\n\n- *My name is Ada*, and later *what is my name?*\n- *What did I say?* or \
     *How many messages was that?*\n- *Show me a table*, *a list*, or *how to configure a model*\n- *Which products do \
     you have?*, with an agent that has a catalogue"
        .into()
}

fn echo(conversation: &Conversation) -> String {
    let question = conversation.question();
    if question.trim().is_empty() {
        return "I am listening. Ask me for **help** to see what I can do.".into();
    }
    let tip = TIPS[conversation.turns() % TIPS.len()];
    format!(
        "> {}\n\nThat is a thought of {} words{}, and a real model would have an answer. I can only pass it back to you \
         with care.\n\n**A tip:** {tip}",
        quote(question),
        words(question).len(),
        address(conversation)
    )
}
