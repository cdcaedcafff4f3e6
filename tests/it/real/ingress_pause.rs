//! An ingress that is suspended while its replies wait for tokens.

use std::time::Duration;

use futures::future::join_all;

use super::start_cluster;
use crate::support::{Organization, PATIENCE, Script, eventually};

const REPLIES: usize = 50;
/// Longer than a claim that is not renewed stays valid.
const PAUSE: Duration = Duration::from_secs(5);
/// Time in which a wrong decision would show.
const AFTER_PAUSE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_ingress_takes_no_reply_from_a_healthy_worker() {
    let service = start_cluster(&[]).await;
    let (script, gate) = Script::says("held").gated();
    let organization = Organization::with_agent(&service, script).await;
    let paused = service.process_names("ingress").remove(0);
    let client = organization.client_at(&service.public_urls()[0]);
    let agent = organization.shop();
    let chats = (0..REPLIES).map(|number| {
        let (client, session) = (client.clone(), format!("s{number}"));
        async move { client.chat(agent, &session, "go").await }
    });
    let pause = async {
        eventually("all replies wait for tokens", PATIENCE, async || {
            (organization.requests().len() == REPLIES).then_some(())
        })
        .await;
        service.with_process(&paused, |process| process.signal("STOP"));
        tokio::time::sleep(PAUSE).await;
        service.with_process(&paused, |process| process.signal("CONT"));
        tokio::time::sleep(AFTER_PAUSE).await;
        gate.open(REPLIES);
    };
    let (replies, ()) = tokio::join!(join_all(chats), pause);
    for reply in &replies {
        assert_eq!(reply.complete(), "held");
    }
    let takeovers = service.metric("switchboard_reply_takeovers_total").await;
    let takeovers: f64 = takeovers.iter().map(|(_, value)| value).sum();
    assert_eq!(takeovers, 0.0, "replies taken from their workers");
    assert_eq!(organization.requests().len(), REPLIES, "model calls");
}
