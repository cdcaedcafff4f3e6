//! The accept loop. The one of axum has no header timeout, does not set TCP_NODELAY and waits for
//! streams without limit.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{Router, body::Body};
use http::{Request, Version};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use secrecy::SecretString;
use switchboard_backends::{Backends, catalog::cache::CatalogCache};
use switchboard_schemas::{
    ids::{AgentId, IngressId},
    secret::InstallationSecret,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tower::ServiceExt;

mod address_limit;
mod connection_timer;
pub(crate) mod router;
mod socket;
#[cfg(test)]
mod tests;

use self::{
    address_limit::AddressConnections,
    connection_timer::{ConnectionTimer, TimerExpiry},
    router::{admin_router, public_router, router},
    socket::ClientSocket,
};
use crate::{
    config::IngressConfig,
    http::{ForwardingWarning, PeerAddress},
    limits::RateLimits,
    metrics::IngressMetrics,
    state::{
        AddressCheck, AppState, ProviderTest, StateFields,
        apply_context::ApplyContext,
        passwords::PasswordHashing,
        pending_replies::{self, PendingReplies},
        recent_uses::{self, RecentUses},
        refused_publishes::{self, RefusedPublishes},
        upload_bounds::UploadBounds,
    },
};

/// Read buffer of an HTTP/1.1 connection, which limits the size of a request head.
const HTTP1_BUFFER_BYTES_MAX: usize = 16 << 10;
const HTTP2_HEADER_LIST_BYTES_MAX: u32 = 16 << 10;
const HTTP2_SEND_BUFFER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of streams that were reset before they were handled; more of them close the
/// connection.
const HTTP2_PENDING_RESETS_MAX: usize = 20;
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause after a failed accept, which would fail again at once while no file descriptors are free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The public API and the admin API of one process.
pub struct Ingress {
    state: AppState,
    admin_listener: Option<TcpListener>,
    listening: TaskTracker,
    stop_listening: DropGuard,
}

impl Ingress {
    /// Opens the reply channel of this process and registers its metrics.
    ///
    /// # Errors
    /// Fails if a setting is invalid or the metrics are already registered.
    pub async fn new(
        backends: Backends,
        catalog: CatalogCache,
        secret: InstallationSecret,
        admin_token: Option<SecretString>,
        config: IngressConfig,
        registry: &prometheus::Registry,
    ) -> anyhow::Result<Self> {
        let validation_errors = config.validation_errors();
        anyhow::ensure!(
            validation_errors.is_empty(),
            "{}",
            validation_errors.join("; ")
        );
        let metrics = IngressMetrics::register(registry)?;
        let (listening, stop) = (TaskTracker::new(), CancellationToken::new());
        let state = AppState::new(StateFields {
            apply: ApplyContext::new(&backends, secret.clone())
                .with_ceilings(config.ceilings.clone()),
            limits: RateLimits::new(
                Arc::clone(&backends.limiter),
                secret.clone(),
                &config,
                metrics.clone(),
            ),
            recent_uses: RecentUses::default(),
            pending_replies: PendingReplies::new(config.reply_queue_frames_max, metrics.clone()),
            refused_publishes: RefusedPublishes::default(),
            ingress_id: IngressId::random(),
            backends,
            catalog,
            secret,
            admin_token,
            config,
            metrics,
            background: listening.clone(),
            aborting: CancellationToken::new(),
            provider_test: OnceLock::new(),
            demo_agent: OnceLock::new(),
            passwords: PasswordHashing::default(),
            uploads: UploadBounds::default(),
        });
        listen_for_replies(&state, &listening, stop.clone()).await;
        watch_limiter(&state, &listening, stop.clone());
        write_recent_uses(&state, &listening, stop.clone());
        void_refused_publishes(&state, &listening, stop.clone());
        Ok(Self {
            state,
            admin_listener: None,
            listening,
            stop_listening: stop.drop_guard(),
        })
    }

    /// Serves the admin API and the dashboard only on `listener`, no longer on the public port.
    #[must_use]
    pub fn with_admin_listener(self, listener: TcpListener) -> Self {
        Self {
            admin_listener: Some(listener),
            ..self
        }
    }

    /// Enables the demo page with the widget of this agent.
    #[must_use]
    pub fn with_demo_page(self, agent: AgentId) -> Self {
        let _ = self.state.demo_agent.set(agent);
        self
    }

    /// Enables tests of providers from the dashboard.
    #[must_use]
    pub fn with_provider_test(self, test: ProviderTest) -> Self {
        let _ = self.state.provider_test.set(test);
        self
    }

    /// Enables the check of addresses that are saved.
    #[must_use]
    pub fn with_address_check(self, check: AddressCheck) -> Self {
        let _ = self.state.apply.address_check.set(check);
        self
    }

    /// Returns all routes, for tests or a custom server.
    pub fn router(&self) -> Router {
        router(self.state.clone())
    }

    /// Returns the state that the handlers share.
    #[cfg(test)]
    pub(crate) const fn state(&self) -> &AppState {
        &self.state
    }

    /// Serves until `shutdown`, then lets open replies finish within the configured drain time and
    /// aborts the others.
    ///
    /// # Errors
    /// Never fails while serving; errors of one client do not affect others.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let Self {
            state,
            admin_listener,
            listening,
            stop_listening,
        } = self;
        match admin_listener {
            Some(admin_listener) => {
                let public = serve_port(&state, public_router(state.clone()), listener, &shutdown);
                let admin = serve_port(
                    &state,
                    admin_router(state.clone()),
                    admin_listener,
                    &shutdown,
                );
                tokio::join!(public, admin);
            }
            None => serve_port(&state, router(state.clone()), listener, &shutdown).await,
        }
        drop(stop_listening);
        listening.close();
        listening.wait().await;
        Ok(())
    }
}

