//! Tests of the prompt builder: order of the messages, truncation and summaries.

use proptest::prelude::*;
use serde_json::json;
use switchboard_schemas::{
    conversation::{ReplyFacts, ReplyStatus},
    ids::{AgentId, ConversationId, MessageId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

use super::*;
use crate::inference::summaries;

fn message(position: u64, content: &str, answered: Option<ReplyStatus>) -> Message {
    let secret = InstallationSecret::from_bytes([1; 32]);
    let org = OrgId::derive(&secret, "o");
    let agent_id = AgentId::derive(&secret, &org, "a");
    let conversation = ConversationId::of_agent(&org, &agent_id, &"s".parse().unwrap());
    let author = answered.map_or(MessageAuthor::User, |status| {
        MessageAuthor::Assistant(Box::new(ReplyFacts {
            agent_id,
            agent_name: "A".into(),
            status,
            finish_reason: None,
            usage: TokenUsage::default(),
            response_time_ms: 1,
            model: "m".into(),
            routing_reason: None,
            routing: None,
            ui_spec: None,
            generation: 1,
            truncation: None,
            summary: None,
            steps: None,
        }))
    });
    let created_at = Timestamp::from_micros(0);
    Message {
        id: MessageId::new_in(&conversation),
        position,
        content: content.into(),
        attachments: Vec::new(),
        created_at,
        author,
    }
}

fn reply_message(position: u64, content: &str) -> Message {
    message(position, content, Some(ReplyStatus::Completed))
}

/// `count` turns of about 20 tokens each.
fn long_past(count: u64) -> Vec<Message> {
    let words = "lamps are on sale today";
    (0..count)
        .flat_map(|turn| {
            [
                message(2 * turn, words, None),
                reply_message(2 * turn + 1, words),
            ]
        })
        .collect()
}

fn rendered(
    past: &[Message],
    summary: Option<&ConversationSummary>,
    tokens_max: usize,
) -> RenderedPrompt {
    let settings = AgentSettings {
        instructions: "be".into(),
        ..AgentSettings::default()
    };
    build_prompt(PromptSources {
        settings: &settings,
        past,
        summary,
        content: "now",
        files: &PromptFiles::default(),
        tools: Vec::new(),
        current_grid: None,
        tokens_max,
    })
}

fn contents(rendered: &RenderedPrompt) -> Vec<&str> {
    rendered
        .prompt
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect()
}

#[test]
fn failed_and_unanswered_turns_are_skipped() {
    let past = [
        message(0, "q0", None),
        reply_message(1, "a0"),
        message(2, "failed", None),
        message(3, "q1", None),
        message(4, "a1", Some(ReplyStatus::Cancelled)),
        message(5, "q2", None),
        message(6, "a2", Some(ReplyStatus::Incomplete)),
        message(7, "waiting, then cancelled", None),
    ];
    let prompt = rendered(&past, None, 1000);
    assert_eq!(
        contents(&prompt),
        ["be", "q0", "a0", "q1", "a1", "q2", "a2", "now"]
    );
    assert_eq!(prompt.truncation, None);
}

#[test]
fn long_past_is_truncated_by_whole_turns() {
    let past = [
        message(4, &"lamp ".repeat(40), None),
        reply_message(5, "a0"),
        message(6, "q1", None),
        reply_message(7, "a1"),
    ];
    let some = rendered(&past, None, 40);
    assert_eq!(contents(&some), ["be", "q1", "a1", "now"]);
    // Four messages were never read, two were, and did not fit.
    assert_eq!(
        some.truncation,
        Some(ContextTruncation {
            messages: 6,
            summarized: 0
        })
    );
    let none = rendered(&past, None, 0);
    assert_eq!(contents(&none), ["be", "now"]);
    assert_eq!(
        none.truncation,
        Some(ContextTruncation {
            messages: 8,
            summarized: 0
        })
    );
}

#[test]
fn summary_replaces_truncated_turns_only() {
    let past = long_past(10);
    let summary = ConversationSummary {
        text: "Ada wants a lamp.".into(),
        until: 12,
    };
    assert!(!rendered(&past, Some(&summary), 10_000).has_summary);
    let prompt = rendered(&past, Some(&summary), 150);
    assert!(prompt.has_summary);
    let texts: Vec<_> = prompt
        .prompt
        .messages
        .iter()
        .map(|message| (message.role, message.content.as_str()))
        .collect();
    assert_eq!(
        (texts[0], texts[1].0, texts[2]),
        (
            (PromptRole::System, "be"),
            PromptRole::User,
            (PromptRole::Assistant, "Ada wants a lamp.")
        )
    );
    let truncation = prompt.truncation.unwrap();
    let kept = (prompt.prompt.messages.len() - 4) as u64;
    assert_eq!(truncation.messages, 20 - kept);
    assert_eq!(truncation.summarized, truncation.messages.min(12));
}

#[test]
fn past_product_grids_are_described() {
    let mut past = long_past(3);
    for (at, title) in [(1, "Old Lamp"), (3, "Desk Lamp"), (5, "Floor Lamp")] {
        if let MessageAuthor::Assistant(facts) = &mut past[at].author {
            facts.ui_spec = product_grid::grid_of([
                json!({"title": title, "price": "$1", "url": "https://s.example/x"}),
            ]);
        }
    }
    let prompt = rendered(&past, None, 10_000);
    let contents = contents(&prompt);
    assert_eq!(contents[0], "be");
    let question = contents.last().unwrap();
    assert!(!question.contains("Old Lamp"), "{question}");
    assert!(question.find("Desk Lamp").unwrap() < question.find("Floor Lamp").unwrap());
}

#[test]
fn summary_is_due_before_the_window_overflows() {
    let past = long_past(20);
    let budget: usize = past
        .iter()
        .map(|message| tokens::message_cost(&message.content))
        .sum();
    assert_eq!(
        summaries::summary_input(&past, 0, budget * 2, 200),
        None,
        "half full"
    );
    let due = summaries::summary_input(&past, 0, budget, 200).unwrap();
    assert_eq!(due.until, 20, "the older half");
    assert!(due.text.starts_with("Visitor: lamps") && due.text.matches("Visitor: ").count() == 10);
    assert_eq!(
        summaries::summary_input(&past, due.until, budget, 200),
        None,
        "what it covers is not counted again"
    );
    assert!(
        summaries::summary_input(&past, 0, budget * 2, 40).is_some(),
        "or before messages are too many to be read"
    );
}

proptest! {
    #[test]
    fn roles_alternate_and_the_window_keeps_its_budget(
        lengths in prop::collection::vec(0usize..50, 0..20),
        budget in 0usize..200,
        until in prop::option::of(0u64..20),
    ) {
        let past: Vec<_> = lengths.iter().enumerate().map(|(at, length)| {
            message(at as u64, &"x y".repeat(*length), (at % 2 == 1).then_some(ReplyStatus::Completed))
        }).collect();
        let summary = until.map(|until| ConversationSummary { text: "short".into(), until });
        let prompt = rendered(&past, summary.as_ref(), budget);
        let messages = &prompt.prompt.messages;
        prop_assert_eq!(messages[0].role, PromptRole::System);
        for (at, message) in messages[1..].iter().enumerate() {
            prop_assert_eq!(message.role, if at % 2 == 0 { PromptRole::User } else { PromptRole::Assistant });
        }
        prop_assert_eq!(messages.last().unwrap().content.as_str(), "now");
        let window = if prompt.has_summary { 3 } else { 1 }..messages.len() - 1;
        let cost: usize = messages[window.clone()].iter().map(|m| tokens::message_cost(&m.content)).sum();
        prop_assert!(cost <= budget);
        let possible = 2 * context_window::answered_turns(&past).len();
        prop_assert_eq!(prompt.truncation.map_or(0, |left_out| left_out.messages) as usize, possible - window.len());
        prop_assert!(prompt.truncation.is_none_or(|left_out| left_out.summarized <= left_out.messages));
    }
}
