//! A crowd of chats at the same time, five in each session, answered in order.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::{Value, json};

use super::super::start_cluster;
use crate::support::{Organization, Reply, Script, ScriptedModel, report};

const CHATS_PER_SESSION: usize = 5;
/// Sessions of a smaller crowd, whose time says how large a crowd this machine answers.
const SAMPLE_SESSIONS: usize = 8;
/// Time that the crowd may need by that measure, far below the time-outs of clients and service.
const CROWD_TIME: Duration = Duration::from_secs(20);
/// Bounds of the crowd; the lower one still makes every conversation wait for its own and for
/// others.
const SESSIONS_MIN: usize = 4;
const SESSIONS_MAX: usize = 200;

/// One chat with its reply and times.
struct Chat {
    session: String,
    question: String,
    reply: Reply,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crowd_is_answered_once_each_in_session_order() {
    let service = start_cluster(&[]).await;
    let script = Script::counts_by_call(6, Duration::from_millis(10));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let urls = service.public_urls();
    let sessions = crowd_sessions(&organization, &urls).await;
    let sample_requests = organization.requests().len();
    let began = Instant::now();
    let chats = send_crowd(&organization, &urls, "session", sessions).await;
    report(&format!(
        "{} chats in {sessions} sessions took {:.1} s",
        chats.len(),
        began.elapsed().as_secs_f64()
    ));
    for chat in &chats {
        let text = chat.reply.complete();
        assert_eq!(
            text,
            script.text_that_begins(&text),
            "one call's text: {}",
            chat.question
        );
    }
    let prompts = prompts(&organization.model, sample_requests);
    assert_eq!(prompts.len(), chats.len(), "one model call per chat");
    let mut asked: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    for prompt in prompts {
        asked.entry(prompt[0].clone()).or_default().push(prompt);
    }
    let mut of_session: HashMap<&str, Vec<&Chat>> = HashMap::new();
    for chat in &chats {
        of_session.entry(&chat.session).or_default().push(chat);
    }
    assert_eq!(of_session.len(), sessions);
    assert_eq!(asked.len(), sessions);
    for (session, chats) in of_session {
        let history = organization
            .settled_history(session, 2 * CHATS_PER_SESSION)
            .await;
        let stored = assert_stored_as_streamed(&history, &chats);
        // The n-th call of a session got exactly the messages before its question.
        let calls = &asked[&stored[0]];
        let lengths: Vec<_> = calls.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 3, 5, 7, 9], "{session}");
        assert!(
            calls.iter().all(|prompt| stored.starts_with(prompt)),
            "{session}: {calls:?}"
        );
    }
}

/// Sends the chats of all sessions at the same time; ids of sessions begin with `name`.
async fn send_crowd(
    organization: &Organization,
    urls: &[String],
    name: &str,
    sessions: usize,
) -> Vec<Chat> {
    let chats = (0..sessions * CHATS_PER_SESSION).map(|number| {
        // Neighbors in one session come in through different ingresses.
        let client = organization.client_at(&urls[number / sessions % urls.len()]);
        let (session, question) = (
            format!("{name}-{}", number % sessions),
            format!("question {number}"),
        );
        let agent = organization.shop();
        async move {
            let reply = client.chat(agent, &session, &question).await;
            Chat {
                session,
                question,
                reply,
            }
        }
    });
    join_all(chats).await
}

/// Returns the prompts of a model without their instructions, skipping the first requests.
fn prompts(model: &str, skipped: usize) -> Vec<Vec<String>> {
    let texts_behind_the_first = |messages: Vec<(String, String)>| {
        let texts = messages.into_iter().skip(1).map(|(_, text)| text);
        texts.collect()
    };
    ScriptedModel::get()
        .requests(model)
        .into_iter()
        .skip(skipped)
        .map(|request| texts_behind_the_first(request.messages))
        .collect()
}

/// Returns the number of sessions whose chats this machine answers within [`CROWD_TIME`].
async fn crowd_sessions(organization: &Organization, urls: &[String]) -> usize {
    let began = Instant::now();
    let sample = send_crowd(organization, urls, "sample", SAMPLE_SESSIONS).await;
    for chat in &sample {
        chat.reply.complete();
    }
    let seconds_per_chat = began.elapsed().as_secs_f64() / sample.len() as f64;
    let chats = CROWD_TIME.as_secs_f64() / seconds_per_chat;
    (chats as usize / CHATS_PER_SESSION).clamp(SESSIONS_MIN, SESSIONS_MAX)
}

/// Asserts that each chat is stored as it was streamed, and returns the texts of the history in
/// order.
fn assert_stored_as_streamed(history: &Value, chats: &[&Chat]) -> Vec<String> {
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(
        messages.len(),
        2 * CHATS_PER_SESSION,
        "two rows per chat: {history}"
    );
    assert_eq!(history["totalMessages"], 2 * CHATS_PER_SESSION);
    for pair in messages.chunks(2) {
        assert_eq!(
            (&pair[0]["role"], &pair[1]["role"]),
            (&json!("user"), &json!("assistant"))
        );
        let chat = chats
            .iter()
            .find(|chat| pair[0]["content"] == chat.question.as_str())
            .unwrap();
        assert_eq!(
            pair[1]["content"],
            chat.reply.text(),
            "stored as it was streamed"
        );
        assert_eq!(pair[1]["id"], chat.reply.required_header("x-message-id"));
    }
    messages
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}