/// Serves one port. Each port has its own connection limit, so that visitors cannot block the admin
/// port.
async fn serve_port(
    state: &AppState,
    router: Router,
    listener: TcpListener,
    shutdown: &CancellationToken,
) {
    let server = Arc::new(PortServer {
        router,
        http: http_builder(&state.config),
        state: state.clone(),
        draining: shutdown.clone(),
        forwarding: ForwardingWarning::default(),
    });
    let connections = TaskTracker::new();
    shutdown
        .run_until_cancelled(accept_connections(&server, &listener, &connections))
        .await;
    drop(listener);
    drain_connections(&server, &connections).await;
}

struct PortServer {
    router: Router,
    http: Builder<TokioExecutor>,
    state: AppState,
    draining: CancellationToken,
    forwarding: ForwardingWarning,
}

/// Opens the reply channel before the first job is published. If Redis is unavailable, log and
/// store are read instead.
async fn listen_for_replies(state: &AppState, tasks: &TaskTracker, stop: CancellationToken) {
    let (relay, id) = (Arc::clone(&state.backends.relay), state.ingress_id.clone());
    let opened = relay.subscribe(&id).await.ok();
    let pending = Arc::clone(&state.pending_replies);
    tasks.spawn(async move {
        stop.run_until_cancelled(pending_replies::receive_envelopes(
            relay, id, pending, opened,
        ))
        .await;
    });
}

fn watch_limiter(state: &AppState, tasks: &TaskTracker, stop: CancellationToken) {
    let state = state.clone();
    tasks.spawn(async move {
        stop.run_until_cancelled(state.limits.watch()).await;
    });
}

fn void_refused_publishes(state: &AppState, tasks: &TaskTracker, stop: CancellationToken) {
    let state = state.clone();
    tasks.spawn(async move {
        stop.run_until_cancelled(refused_publishes::void_periodically(&state))
            .await;
    });
}

fn write_recent_uses(state: &AppState, tasks: &TaskTracker, stop: CancellationToken) {
    let state = state.clone();
    tasks.spawn(async move {
        stop.run_until_cancelled(recent_uses::write_periodically(&state))
            .await;
        recent_uses::write_remaining(&state).await;
    });
}

fn http_builder(config: &IngressConfig) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.header_timeout_ms))
        .max_buf_size(HTTP1_BUFFER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.http2_streams_max)
        .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS_MAX)
        .max_header_list_size(HTTP2_HEADER_LIST_BYTES_MAX)
        .max_send_buf_size(HTTP2_SEND_BUFFER_BYTES_MAX)
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    builder
}

async fn accept_connections(
    server: &Arc<PortServer>,
    listener: &TcpListener,
    connections: &TaskTracker,
) {
    let places = Arc::new(Semaphore::new(server.state.config.connections_max));
    let addresses = Arc::new(AddressConnections::new(&server.state.config));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Some(admitted) = addresses.admit(peer.ip()) else {
                    continue;
                };
                let server = Arc::clone(server);
                connections.spawn(async move {
                    let open = server.state.metrics.connections_open.clone();
                    open.inc();
                    server.serve_connection(stream, peer).await;
                    open.dec();
                    drop((place, admitted));
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn drain_connections(server: &PortServer, connections: &TaskTracker) {
    connections.close();
    let budget = Duration::from_millis(server.state.config.drain_ms);
    if tokio::time::timeout(budget, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.len(),
            "drain timeout reached, open replies aborted"
        );
        server.state.aborting.cancel();
        connections.wait().await;
    }
}

impl PortServer {
    async fn serve_connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let socket = ClientSocket::configure(stream, &self.state.config);
        if self.serve_until_closed(&socket, peer).await {
            socket.close_orderly();
            self.draining
                .run_until_cancelled(socket.discard_unread())
                .await;
        }
    }

    /// Serves requests until the connection ends; returns true if it ended orderly.
    async fn serve_until_closed(self: &Arc<Self>, socket: &ClientSocket, peer: SocketAddr) -> bool {
        let requests = Notify::new();
        let service = service_fn(|request: Request<Incoming>| {
            requests.notify_one();
            if request.version() == Version::HTTP_10 {
                socket.reset_unless_closed();
            }
            Arc::clone(self).serve_request(request, peer)
        });
        let mut connection = pin!(
            self.http
                .serve_connection(TokioIo::new(socket.clone()), service)
        );
        let mut timer = ConnectionTimer::start(&self.state.config);
        let mut draining = false;
        loop {
            tokio::select! {
                result = connection.as_mut() => {
                    if let Err(error) = &result {
                        tracing::debug!(%error, "connection ended");
                    }
                    return result.is_ok();
                }
                () = requests.notified() => timer.restart(),
                expiry = timer.wait_for_expiry() => match expiry {
                    TimerExpiry::Leave => connection.as_mut().graceful_shutdown(),
                    TimerExpiry::Cut => return false,
                },
                () = self.draining.cancelled(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                // Dropping the connection sends no final chunk, so that clients can detect a
                // truncated reply.
                () = self.state.aborting.cancelled() => return false,
            }
        }
    }

    async fn serve_request(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<axum::response::Response, std::convert::Infallible> {
        let trusted = &self.state.config.trusted_proxies;
        self.forwarding.check(peer.ip(), request.headers(), trusted);
        request.extensions_mut().insert(PeerAddress(peer.ip()));
        self.router.clone().oneshot(request.map(Body::new)).await
    }
}
