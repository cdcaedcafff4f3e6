//! Redis outage with loss of all data during replies.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::{own_services::OwnRedis, start_cluster};
use crate::support::{Organization, PATIENCE, Reply, Script, TestService, eventually, report};

const REPLIES: usize = 50;
/// Time that replies continue after the outage, including start-up and lag.
const REST: Duration = Duration::from_secs(8);
const WORD_INTERVAL: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_survive_five_seconds_without_redis_and_its_data() {
    assert_replies_survive_without_redis_for(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_survive_a_minute_without_redis_and_its_data() {
    assert_replies_survive_without_redis_for(Duration::from_secs(60)).await;
}

async fn assert_replies_survive_without_redis_for(outage: Duration) {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let words = (outage + REST).as_millis() / WORD_INTERVAL.as_millis();
    // Each call returns different text, so that a reply joined from two calls shows.
    let script = Script::counts_by_call(usize::try_from(words).unwrap(), WORD_INTERVAL);
    let organization = Organization::with_agent(&service, script.clone()).await;
    let mut open =
        join_all((0..REPLIES).map(|number| begin_reply(&service, &organization, number))).await;
    let before: Vec<_> = open.iter().map(|(reply, _)| reply.bytes().len()).collect();
    redis.kill();
    let reading = async {
        join_all(
            open.drain(..)
                .map(|(reply, response)| reply.continue_reading(response)),
        )
        .await
    };
    let away = async {
        tokio::time::sleep(outage).await;
        redis.restart();
    };
    let (replies, ()) = tokio::join!(reading, away);
    for (number, reply) in replies.iter().enumerate() {
        let text = reply.complete();
        assert_eq!(
            text,
            script.text_that_begins(&text),
            "reply {number} is one call's text"
        );
        assert!(text.len() > before[number]);
        let history = organization.settled_history(&format!("s{number}"), 2).await;
        assert_eq!(history["totalMessages"], 2, "{history}");
        assert_eq!(history["messages"][1]["content"], text);
        assert_eq!(history["messages"][1]["status"], "completed");
    }
    let calls = organization.requests().len();
    report(&format!(
        "Redis away for {outage:?}: {REPLIES} of {REPLIES} replies whole, {calls} model calls"
    ));
    organization.script(Script::says("back to normal"));
    eventually("new replies stream again", PATIENCE, async || {
        let reply = organization.chat("after", "hi").await;
        (reply.status == 200 && reply.ended_cleanly).then_some(())
    })
    .await;
}

#[tokio::test]
async fn retry_after_redis_data_loss_calls_no_model() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization =
        Organization::with_agent(&service, Script::counts_by_call(3, Duration::ZERO)).await;
    let (client, agent) = (organization.client(), organization.shop());
    let first = json!({"message": "first", "sessionId": "s"});
    let path = format!("/api/public/agents/{agent}/chat");
    let keyed = async || {
        let request = client
            .request(reqwest::Method::POST, &path)
            .header("idempotency-key", "one");
        Reply::read(request.json(&first).send().await.unwrap()).await
    };
    let answered = keyed().await.complete();
    redis.kill();
    redis.restart();
    eventually("a chat streams again", PATIENCE, async || {
        let reply = client.chat(agent, "s", "second").await;
        (reply.status == 200 && reply.ended_cleanly).then_some(())
    })
    .await;
    let before = client.history(agent, "s").await;
    let calls = organization.requests().len();
    let repeated = eventually("the repeat is answered", PATIENCE, async || {
        let reply = keyed().await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_eq!(repeated.complete(), answered);
    assert_eq!(organization.requests().len(), calls);
    assert_eq!(
        client.history(agent, "s").await["messages"],
        before["messages"]
    );
}

#[tokio::test]
async fn reused_key_with_other_text_is_new_after_redis_data_loss() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization =
        Organization::with_agent(&service, Script::counts_by_call(3, Duration::ZERO)).await;
    let (client, agent) = (organization.client(), organization.shop());
    let path = format!("/api/public/agents/{agent}/chat");
    let keyed = async |message: &str| {
        let request = client
            .request(reqwest::Method::POST, &path)
            .header("idempotency-key", "one");
        Reply::read(
            request
                .json(&json!({"message": message, "sessionId": "s"}))
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    let first = keyed("first").await.complete();
    redis.kill();
    redis.restart();
    let second = eventually("the other message is answered", PATIENCE, async || {
        let reply = keyed("second").await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_ne!(second.complete(), first, "another call of the model");
    assert_eq!(
        client.history(agent, "s").await["messages"][2]["content"],
        "second"
    );
}

#[tokio::test]
async fn read_only_redis_stops_streaming_and_loses_no_reply() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization = Organization::with_agent(&service, Script::says("whole")).await;
    let (client, agent) = (organization.client(), organization.shop());
    client.chat(agent, "before", "hi").await.complete();
    redis.refuse_writes();
    let replies =
        join_all(["a", "b", "c", "d"].map(|session| client.chat(agent, session, "hi"))).await;
    for reply in replies {
        assert_eq!(reply.complete(), "whole");
    }
}

/// A reply that has started to stream.
async fn begin_reply(
    service: &TestService,
    organization: &Organization,
    number: usize,
) -> (Reply, reqwest::Response) {
    let urls = service.public_urls();
    let client = organization.client_at(&urls[number % urls.len()]);
    let (reply, response) = client
        .begin_chat(organization.shop(), &format!("s{number}"), "go", 9)
        .await;
    (reply, response)
}
