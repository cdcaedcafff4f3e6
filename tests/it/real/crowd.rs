//! A thousand simultaneous chats in two hundred sessions, answered in order.

use std::{collections::HashMap, time::Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{Organization, Reply, Script, ScriptedModel, TestService, report};

const SESSIONS: usize = 200;
const CHATS_PER_SESSION: usize = 5;

/// One chat with its reply and times.
struct Chat {
    session: String,
    question: String,
    reply: Reply,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_chats_are_answered_once_each_in_session_order() {
    let service = TestService::start().await;
    let script = Script::counts_by_call(6, std::time::Duration::from_millis(10));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let urls = service.public_urls();
    let began = Instant::now();
    let chats = (0..SESSIONS * CHATS_PER_SESSION).map(|number| {
        // Adjacent chats of a session use different ingresses.
        let client = organization.client_at(&urls[number / SESSIONS % urls.len()]);
        let (session, question) = (
            format!("session-{}", number % SESSIONS),
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
    let chats = join_all(chats).await;
    report(&format!(
        "{} chats took {:.1} s",
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
    let requests = ScriptedModel::get().requests(&organization.model);
    assert_eq!(requests.len(), chats.len(), "one model call per chat");
    let mut asked: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    for request in &requests {
        let told: Vec<_> = request
            .messages
            .iter()
            .skip(1)
            .map(|(_, text)| text.clone())
            .collect();
        asked.entry(told[0].clone()).or_default().push(told);
    }
    let mut of_session: HashMap<&str, Vec<&Chat>> = HashMap::new();
    for chat in &chats {
        of_session.entry(&chat.session).or_default().push(chat);
    }
    assert_eq!((of_session.len(), asked.len()), (SESSIONS, SESSIONS));
    for (session, chats) in of_session {
        let history = organization
            .client()
            .settled_history(organization.shop(), session, 2 * CHATS_PER_SESSION)
            .await;
        let stored = assert_stored_as_streamed(&history, &chats);
        // The n-th call of a session got exactly the messages before its question.
        let calls = &asked[&stored[0]];
        let lengths: Vec<_> = calls.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 3, 5, 7, 9], "{session}");
        assert!(
            calls.iter().all(|told| stored.starts_with(told)),
            "{session}: {calls:?}"
        );
    }
}

/// Returns the texts of the history in order.
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
