//! Links from the product's processes to Redis and the store, which faults cut, delay and narrow.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rand::RngExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    time::sleep_until,
};

use super::faults::OwnServices;
use crate::support::{TestService, background};

/// Bytes that are read and delivered at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Chunks that may wait on each direction of a connection.
const WAITING_CHUNKS_MAX: usize = 256;
/// Time after which TCP sends a lost packet again, at least.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// The condition of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LinkCondition {
    Intact,
    /// Nothing is delivered, and connections stay open.
    Cut,
    /// Everything arrives later by this time.
    Delayed(Duration),
    /// At most so many bytes per second are delivered on each connection.
    Narrow(u32),
    /// This share of the chunks arrives only after a retransmission.
    Lossy(f64),
}

/// A listener that forwards each connection to one address.
pub(super) struct Link {
    address: String,
    condition: watch::Sender<LinkCondition>,
}

/// The links of one process.
pub(super) struct ProcessLinks {
    pub(super) redis: Link,
    pub(super) store: Link,
}

/// The links of all processes, by the names of the processes.
pub(super) type Links = BTreeMap<String, ProcessLinks>;

impl Link {
    /// Starts a link to an address. It lives as long as the test process.
    fn to(target: &str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (condition, watched) = watch::channel(LinkCondition::Intact);
        let link = Self {
            address: listener.local_addr().unwrap().to_string(),
            condition,
        };
        let target = target.to_owned();
        background().spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                background().spawn(connect(client, target.clone(), watched.clone()));
            }
        });
        link
    }

    /// Sets the condition for open and later connections.
    pub(super) fn set(&self, condition: LinkCondition) {
        self.condition.send_replace(condition);
    }
}

impl ProcessLinks {
    fn to(services: &OwnServices) -> Self {
        Self {
            redis: Link::to(&services.redis.address()),
            store: Link::to(&services.cassandra.address()),
        }
    }
}

/// Restarts every process with links of its own to Redis and the store.
pub(super) async fn insert_links(service: &TestService, services: &OwnServices) -> Links {
    let mut links = Links::new();
    for name in service.process_names("") {
        let own = ProcessLinks::to(services);
        let variables = [
            (
                "SWITCHBOARD__REDIS__URL",
                format!("redis://{}", own.redis.address),
            ),
            ("SWITCHBOARD__SCYLLA__NODES", own.store.address.clone()),
        ];
        service.restart_with(&name, &variables).await;
        links.insert(name, own);
    }
    links
}

async fn connect(client: TcpStream, target: String, condition: watch::Receiver<LinkCondition>) {
    let Ok(server) = TcpStream::connect(&target).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The end of one direction ends the other: neither Redis nor the store half-closes.
    tokio::select! {
        () = forward(from_client, to_server, condition.clone()) => {}
        () = forward(from_server, to_client, condition) => {}
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    to: OwnedWriteHalf,
    condition: watch::Receiver<LinkCondition>,
) {
    let (sender, chunks) = mpsc::channel(WAITING_CHUNKS_MAX);
    let read = async move {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let chunk = (Instant::now(), buffer[..count].to_vec());
            if sender.send(chunk).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, deliver(chunks, to, condition));
}

/// Delivers chunks in order, each when the condition of the link lets it arrive.
async fn deliver(
    mut chunks: mpsc::Receiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<LinkCondition>,
) {
    let mut free_at = Instant::now();
    while let Some((received, chunk)) = chunks.recv().await {
        let is_open = |condition: &LinkCondition| *condition != LinkCondition::Cut;
        let Ok(current) = condition.wait_for(is_open).await.map(|current| *current) else {
            return;
        };
        let arrival = match current {
            LinkCondition::Intact | LinkCondition::Cut => received,
            LinkCondition::Delayed(delay) => received + delay,
            LinkCondition::Narrow(bytes_per_second) => {
                let seconds = chunk.len() as f64 / f64::from(bytes_per_second);
                received.max(free_at) + Duration::from_secs_f64(seconds)
            }
            LinkCondition::Lossy(share) if rand::rng().random_bool(share) => {
                received + RETRANSMISSION
            }
            LinkCondition::Lossy(_) => received,
        };
        free_at = arrival.max(free_at);
        sleep_until(free_at.into()).await;
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
}
