//! The private port: liveness, readiness and metrics.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use serde_json::{Map, Value, json};
use switchboard_backends::Backends;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

/// Timeout of the check of one dependency.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

/// Time after a request for `/readyz` for which another one is expected. Probes come every ten
/// seconds or more often.
const WATCHED_FOR: Duration = Duration::from_secs(30);

/// Readiness of the process for traffic. It is not ready while starting and draining. An outage of
/// a dependency does not make it unready, so that clients receive our own 503 with `Retry-After`
/// instead of the load balancer's.
#[derive(Default)]
pub(crate) struct ReadinessState {
    phase: AtomicU8,
    asked_at: Mutex<Option<Instant>>,
}

impl ReadinessState {
    /// Marks the process as ready for traffic.
    pub(crate) fn set_ready(&self) {
        self.phase.store(READY, Ordering::Release);
    }

    /// Marks the process as stopping.
    pub(crate) fn set_draining(&self) {
        self.phase.store(DRAINING, Ordering::Release);
    }

    /// Returns true if a load balancer or another probe asked recently, and may soon ask again.
    pub(crate) fn is_watched(&self) -> bool {
        self.asked_at
            .lock()
            .is_some_and(|asked_at| asked_at.elapsed() < WATCHED_FOR)
    }

    /// Returns the name of the phase, for a probe that asked for it now.
    fn answer_probe(&self) -> &'static str {
        *self.asked_at.lock() = Some(Instant::now());
        match self.phase.load(Ordering::Acquire) {
            STARTING => "starting",
            READY => "ready",
            _ => "draining",
        }
    }
}

/// State behind the routes of the private port.
pub(crate) struct OpsServer {
    pub(crate) readiness: Arc<ReadinessState>,
    /// Backends, for their health checks.
    pub(crate) backends: Backends,
    /// Metrics of all roles.
    pub(crate) registry: Registry,
    /// Facts for operators: profile, role, model.
    pub(crate) facts: Map<String, Value>,
}

impl OpsServer {
    /// Serves requests on `listener` until `stop` is cancelled.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(get_readiness))
            .route("/metrics", get(get_metrics))
            .with_state(Arc::new(self));
        axum::serve(listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await
            .context("private port")
    }
}

async fn get_readiness(State(ops): State<Arc<OpsServer>>) -> Response {
    let status = ops.readiness.answer_probe();
    let mut body = ops.facts.clone();
    body.insert("status".into(), status.into());
    body.insert(
        "dependencies".into(),
        check_dependencies(&ops.backends).await,
    );
    let code = if status == "ready" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(body)).into_response()
}

async fn check_dependencies(backends: &Backends) -> Value {
    let (bus, relay, store, catalog, products, limiter, accounts) = tokio::join!(
        timeout(CHECK_TIMEOUT, backends.bus.check()),
        timeout(CHECK_TIMEOUT, backends.relay.check()),
        timeout(CHECK_TIMEOUT, backends.store.check()),
        timeout(CHECK_TIMEOUT, backends.catalog.check()),
        timeout(CHECK_TIMEOUT, backends.products.check()),
        timeout(CHECK_TIMEOUT, backends.limiter.check()),
        timeout(CHECK_TIMEOUT, backends.accounts.check()),
    );
    json!({
        "bus": status_name(matches!(bus, Ok(Ok(())))),
        "relay": status_name(matches!(relay, Ok(Ok(())))),
        "store": status_name(matches!(store, Ok(Ok(())))),
        "catalog": status_name(matches!(catalog, Ok(Ok(())))),
        "products": status_name(matches!(products, Ok(Ok(())))),
        "limiter": status_name(matches!(limiter, Ok(Ok(())))),
        "accounts": status_name(matches!(accounts, Ok(Ok(())))),
    })
}

const fn status_name(ok: bool) -> &'static str {
    if ok { "ok" } else { "unavailable" }
}

async fn get_metrics(State(ops): State<Arc<OpsServer>>) -> Response {
    match TextEncoder::new().encode_to_string(&ops.registry.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot encode metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
