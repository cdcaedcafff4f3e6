//! Conversations longer than a prompt: the model gets the newest messages and a summary, and
//! administrators see what was left out.

use std::ops::Range;

use serde_json::{Value, json};

use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Script, TestService, eventually,
};

/// Turns of about sixty tokens each.
const TURNS: usize = 24;
const TOKENS_MAX: &str = "600";

fn is_summary(messages: &[(String, String)]) -> bool {
    messages[0].1.starts_with("You keep the notes")
}

fn summaries(organization: &Organization) -> usize {
    let requests = organization.requests();
    requests
        .iter()
        .filter(|request| is_summary(&request.messages))
        .count()
}

/// Sends these turns; the first message has a script of its own.
async fn talk(organization: &Organization, turns: Range<usize>) {
    organization.script(Script::says(
        "Certainly, here is a sentence about lamps and how they are made.",
    ));
    for turn in turns {
        let marker = if turn == 0 { "[[first]] " } else { "" };
        let words =
            "please tell me more about lamps that are blue and small and stand on desks ".repeat(2);
        let message = format!("{marker}turn {turn}: {words}");
        organization.chat("s", &message).await.complete();
    }
}

async fn transcript(service: &TestService, organization: &Organization) -> Value {
    let admin = service.admin();
    let list = admin
        .get(&organization.admin_path("/conversations"))
        .await
        .json();
    let id = list["items"][0]["id"].as_str().unwrap().to_owned();
    admin
        .get(&organization.admin_path(&format!("/conversations/{id}?limit=100")))
        .await
        .json()["messages"]["items"]
        .clone()
}

#[tokio::test]
async fn long_conversation_is_sent_as_a_window_and_a_summary() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__WORKERS__PROMPT_TOKENS_MAX", TOKENS_MAX)]).await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply(&service)
        .await;
    // Only the question of a summary contains an earlier message.
    organization.script_for("first", Script::says("Ada likes blue lamps."));
    let (client, agent) = (organization.client(), organization.shop());
    talk(&organization, 0..TURNS).await;
    eventually("a summary was made", PATIENCE, async || {
        (summaries(&organization) > 0).then_some(())
    })
    .await;
    client.chat(agent, "s", "and now?").await.complete();
    assert!(
        summaries(&organization) < TURNS / 2,
        "{} summaries",
        summaries(&organization)
    );

    assert_last_prompt_is_a_window(&organization);

    let history = client.history(agent, "s").await;
    assert_eq!(
        history["totalMessages"],
        2 * (TURNS + 1),
        "everything is kept"
    );
    let first_answer = &history["messages"][1];
    assert!(first_answer.get("summary").is_none() && first_answer.get("leftOut").is_none());
    assert_omissions_are_recorded(&transcript(&service, &organization).await);
}

/// Asserts that the last prompt is shorter than the conversation and contains its summary outside
/// of the instructions.
fn assert_last_prompt_is_a_window(organization: &Organization) {
    let requests = organization.requests();
    let messages = &requests
        .iter()
        .rfind(|request| !is_summary(&request.messages))
        .unwrap()
        .messages;
    assert!(
        messages
            .iter()
            .any(|(role, text)| role == "assistant" && text.starts_with("Ada likes blue lamps"))
            || summaries(organization) > 1
    );
    assert!(
        !messages[0].1.contains("Ada"),
        "visitors' words are no instructions: {:?}",
        messages[0]
    );
    assert!(messages.len() < TURNS, "{} messages", messages.len());
}

/// Asserts that answers in a transcript record what their prompts left out and summarized.
fn assert_omissions_are_recorded(transcript: &Value) {
    let answers: Vec<_> = transcript
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .collect();
    assert_eq!(answers[0]["leftOut"], Value::Null);
    let left_out = &answers.last().unwrap()["leftOut"];
    let (messages, summarized) = (
        left_out["messages"].as_u64().unwrap(),
        left_out["summarized"].as_u64().unwrap(),
    );
    assert!(
        messages > 10 && summarized > 0 && summarized <= messages,
        "{left_out}"
    );
    let has_summary = |answer: &&Value| {
        answer["summary"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    };
    assert!(answers.iter().any(has_summary), "{transcript}");
}

#[tokio::test]
async fn failed_summary_does_not_affect_the_reply() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__WORKERS__PROMPT_TOKENS_MAX", TOKENS_MAX)]).await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script_for("first", Script::says("Hello."));
    talk(&organization, 0..1).await;
    // From now on, only the question of a summary contains the first message.
    organization.script_for("first", Script::refuses(400));
    talk(&organization, 1..TURNS).await;
    assert!(summaries(&organization) > 0);
    let transcript = transcript(&service, &organization).await;
    let last = transcript.as_array().unwrap().last().unwrap();
    assert!(last["leftOut"]["messages"].as_u64().unwrap() > 10, "{last}");
    assert_eq!(
        (&last["leftOut"]["summarized"], &last["summary"]),
        (&json!(0), &Value::Null)
    );
}
