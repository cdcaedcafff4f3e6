//! Redis dies in the middle of replies and comes back with nothing.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::own_redis::OwnRedis;
use crate::support::{Organization, PATIENCE, Reply, Script, TestService, eventually};

#[tokio::test]
async fn replies_arrive_whole_although_redis_dies_for_five_seconds_and_comes_back_empty() {
    let redis = OwnRedis::start();
    let service = TestService::start_with(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let script = Script::counts(100, Duration::from_millis(100));
    let organization = Organization::with_agent(&service, script.clone()).await;
    let urls = service.public_urls();
    let chats = (0..10).map(|number| {
        let client = organization.client_at(&urls[number % urls.len()]);
        let body = json!({"message": "go", "sessionId": format!("s{number}")});
        let agent = organization.shop().to_owned();
        async move { Reply::read(client.open_chat(&agent, &body).await).await }
    });
    let outage = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        redis.kill();
        tokio::time::sleep(Duration::from_secs(5)).await;
        redis.start_again();
    };
    let (replies, ()) = tokio::join!(join_all(chats), outage);
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.complete(), script.text, "reply {number}");
        let history = organization.client().history(organization.shop(), &format!("s{number}")).await;
        assert_eq!(history["totalMessages"], 2, "{history}");
        assert_eq!(history["messages"][1]["content"], script.text);
    }
    organization.script(Script::says("back to normal"));
    eventually("new replies stream again", PATIENCE, async || {
        let reply = organization.client().chat(organization.shop(), "after", "hi").await;
        (reply.status == 200 && reply.ended_cleanly).then_some(())
    })
    .await;
}
