//! Tests of connections that stay open and no longer answer, as behind a load balancer that lost
//! its state.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use switchboard_schemas::{
    ids::{EventId, IngressId},
    reply_event::{IngressEnvelope, PatchOutcome},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
};

use super::RedisRelay;
use crate::{
    config::RedisConfig,
    redis_link::{test_config, test_namespace},
    relay::{KeyValueMemory, ReplyLog},
};
use secrecy::ExposeSecret;

/// Longest recovery: five seconds for the command connection, three for the subscription, and round
/// trips.
const RECOVERY_MAX: Duration = Duration::from_secs(15);

/// A proxy in front of Redis that can silence its open connections.
struct SilencingProxy {
    port: u16,
    accepted: Arc<AtomicU64>,
    silenced_below: Arc<AtomicU64>,
    _accepting: JoinSet<()>,
}

impl SilencingProxy {
    async fn open() -> Self {
        let server = test_config()
            .url
            .expose_secret()
            .trim_start_matches("redis://")
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (accepted, silenced_below) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (count, threshold) = (Arc::clone(&accepted), Arc::clone(&silenced_below));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut copying = JoinSet::new();
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = TcpStream::connect(&server).await.unwrap().into_split();
                let number = count.fetch_add(1, Ordering::SeqCst);
                copying.spawn(copy(number, Arc::clone(&threshold), near_read, far_write));
                copying.spawn(copy(number, Arc::clone(&threshold), far_read, near_write));
            }
        });
        Self {
            port,
            accepted,
            silenced_below,
            _accepting: accepting,
        }
    }

    fn silence_open_connections(&self) {
        self.silenced_below
            .store(self.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// Copies bytes until the connection is silenced, then discards them.
async fn copy(
    number: u64,
    silenced_below: Arc<AtomicU64>,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if number >= silenced_below.load(Ordering::SeqCst)
            && to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}

async fn is_pushed(
    relay: &RedisRelay,
    address: &IngressId,
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) -> bool {
    let _ = relay
        .push(
            address,
            &IngressEnvelope::Patch(EventId::derive("proxy", "probe"), PatchOutcome::Applied),
        )
        .await;
    matches!(
        tokio::time::timeout(Duration::from_millis(50), listener.recv()).await,
        Ok(Some(_))
    )
}

async fn wait_until_pushed(
    relay: &RedisRelay,
    address: &IngressId,
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) {
    let start = Instant::now();
    while !is_pushed(relay, address, listener).await {
        assert!(start.elapsed() < RECOVERY_MAX, "still silent");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_are_replaced() {
    let proxy = SilencingProxy::open().await;
    let url = format!("redis://127.0.0.1:{}", proxy.port).into();
    let config = RedisConfig {
        url,
        command_timeout_ms: 500,
    };
    let relay = RedisRelay::connect(&config, &test_namespace())
        .await
        .unwrap();
    let address = IngressId::random();
    let mut listener = relay.subscribe(&address).await.unwrap();
    wait_until_pushed(&relay, &address, &mut listener).await;

    proxy.silence_open_connections();
    assert!(
        relay.check().await.is_err(),
        "the connection should be silent"
    );
    wait_until_pushed(&relay, &address, &mut listener).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_subscription_is_replaced() {
    let proxy = SilencingProxy::open().await;
    let url = format!("redis://127.0.0.1:{}", proxy.port).into();
    let namespace = test_namespace();
    let relay = RedisRelay::connect(
        &RedisConfig {
            url,
            command_timeout_ms: 500,
        },
        &namespace,
    )
    .await
    .unwrap();
    // Commands of this relay bypass the proxy.
    let direct = RedisRelay::connect(&test_config(), &namespace)
        .await
        .unwrap();
    let address = IngressId::random();
    let mut listener = relay.subscribe(&address).await.unwrap();
    wait_until_pushed(&direct, &address, &mut listener).await;

    proxy.silence_open_connections();
    wait_until_pushed(&direct, &address, &mut listener).await;
}
