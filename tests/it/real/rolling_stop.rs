//! Stopping one worker while others run, without a visible effect.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::start_cluster;
use crate::support::{Organization, Reply, Script};

const LONG_REPLIES: usize = 6;
const NEW_CHATS: usize = 20;
/// Longer than the long replies take on any machine: a worker whose budget is spent hands its
/// replies to another one.
const DRAIN_MS: &str = "110000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_worker_finishes_its_replies_and_takes_no_new_ones() {
    let service = start_cluster(&[("SWITCHBOARD__WORKERS__DRAIN_MS", DRAIN_MS)]).await;
    let organization = Organization::with_agent(&service, Script::says("new")).await;
    // 23 s, longer than an ingress waits for the first sign of a reply.
    let long = Script::counts(115, Duration::from_millis(200));
    organization.script_for("long", long.clone());
    let urls = service.public_urls();
    let open = join_all((0..LONG_REPLIES).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let body = json!({"message": "[[long]] please", "sessionId": format!("long{number}")});
        let agent = organization.shop().to_owned();
        async move {
            let mut response = client.open_chat(&agent, &body).await;
            let mut reply = Reply::begin(&response);
            reply.read_at_least(&mut response, 1).await;
            (reply, response)
        }
    }))
    .await;
    let draining = service.inference_processes().remove(0);
    service.with_process(&draining, |process| process.signal("TERM"));
    let new = join_all((0..NEW_CHATS).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let agent = organization.shop().to_owned();
        async move { client.chat(&agent, &format!("new{number}"), "hi").await }
    }));
    for reply in new.await {
        assert_eq!(reply.complete(), "new");
    }
    for (reply, response) in open {
        assert_eq!(reply.continue_reading(response).await.complete(), long.text);
    }
    assert_eq!(organization.requests().len(), LONG_REPLIES + NEW_CHATS);
}
