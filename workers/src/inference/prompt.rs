//! What the model is asked: instructions, as much of the past as fits, and the message. Pure.

use switchboard_schemas::{
    agent::AgentSettings,
    conversation::{Author, Message, ReplyStatus, Usage},
};

use crate::model::{Prompt, PromptMessage, Role};

/// Characters of one token, roughly, in the languages that our visitors write.
const CHARS_PER_TOKEN: usize = 4;

/// The prompt for `content`; the oldest turns are left out first, the message never.
pub(crate) fn of(settings: &AgentSettings, past: &[Message], content: &str, tokens_max: usize) -> Prompt {
    let fixed = tokens(&settings.instructions) + tokens(content);
    let mut messages = Vec::new();
    if !settings.instructions.is_empty() {
        messages.push(PromptMessage { role: Role::System, content: settings.instructions.clone() });
    }
    let kept = newest_fitting(turns(past), tokens_max.saturating_sub(fixed));
    for (question, answer) in kept {
        messages.push(PromptMessage { role: Role::User, content: question.content.clone() });
        messages.push(PromptMessage { role: Role::Assistant, content: answer.content.clone() });
    }
    messages.push(PromptMessage { role: Role::User, content: content.to_owned() });
    Prompt { messages, temperature: settings.temperature, max_tokens: settings.max_output_tokens }
}

/// Our own count of tokens, for providers that give none.
pub(crate) fn estimate(prompt: &Prompt, reply: &str) -> Usage {
    let prompt_tokens: usize = prompt.messages.iter().map(|message| tokens(&message.content)).sum();
    Usage { prompt_tokens: prompt_tokens as u64, completion_tokens: tokens(reply) as u64, estimated: true }
}

/// Questions with their answers. A question without one failed, or was cancelled before any text: neither is told.
fn turns(past: &[Message]) -> Vec<(&Message, &Message)> {
    let pairs = past.windows(2).filter_map(|pair| match (&pair[0].author, &pair[1].author) {
        (Author::User, Author::Assistant(facts)) if facts.status != ReplyStatus::Failed => Some((&pair[0], &pair[1])),
        _ => None,
    });
    pairs.collect()
}

fn newest_fitting<'a>(turns: Vec<(&'a Message, &'a Message)>, mut budget: usize) -> Vec<(&'a Message, &'a Message)> {
    let mut kept = Vec::new();
    for turn in turns.into_iter().rev() {
        let cost = tokens(&turn.0.content) + tokens(&turn.1.content);
        if cost > budget {
            break;
        }
        budget -= cost;
        kept.push(turn);
    }
    kept.reverse();
    kept
}

fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use switchboard_schemas::{
        conversation::ReplyFacts,
        ids::{AgentId, ConversationId, MessageId, OrgId},
        secret::InstallationSecret,
        time::Timestamp,
    };

    use super::*;

    fn message(position: u64, content: &str, answered: Option<ReplyStatus>) -> Message {
        let secret = InstallationSecret::from_bytes([1; 32]);
        let org = OrgId::derive(&secret, "o");
        let agent_id = AgentId::derive(&secret, &org, "a");
        let conversation = ConversationId::of_agent(&org, &agent_id, &"s".parse().unwrap());
        let author = answered.map_or(Author::User, |status| {
            Author::Assistant(Box::new(ReplyFacts {
                agent_id,
                agent_name: "A".into(),
                status,
                finish_reason: None,
                usage: Usage::default(),
                response_time_ms: 1,
                model: "m".into(),
                routing_reason: None,
                routing: None,
                ui_spec: None,
                generation: 1,
            }))
        });
        let created_at = Timestamp::from_micros(0);
        Message { id: MessageId::new_in(&conversation), position, content: content.into(), created_at, author }
    }

    fn contents(prompt: &Prompt) -> Vec<&str> {
        prompt.messages.iter().map(|message| message.content.as_str()).collect()
    }

    fn settings() -> AgentSettings {
        AgentSettings { instructions: "be".into(), ..AgentSettings::default() }
    }

    #[test]
    fn failed_turns_and_questions_without_an_answer_are_not_told() {
        let past = [
            message(0, "q0", None),
            message(1, "a0", Some(ReplyStatus::Completed)),
            message(2, "failed", None),
            message(3, "q1", None),
            message(4, "a1", Some(ReplyStatus::Cancelled)),
            message(5, "q2", None),
            message(6, "a2", Some(ReplyStatus::Incomplete)),
            message(7, "waiting, then cancelled", None),
        ];
        let prompt = of(&settings(), &past, "now", 1000);
        assert_eq!(contents(&prompt), ["be", "q0", "a0", "q1", "a1", "q2", "a2", "now"]);
    }

    #[test]
    fn a_past_that_does_not_fit_is_left_out_whole_turns_first() {
        let past = [
            message(0, &"x".repeat(40), None),
            message(1, "a0", Some(ReplyStatus::Completed)),
            message(2, "q1", None),
            message(3, "a1", Some(ReplyStatus::Completed)),
        ];
        assert_eq!(contents(&of(&settings(), &past, "now", 8)), ["be", "q1", "a1", "now"]);
        assert_eq!(contents(&of(&settings(), &past, "now", 0)), ["be", "now"]);
    }

    proptest! {
        #[test]
        fn roles_alternate_and_the_message_stands_last(lengths in prop::collection::vec(0usize..50, 0..20), budget in 0usize..200) {
            let past: Vec<_> = lengths.iter().enumerate().map(|(at, length)| {
                message(at as u64, &"x".repeat(*length), (at % 2 == 1).then_some(ReplyStatus::Completed))
            }).collect();
            let prompt = of(&settings(), &past, "now", budget);
            prop_assert_eq!(prompt.messages[0].role, Role::System);
            for (at, message) in prompt.messages[1..].iter().enumerate() {
                prop_assert_eq!(message.role, if at % 2 == 0 { Role::User } else { Role::Assistant });
            }
            prop_assert_eq!(prompt.messages.last().unwrap().content.as_str(), "now");
            let past_cost: usize = prompt.messages[1..prompt.messages.len() - 1].iter().map(|m| tokens(&m.content)).sum();
            prop_assert!(past_cost <= budget);
        }
    }
}
