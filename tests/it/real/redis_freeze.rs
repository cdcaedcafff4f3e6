//! Redis that is suspended while replies end: each message has one final state, in the store and on
//! the topic.

use std::{collections::HashMap, time::Duration};

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
    let mut histories = vec![];
    for number in 0..REPLIES {
        histories.push(organization.settled_history(&session(number), 4).await);
    }
    let announced = announced_texts(&Witness::at_shared(), &service);
    let mut cut = 0;
    for (number, (reply, history)) in replies.iter().zip(&histories).enumerate() {
        let stored = &history["messages"][3];
        assert_eq!(history["totalMessages"], 4, "{history}");
        if reply.status == 200 && reply.ended_cleanly {
            assert_eq!(stored["content"], json!(reply.text()), "reply {number}");
        } else {
            cut += 1;
        }
        let texts = &announced[stored["id"].as_str().unwrap()];
        assert!(
            texts.iter().all(|text| *text == stored["content"]),
            "reply {number} is stored as {stored} and announced as {texts:?}"
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

/// Returns the texts of all records on the topic for analytics that announce a reply, by its id.
fn announced_texts(witness: &Witness, service: &TestService) -> HashMap<String, Vec<Value>> {
    let mut texts: HashMap<String, Vec<Value>> = HashMap::new();
    for record in witness.read_all(&witness.topic(service, "chat.messages")) {
        let event: Value = serde_json::from_slice(&record.payload).unwrap();
        if event["type"] == "message.assistant" {
            let reply = event["messageId"].as_str().unwrap().to_owned();
            texts
                .entry(reply)
                .or_default()
                .push(event["content"].clone());
        }
    }
    texts
}
