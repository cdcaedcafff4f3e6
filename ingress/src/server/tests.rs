//! Tests of the accept loop over real sockets: complete and broken replies, silent clients and
//! draining.

use std::{net::SocketAddr, time::Duration};

use switchboard_schemas::{conversation::ReplyStatus, reply_event::Frame, topics::Topic};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    IngressConfig,
    testing::{World, reply_frames, reply_of},
};

const DEADLINE: Duration = Duration::from_secs(10);
/// Final chunk of a complete chunked body.
const FINAL_CHUNK: &str = "0\r\n\r\n";

struct RunningServer {
    world: World,
    address: SocketAddr,
    shutdown: CancellationToken,
    server: JoinSet<anyhow::Result<()>>,
}

impl RunningServer {
    async fn start(config: IngressConfig) -> Self {
        let mut world = World::with(config).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, shutdown, mut server) = (
            listener.local_addr().unwrap(),
            CancellationToken::new(),
            JoinSet::new(),
        );
        let ingress = world.take_ingress();
        server.spawn(ingress.serve(listener, shutdown.clone()));
        Self {
            world,
            address,
            shutdown,
            server,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a chat message and appends these frames as its worker.
    async fn chat(&self, frames: Vec<Frame>) -> TcpStream {
        let mut stream = self.connect().await;
        let body = r#"{"message":"hi","sessionId":"s"}"#;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            World::agent_path("/chat"),
            self.world.key,
            body.len()
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .unwrap();
        self.world.published().await;
        self.append(frames);
        stream
    }

    fn append(&self, frames: Vec<Frame>) {
        let job = self.world.jobs(Topic::Jobs).remove(0);
        for frame in frames {
            self.world.append_frame(&reply_of(&job), frame);
        }
    }

    async fn stopped(&mut self) {
        let ended = tokio::time::timeout(DEADLINE, self.server.join_next())
            .await
            .expect("the server stops");
        ended.unwrap().unwrap().unwrap();
    }
}

/// Reads to the end of the connection, orderly or not.
async fn read_all(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 1024]);
    let reading = async {
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            text.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(DEADLINE, reading)
        .await
        .expect("the connection ends");
    String::from_utf8(text).unwrap()
}

async fn read_until(stream: &mut TcpStream, needle: &str) {
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    let reading = async {
        while !text.contains(needle) {
            let count = stream.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "the connection ended early: {text}");
            text.push_str(str::from_utf8(&buffer[..count]).unwrap());
        }
    };
    tokio::time::timeout(DEADLINE, reading)
        .await
        .expect("the text arrives");
}

#[tokio::test]
async fn drain_finishes_open_replies_and_accepts_no_connection() {
    let mut running = RunningServer::start(IngressConfig::default()).await;
    let mut frames = reply_frames(&["begin", "end"], ReplyStatus::Completed);
    let rest = frames.split_off(2);
    let mut stream = running.chat(frames).await;
    read_until(&mut stream, "begin").await;
    running.shutdown.cancel();
    let refused = async {
        while TcpStream::connect(running.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, refused)
        .await
        .expect("new connections are refused");
    running.append(rest);
    assert!(read_all(&mut stream).await.ends_with(FINAL_CHUNK));
    running.stopped().await;
}

#[tokio::test]
async fn reply_longer_than_the_drain_is_aborted() {
    let mut running = RunningServer::start(IngressConfig {
        drain_ms: 100,
        ..IngressConfig::default()
    })
    .await;
    let mut frames = reply_frames(&["begin", "end"], ReplyStatus::Completed);
    frames.truncate(2);
    let mut stream = running.chat(frames).await;
    read_until(&mut stream, "begin").await;
    running.shutdown.cancel();
    assert!(!read_all(&mut stream).await.contains(FINAL_CHUNK));
    running.stopped().await;
}

#[tokio::test]
async fn connection_above_the_limit_waits_for_a_closed_one() {
    let config = IngressConfig {
        connections_max: 1,
        header_timeout_ms: 200,
        ..IngressConfig::default()
    };
    let running = RunningServer::start(config).await;
    let mut silent = running.connect().await;
    let mut waiting = running.connect().await;
    waiting
        .write_all(b"GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(read_all(&mut silent).await.is_empty());
    assert!(read_all(&mut waiting).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn connections_of_one_address_leave_room_for_another() {
    let config = IngressConfig {
        connections_max: 4,
        ..IngressConfig::default()
    };
    let running = RunningServer::start(config).await;
    let _silent = [
        running.connect().await,
        running.connect().await,
        running.connect().await,
    ];
    assert!(read_all(&mut running.connect().await).await.is_empty());
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(running.address).await.unwrap();
    other
        .write_all(b"GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(read_all(&mut other).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn reply_longer_than_the_idle_timeout_is_complete() {
    let mut running = RunningServer::start(IngressConfig {
        idle_timeout_ms: 100,
        ..IngressConfig::default()
    })
    .await;
    let mut frames = reply_frames(&["begin", "end"], ReplyStatus::Completed);
    let rest = frames.split_off(2);
    let mut stream = running.chat(frames).await;
    read_until(&mut stream, "begin").await;
    // After the idle time no further request is accepted, and an open reply is finished.
    let mut idle = running.connect().await;
    idle.write_all(b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(read_all(&mut idle).await.starts_with("HTTP/1.1 404"));
    running.append(rest);
    assert!(read_all(&mut stream).await.ends_with(FINAL_CHUNK));
    running.shutdown.cancel();
    running.stopped().await;
}
