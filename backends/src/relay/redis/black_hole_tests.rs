//! Connections that die without a word, as behind a balancer that loses its table: open, and dumb for ever.

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

/// Five seconds until the command connection is given up, three for the subscription, and the ways between.
const RECOVERY_MAX: Duration = Duration::from_secs(15);

/// A door to Redis whose present connections can be made dumb.
struct Door {
    port: u16,
    accepted: Arc<AtomicU64>,
    dumb_below: Arc<AtomicU64>,
    _accepting: JoinSet<()>,
}

impl Door {
    async fn open() -> Self {
        let server = test_config()
            .url
            .expose_secret()
            .trim_start_matches("redis://")
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (accepted, dumb_below) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (count, threshold) = (Arc::clone(&accepted), Arc::clone(&dumb_below));
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
            dumb_below,
            _accepting: accepting,
        }
    }

    fn swallow_present_connections(&self) {
        self.dumb_below
            .store(self.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// Copies until the connection is dumb; from then on it reads and says nothing.
async fn copy(
    number: u64,
    dumb_below: Arc<AtomicU64>,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if number >= dumb_below.load(Ordering::SeqCst)
            && to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}

async fn heard(
    relay: &RedisRelay,
    address: &IngressId,
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) -> bool {
    let _ = relay
        .push(
            address,
            &IngressEnvelope::Patch(EventId::of("dumb", "over"), PatchOutcome::Applied),
        )
        .await;
    matches!(
        tokio::time::timeout(Duration::from_millis(50), listener.recv()).await,
        Ok(Some(_))
    )
}

async fn until_heard(
    relay: &RedisRelay,
    address: &IngressId,
    listener: &mut mpsc::Receiver<IngressEnvelope>,
) {
    let start = Instant::now();
    while !heard(relay, address, listener).await {
        assert!(start.elapsed() < RECOVERY_MAX, "still dumb");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_fell_dumb_are_replaced() {
    let door = Door::open().await;
    let url = format!("redis://127.0.0.1:{}", door.port).into();
    let config = RedisConfig {
        url,
        command_timeout_ms: 500,
    };
    let relay = RedisRelay::connect(&config, &test_namespace())
        .await
        .unwrap();
    let address = IngressId::random();
    let mut listener = relay.subscribe(&address).await.unwrap();
    until_heard(&relay, &address, &mut listener).await;

    door.swallow_present_connections();
    assert!(
        relay.check().await.is_err(),
        "the connection was to be dumb"
    );
    until_heard(&relay, &address, &mut listener).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_fell_dumb_alone_is_replaced() {
    let door = Door::open().await;
    let url = format!("redis://127.0.0.1:{}", door.port).into();
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
    // Commands of this one go past the door.
    let beside = RedisRelay::connect(&test_config(), &namespace)
        .await
        .unwrap();
    let address = IngressId::random();
    let mut listener = relay.subscribe(&address).await.unwrap();
    until_heard(&beside, &address, &mut listener).await;

    door.swallow_present_connections();
    until_heard(&beside, &address, &mut listener).await;
}
