//! Tests of conversations longer than a prompt: everything is stored, the model receives the newest
//! part and a summary, and the truncation is recorded.

use serde_json::{Value, json};
use switchboard_schemas::conversation::{ContextTruncation, MessageAuthor, ReplyFacts};

use super::{agents::shop, world::World};
use crate::{
    config::WorkersConfig,
    model::ModelEndpoint,
    testing::{Script, eventually, quick, says, start_model},
};

/// More turns than fit into a prompt.
const TURNS: usize = 20;

fn is_summary(request: &Value) -> bool {
    request["messages"][0]["content"]
        .as_str()
        .is_some_and(|text| text.starts_with("You keep the notes"))
}

async fn world(summaries_at_once_max: usize, acts: Vec<Script>) -> World {
    let config = WorkersConfig {
        prompt_tokens_max: 240,
        summaries_at_once_max,
        ..quick()
    };
    World::with(acts, false, shop(), config).await
}

/// Runs a turn of about 25 tokens.
async fn talk(world: &World, number: usize) {
    let job = world.job(&format!(
        "question {number} about lamps that are on sale today"
    ));
    world.run(&job).await;
}

async fn facts(world: &World) -> Vec<ReplyFacts> {
    let messages = world.messages(&world.job("")).await;
    let facts = messages
        .into_iter()
        .filter_map(|message| match message.author {
            MessageAuthor::Assistant(facts) => Some(*facts),
            MessageAuthor::User => None,
        });
    facts.collect()
}

#[tokio::test]
async fn truncated_turns_are_summarized_with_the_next_reply() {
    let world = world(8, vec![says("Ada looks for lamps that are on sale.")]).await;
    for number in 0..TURNS {
        talk(&world, number).await;
        // The next message uses the summary of this one, if one was due.
        eventually("no summary is running", async || {
            world.inference.summaries.is_idle()
        })
        .await;
    }
    let requests = world.provider.bodies();
    let (summaries, answers): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| is_summary(request));
    assert!(
        !summaries.is_empty() && summaries.len() < TURNS / 2,
        "{} summaries",
        summaries.len()
    );
    let last = answers.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(
        last[2]["content"], "Ada looks for lamps that are on sale.",
        "{last:?}"
    );
    assert!(
        last.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .starts_with("question 19")
    );
    let facts = facts(&world).await;
    assert_eq!((facts.len(), facts[0].truncation), (TURNS, None));
    let left_out = facts[TURNS - 1].truncation.unwrap();
    assert!(
        left_out.messages > 0 && left_out.summarized == left_out.messages,
        "{left_out:?}"
    );
    assert_eq!(
        left_out.messages as usize,
        2 * (TURNS - 1) - (last.len() - 4)
    );
    assert!(facts.iter().any(|facts| facts.summary.is_some()));

    // Another worker finds the summary in the stored messages.
    let other = world.patient();
    let job = world.job("question 20");
    World::run_on(&other, &job).await;
    let told = world
        .provider
        .bodies()
        .into_iter()
        .rfind(|request| !is_summary(request))
        .unwrap();
    assert_eq!(
        told["messages"][2]["content"],
        "Ada looks for lamps that are on sale."
    );
}

#[tokio::test]
async fn truncation_without_a_summary_is_recorded() {
    let world = world(0, vec![says("Sure.")]).await;
    for number in 0..TURNS {
        talk(&world, number).await;
    }
    assert!(!world.provider.bodies().iter().any(is_summary));
    let facts = facts(&world).await;
    assert_eq!(facts.len(), TURNS, "everything is stored");
    let ContextTruncation {
        messages,
        summarized,
    } = facts[TURNS - 1].truncation.unwrap();
    assert!(messages > 0 && summarized == 0, "{messages}");
    let request = world.provider.bodies().pop().unwrap();
    assert_eq!(
        messages as usize,
        2 * (TURNS - 1) - (request["messages"].as_array().unwrap().len() - 2)
    );
}

