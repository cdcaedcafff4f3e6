//! Built-in demo model: answers if no language model is configured, so that a fresh clone works
//! without a network. It is called over HTTP by the same client as any provider, so it exercises
//! the same path.

mod conversation;
mod phrases;
mod product_wishes;
mod protocol;
mod server;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::serve::ListenerExt;
use rand::{RngExt, distr::Alphanumeric};
use secrecy::SecretString;
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Name of the only model that it offers.
pub const DEMO_MODEL: &str = "demo";
/// Time between two words of a streamed reply: fast enough to read along, slow enough to see it
/// stream.
pub const WORD_INTERVAL: Duration = Duration::from_millis(30);
/// Time that a shutdown waits for open connections.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Random characters of the bearer token, about 190 bits.
const TOKEN_CHARS: usize = 32;

/// A running demo model; dropping it stops the server.
pub struct DemoModel {
    address: SocketAddr,
    token: SecretString,
    // Declared before the tasks: dropping it ends the open streams first and then the accept loop.
    stop: DropGuard,
    tasks: JoinSet<()>,
}

impl DemoModel {
    /// Starts listening on a free port of the loopback interface.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let token: String = rand::rng()
            .sample_iter(Alphanumeric)
            .take(TOKEN_CHARS)
            .map(char::from)
            .collect();
        let stop = CancellationToken::new();
        let app = server::router(&token, stop.clone());
        let stopped = stop.clone().cancelled_owned();
        // Words are far smaller than a segment: with Nagle's algorithm each would wait for the
        // acknowledgement of the last.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "demo model connection without TCP_NODELAY");
            }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if let Err(error) = axum::serve(listener, app)
                .with_graceful_shutdown(stopped)
                .await
            {
                tracing::error!(%error, "the demo model stopped");
            }
        });
        Ok(Self {
            address,
            token: token.into(),
            stop: stop.drop_guard(),
            tasks,
        })
    }

    /// Returns the base URL of its OpenAI-compatible API.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the API key of its callers; drawn at each start, so that no other local process can
    /// use it.
    pub const fn token(&self) -> &SecretString {
        &self.token
    }

    /// Ends open replies without a finish reason, which callers treat as a break-off, and stops
    /// listening.
    pub async fn shutdown(self) {
        let Self {
            stop, mut tasks, ..
        } = self;
        drop(stop);
        if timeout(SHUTDOWN_TIMEOUT, tasks.join_next()).await.is_err() {
            tasks.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests;
