//! A proxy that counts preflight requests, which browsers do not report to pages.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
};

use crate::support::background;

/// First bytes of every preflight; a browser waits for a response before it writes the next
/// request.
const PREFLIGHT: &[u8] = b"OPTIONS ";

/// A proxy that runs until the test process ends.
pub(super) struct CountingProxy {
    /// Base URL of the proxy.
    pub(super) url: String,
    preflights: Arc<AtomicUsize>,
}

impl CountingProxy {
    /// Starts a proxy in front of the service at this URL.
    pub(super) fn before(url: &str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let proxy = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            preflights: Arc::default(),
        };
        let (target, preflights) = (
            url.trim_start_matches("http://").to_owned(),
            Arc::clone(&proxy.preflights),
        );
        background().spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.unwrap();
                background().spawn(forward(client, server, Arc::clone(&preflights)));
            }
        });
        proxy
    }

    /// Returns the number of preflights forwarded so far.
    pub(super) fn preflights(&self) -> usize {
        self.preflights.load(Ordering::Relaxed)
    }
}

async fn forward(client: TcpStream, server: TcpStream, preflights: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            preflights.fetch_add(
                usize::from(buffer[..count].starts_with(PREFLIGHT)),
                Ordering::Relaxed,
            );
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
        let _ = to_server.shutdown().await;
    };
    let answering = async {
        let _ = copy(&mut from_server, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::join!(asking, answering);
}
