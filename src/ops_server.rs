//! The private port: is it alive, should it get traffic, what does it count.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus::{Registry, TextEncoder};
use serde_json::{Map, Value, json};
use switchboard_backends::Backends;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long one dependency may take to answer a readiness check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

/// Whether a balancer should send traffic: not while starting, not while draining. A dependency's outage does not make
/// the process unready, so that clients get our own 503 with its `Retry-After` and not the balancer's.
#[derive(Default)]
pub(crate) struct Readiness(AtomicU8);

impl Readiness {
    /// Everything runs.
    pub(crate) fn ready(&self) {
        self.0.store(READY, Ordering::Release);
    }

    /// The process is about to stop.
    pub(crate) fn drain(&self) {
        self.0.store(DRAINING, Ordering::Release);
    }

    fn name(&self) -> &'static str {
        match self.0.load(Ordering::Acquire) {
            STARTING => "starting",
            READY => "ready",
            _ => "draining",
        }
    }
}

/// What the private port tells.
pub(crate) struct Ops {
    /// Whether to send traffic.
    pub(crate) readiness: Arc<Readiness>,
    /// The dependencies.
    pub(crate) backends: Backends,
    /// What is counted.
    pub(crate) registry: Registry,
    /// Facts for people: profile, role, model.
    pub(crate) facts: Map<String, Value>,
}

impl Ops {
    /// Answers on `listener` until told to stop.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(Arc::new(self));
        axum::serve(listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await
            .context("private port")
    }
}

async fn readyz(State(ops): State<Arc<Ops>>) -> Response {
    let status = ops.readiness.name();
    let mut body = ops.facts.clone();
    body.insert("status".into(), status.into());
    body.insert("dependencies".into(), dependencies(&ops.backends).await);
    let code = if status == "ready" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(body)).into_response()
}

async fn dependencies(backends: &Backends) -> Value {
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
        "bus": state(matches!(bus, Ok(Ok(())))),
        "relay": state(matches!(relay, Ok(Ok(())))),
        "store": state(matches!(store, Ok(Ok(())))),
        "catalog": state(matches!(catalog, Ok(Ok(())))),
        "products": state(matches!(products, Ok(Ok(())))),
        "limiter": state(matches!(limiter, Ok(Ok(())))),
        "accounts": state(matches!(accounts, Ok(Ok(())))),
    })
}

const fn state(ok: bool) -> &'static str {
    if ok { "ok" } else { "unavailable" }
}

async fn metrics(State(ops): State<Arc<Ops>>) -> Response {
    match TextEncoder::new().encode_to_string(&ops.registry.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be encoded");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
