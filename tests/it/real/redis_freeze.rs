//! Redis that is suspended while replies end: each message has one final state, in the store and on
//! the topic.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{kafka::Witness, own_services::OwnRedis, start_cluster};
use crate::support::{Organization, Script, TestService, report};

const REPLIES: usize = 24;
/// Long enough for the ingress to give up the worker and publish the job again.
const FREEZE: Duration = Duration::from_millis(6_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_that_ends_while_redis_is_suspended_has_one_text() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    // Each call returns another text.
    let script = Script::counts_by_call(6, Duration::from_millis(60));
    let organization = Organization::with_agent(&service, script).await;
    let urls = service.public_urls();
    let (client, agent) = (organization.client(), organization.shop());
    // The workers know each other's conversations from a turn before.
    let before = (0..REPLIES).map(|number| {
        let client = client.clone();
        async move { client.chat(agent, &session(number), "before").await }
    });
    join_all(before).await;
    let chats = (0..REPLIES).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        async move {
            // Some have begun, some are not claimed yet when Redis stops.
            tokio::time::sleep(Duration::from_millis(20) * u32::try_from(number).unwrap()).await;
            client.chat(agent, &session(number), "go").await
        }
    });
    let freeze = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        redis.suspend();
        tokio::time::sleep(FREEZE).await;
        redis.resume();
    };
    let (replies, ()) = tokio::join!(join_all(chats), freeze);
    let (witness, mut cut) = (Witness::at_shared(), 0);
    for (number, reply) in replies.iter().enumerate() {
        let history = organization.settled_history(&session(number), 4).await;
        let stored = &history["messages"][3];
        assert_eq!(history["totalMessages"], 4, "{history}");
        if reply.status == 200 && reply.ended_cleanly {
            assert_eq!(stored["content"], json!(reply.text()), "reply {number}");
        } else {
            cut += 1;
        }
        let announced = announced_texts(&witness, &service, stored["id"].as_str().unwrap());
        assert!(
            !announced.is_empty() && announced.iter().all(|text| *text == stored["content"]),
            "reply {number} is stored as {stored} and announced as {announced:?}"
        );
    }
    report(&format!(
        "Redis suspended for {FREEZE:?}: {REPLIES} replies, {cut} of them cut, {} model calls",
        organization.requests().len()
    ));
}

fn session(number: usize) -> String {
    format!("s{number}")
}

/// Returns the texts of all records on the topic for analytics that announce this reply.
fn announced_texts(witness: &Witness, service: &TestService, reply: &str) -> Vec<Value> {
    let records = witness.read_all(&witness.topic(service, "chat.messages"));
    let events = records
        .iter()
        .map(|record| serde_json::from_slice::<Value>(&record.payload).unwrap());
    events
        .filter(|event| event["type"] == "message.assistant" && event["messageId"] == reply)
        .map(|event| event["content"].clone())
        .collect()
}