#[tokio::test]
async fn failed_summary_is_retried() {
    let world = world(8, vec![says("Sure.")]).await;
    let past = |number: u64| world.job(&format!("question {number}"));
    let failing = start_model(vec![Script::refuses(400), says("Notes.")]);
    let endpoint = ModelEndpoint {
        base_url: failing.base_url().into(),
        api_key: None,
        model: "m".into(),
        api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
        continues_prefix: false,
        vision: false,
        first_token_timeout: None,
        reach: crate::outgoing::AddressReach::Any,
    };
    for number in 0..6 {
        talk(&world, number).await;
    }
    let (job, messages) = (past(6), world.messages(&past(6)).await);
    let summaries = &world.inference.summaries;
    let refresh = async || {
        summaries.start_if_due(
            &job.turn.conversation_id,
            &messages,
            60,
            vec![endpoint.clone()],
        );
        eventually("no summary is running", async || summaries.is_idle()).await;
        summaries.latest_summary(&job.turn.conversation_id, &messages)
    };
    assert_eq!(refresh().await, None);
    let (summary, to_be_kept) = refresh().await.unwrap();
    assert_eq!((summary.text.as_str(), to_be_kept), ("Notes.", true));
}

/// Refusal of a too long prompt by llama.cpp.
fn too_long() -> Script {
    let error = json!({"message": "the request is too long", "type": "exceed_context_size_error"});
    Script::answer(
        400,
        &[("content-type", "application/json")],
        json!({ "error": error }),
    )
}

fn messages_of(request: &Value) -> &[Value] {
    request["messages"].as_array().unwrap()
}

/// Runs `turns` turns, after which the next message meets these acts.
async fn after_turns(turns: usize, acts: &[Script]) -> World {
    let acts = std::iter::repeat_n(says("Sure."), turns)
        .chain(acts.iter().cloned())
        .collect();
    let world = world(0, acts).await;
    for number in 0..turns {
        talk(&world, number).await;
    }
    world
}

#[tokio::test]
async fn smaller_context_is_learned_once() {
    const PAST: usize = 6;
    let world = after_turns(PAST, &[too_long(), says("Sure.")]).await;
    talk(&world, PAST).await;
    let requests = world.provider.bodies();
    assert_eq!(requests.len(), PAST + 2, "rejected once, then answered");
    let [refused, answered] = [&requests[PAST], &requests[PAST + 1]].map(messages_of);
    assert!(answered.len() < refused.len(), "{answered:?}");
    assert_eq!(
        (answered.first(), answered.last()),
        (refused.first(), refused.last())
    );
    let facts_of = facts(&world).await;
    assert_eq!(facts_of.len(), PAST + 1);
    let left_out = facts_of[PAST].truncation.unwrap().messages as usize;
    assert_eq!(left_out, 2 * PAST - (answered.len() - 2));

    talk(&world, PAST + 1).await;
    let requests = world.provider.bodies();
    assert_eq!(requests.len(), PAST + 3);
    assert!(messages_of(&requests[PAST + 2]).len() <= answered.len());
}

#[tokio::test]
async fn too_long_message_fails_and_sets_no_limit() {
    const PAST: usize = 6;
    let world = after_turns(PAST, &[too_long()]).await;
    let end = world
        .run(&world.job("question 6 about lamps that are on sale today"))
        .await;
    assert!(matches!(end, crate::job_loop::JobEnd::Finished), "{end:?}");
    let requests = world.provider.bodies();
    let asked = &requests[PAST..];
    assert!((2..=4).contains(&asked.len()), "{} calls", asked.len());
    assert!(
        asked
            .windows(2)
            .all(|pair| messages_of(&pair[1]).len() < messages_of(&pair[0]).len())
    );
    assert_eq!(
        messages_of(asked.last().unwrap()).len(),
        2,
        "instructions and message"
    );
    let longest = messages_of(&asked[0]).len();
    talk(&world, PAST + 1).await;
    assert_eq!(
        messages_of(&world.provider.bodies()[PAST + asked.len()]).len(),
        longest
    );
}
