//! Tests of outages, data loss and malformed messages of Redis. Each test has a server of its own.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use switchboard_schemas::{
    ids::{ConversationId, EventId, IngressId, MessageId},
    reply_event::{Frame, FrameBody, IngressEnvelope, PatchOutcome, ReplyEnd},
};
use tokio::sync::mpsc;

use super::RedisRelay;
use crate::{
    config::RedisConfig,
    redis_link::RedisLink,
    relay::{
        ClaimOutcome, ClaimRequest, ClaimStatus, ClaimStore, ClaimToken, FINAL_STATE_TTL,
        KeyValueMemory, LOG_TTL, QueueSlots, RelayError, ReplyLog, STATE_LOSS_GRACE,
    },
    testing::SLACK,
};

/// Longest time until frames are pushed after Redis is back.
const RECOVERY_MAX: Duration = Duration::from_secs(5);
const COMMAND_TIMEOUT_MS: u64 = 500;

/// A Redis without a disk; killed when dropped.
pub(super) struct Server {
    port: u16,
    process: Option<Child>,
}

impl Server {
    fn absent() -> Self {
        // The port is free again once the probe is dropped.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        Self {
            port,
            process: None,
        }
    }

    pub(super) fn started() -> Self {
        let mut server = Self::absent();
        server.start();
        server
    }

    fn start(&mut self) {
        let arguments = [
            "--port",
            &self.port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
        ];
        let process = Command::new("redis-server")
            .args(arguments)
            .stdout(Stdio::null())
            .spawn();
        self.process = Some(process.expect("redis-server is installed"));
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    async fn relay(&self) -> RedisRelay {
        RedisRelay::connect(&self.config(), "outage").await.unwrap()
    }

    pub(super) fn config(&self) -> RedisConfig {
        let url = format!("redis://127.0.0.1:{}", self.port).into();
        RedisConfig {
            url,
            command_timeout_ms: COMMAND_TIMEOUT_MS,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Pushes until an envelope arrives and returns the time that it took.
async fn time_until_heard(
    relay: &RedisRelay,
    address: &IngressId,
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) -> Duration {
    let start = Instant::now();
    let patch = IngressEnvelope::Patch(EventId::derive("outage", "over"), PatchOutcome::Applied);
    while start.elapsed() < Duration::from_secs(30) {
        let _ = relay.push(address, &patch).await;
        if let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(20), listener.recv()).await
        {
            return start.elapsed();
        }
    }
    panic!("the listener did not recover");
}

pub(super) async fn wait_until_up(relay: &RedisRelay) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while relay.check().await.is_err() {
        assert!(Instant::now() < deadline, "redis did not start");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn outage(length: Duration) {
    let mut server = Server::started();
    let (relay, address) = (server.relay().await, IngressId::random());
    wait_until_up(&relay).await;
    let mut listener = relay.subscribe(&address).await.unwrap();
    time_until_heard(&relay, &address, &mut listener).await;

    server.kill();
    let end = Instant::now() + length;
    while Instant::now() < end {
        assert!(relay.check().await.is_err());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.start();
    while listener.try_recv().is_ok() {}
    let recovered = time_until_heard(&relay, &address, &mut listener).await;
    assert!(
        recovered < RECOVERY_MAX,
        "frames flowed only after {recovered:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_recovers_after_a_short_outage() {
    outage(Duration::from_secs(3)).await;
}

/// Longer than the client library itself tries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_recovers_after_a_long_outage() {
    outage(Duration::from_secs(25)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_attached_without_redis_recovers_when_it_starts() {
    let mut server = Server::absent();
    let (relay, address) = (server.relay().await, IngressId::random());
    let mut listener = relay.subscribe(&address).await.unwrap();
    server.start();
    let recovered = time_until_heard(&relay, &address, &mut listener).await;
    assert!(recovered < RECOVERY_MAX, "alive only after {recovered:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_subscription_is_reopened() {
    let server = Server::started();
    let (relay, address) = (server.relay().await, IngressId::random());
    wait_until_up(&relay).await;
    let mut listener = relay.subscribe(&address).await.unwrap();
    time_until_heard(&relay, &address, &mut listener).await;
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub");
    let killed: u32 = relay.link.query(&kill).await.unwrap();
    assert_eq!(killed, 1);
    while listener.try_recv().is_ok() {}
    assert!(time_until_heard(&relay, &address, &mut listener).await < RECOVERY_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_fail_fast_without_redis() {
    let server = Server::absent();
    let relay = server.relay().await;
    let start = Instant::now();
    let refused = relay.claim_reply(&any_request()).await;
    assert!(
        matches!(refused, Err(RelayError::Unavailable(_))),
        "{refused:?}"
    );
    assert!(
        start.elapsed() < Duration::from_millis(COMMAND_TIMEOUT_MS * 2) + SLACK,
        "took {:?}",
        start.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_command_after_a_restart_succeeds() {
    let mut server = Server::started();
    let (relay, probe) = (server.relay().await, server.relay().await);
    wait_until_up(&relay).await;
    server.kill();
    server.start();
    wait_until_up(&probe).await;
    relay.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_restores_its_claim_in_an_emptied_redis() {
    let mut server = Server::started();
    let relay = server.relay().await;
    wait_until_up(&relay).await;
    let token = granted(relay.claim_reply(&any_request()).await.unwrap());
    assert_eq!(
        relay.append_frames(&token, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Held
    );
    server.kill();
    server.start();
    wait_until_up(&relay).await;
    assert_eq!(
        relay.append_frames(&token, None, &[text(2)]).await.unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        relay
            .restore_claim(&token, None, &[text(1), text(2)])
            .await
            .unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        relay.append_frames(&token, None, &[text(3)]).await.unwrap(),
        ClaimStatus::Held
    );
    assert_eq!(
        relay.read_frames(&token.reply_id, 0).await.unwrap(),
        [text(1), text(2), text(3)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emptied_redis_leaves_an_inherited_reply_to_its_holder() {
    let mut server = Server::started();
    let relay = server.relay().await;
    wait_until_up(&relay).await;
    let request = any_request();
    let token = granted(relay.claim_reply(&request).await.unwrap());
    server.kill();
    server.start();
    // Another process, which never saw a failure.
    let stranger = server.relay().await;
    wait_until_up(&stranger).await;
    let maybe_held = ClaimRequest {
        nonce: rand::random(),
        maybe_held: true,
        ..request
    };
    let claim = stranger.claim_reply(&maybe_held).await.unwrap();
    assert!(
        matches!(claim, ClaimOutcome::Busy { retry_after, .. } if retry_after <= STATE_LOSS_GRACE),
        "{claim:?}"
    );
    assert_eq!(
        relay.renew_claim(&token, None).await.unwrap(),
        ClaimStatus::StateLost
    );
    assert_eq!(
        relay.restore_claim(&token, None, &[text(1)]).await.unwrap(),
        ClaimStatus::Held
    );
    assert!(matches!(
        stranger.claim_reply(&maybe_held).await.unwrap(),
        ClaimOutcome::Busy { .. }
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emptied_redis_grants_the_reply_of_a_silent_holder() {
    let mut server = Server::started();
    let relay = server.relay().await;
    wait_until_up(&relay).await;
    server.kill();
    server.start();
    wait_until_up(&relay).await;
    let maybe_held = ClaimRequest {
        nonce: rand::random(),
        maybe_held: true,
        ..any_request()
    };
    let began = Instant::now();
    while let ClaimOutcome::Busy { retry_after, .. } = relay.claim_reply(&maybe_held).await.unwrap()
    {
        assert!(
            began.elapsed() < STATE_LOSS_GRACE + RECOVERY_MAX,
            "granted once the grace is over"
        );
        tokio::time::sleep(retry_after).await;
    }
    assert!(began.elapsed() + Duration::from_secs(1) > STATE_LOSS_GRACE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evicted_log_of_a_live_claim_is_reported_as_state_loss() {
    let server = Server::started();
    let relay = server.relay().await;
    wait_until_up(&relay).await;
    let token = granted(relay.claim_reply(&any_request()).await.unwrap());
    relay.append_frames(&token, None, &[text(1)]).await.unwrap();
    let mut evict = redis::cmd("DEL");
    evict.arg(super::log_key(&relay.link, &token.reply_id));
    let _: () = relay.link.query(&evict).await.unwrap();
    assert_eq!(
        relay.append_frames(&token, None, &[text(2)]).await.unwrap(),
        ClaimStatus::StateLost
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_envelopes_are_counted_and_skipped() {
    let server = Server::started();
    let (relay, address) = (server.relay().await, IngressId::random());
    wait_until_up(&relay).await;
    let mut listener = relay.subscribe(&address).await.unwrap();
    for rubbish in [&b""[..], b"\xff", b"\x00\x05abc", &[7; 4096]] {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(relay.channel(&address)).arg(rubbish);
        let _: () = relay.link.query(&publish).await.unwrap();
    }
    time_until_heard(&relay, &address, &mut listener).await;
    assert_eq!(relay.envelopes_malformed(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_a_reply_expire() {
    let server = Server::started();
    let relay = server.relay().await;
    wait_until_up(&relay).await;
    let request = any_request();
    relay
        .void_publish(&request.reply_id, "other")
        .await
        .unwrap();
    let end = Frame::only(ReplyEnd::cancelled_in_queue(1));
    relay.cancel_reply(&request.reply_id, &end).await.unwrap();
    let token = granted(relay.claim_reply(&request).await.unwrap());
    relay.append_frames(&token, None, &[text(1)]).await.unwrap();
    let keys: Vec<String> = relay
        .link
        .query(redis::cmd("KEYS").arg("*:{*"))
        .await
        .unwrap();
    assert_eq!(keys.len(), 4, "{keys:?}");
    for key in keys {
        assert!(
            key.starts_with(&format!("outage:{{{}}}:", request.reply_id.conversation())),
            "{key}"
        );
        let left: i64 = relay.link.query(redis::cmd("TTL").arg(&key)).await.unwrap();
        // The log is needed for minutes, claims and marks of voided publishes for a day.
        let kept_for = if key.contains("}:log:") {
            LOG_TTL
        } else {
            FINAL_STATE_TTL
        };
        let expected = i64::try_from(kept_for.as_secs()).unwrap();
        assert!(
            (expected - 60..=expected).contains(&left),
            "{key} expires in {left} s"
        );
    }
}

#[tokio::test]
async fn error_of_an_invalid_url_hides_its_password() {
    let config = RedisConfig {
        url: "redis://:hunter2@host:no-port".into(),
        command_timeout_ms: COMMAND_TIMEOUT_MS,
    };
    let Err(error) = RedisLink::connect(&config, "").await else {
        panic!("connected")
    };
    assert!(!error.to_string().contains("hunter2"));
}

pub(super) fn any_request() -> ClaimRequest {
    let payload = &IngressId::random().as_str()[IngressId::PREFIX.len()..].to_owned();
    let conversation: ConversationId = format!("conv_{payload}").parse().unwrap();
    let reply_id = MessageId::new_in(&conversation).reply();
    ClaimRequest {
        reply_id,
        publish_nonce: "publish".into(),
        nonce: rand::random(),
        attempt_min: 1,
        maybe_held: false,
    }
}

pub(super) fn granted(claim: ClaimOutcome) -> ClaimToken {
    match claim {
        ClaimOutcome::Granted { token, .. } => token,
        other => panic!("not granted: {other:?}"),
    }
}

pub(super) fn text(seq: u64) -> Frame {
    Frame {
        attempt: 1,
        generation: 1,
        seq,
        body: FrameBody::Text {
            offset: seq,
            text: "a".into(),
        },
    }
}
