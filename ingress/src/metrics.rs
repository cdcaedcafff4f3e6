//! Prometheus metrics of the ingress. Labels are bounded: route templates, methods, statuses and
//! outcomes, never ids.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    core::Collector,
};

const FIRST_BYTE_BUCKETS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0,
];

#[derive(Clone)]
pub(crate) struct IngressMetrics {
    /// Seconds from the arrival of a request to the first byte of its reply.
    pub(crate) first_byte_seconds: Histogram,
    /// Replies that a client waits for or reads.
    pub(crate) replies_open: IntGauge,
    /// Finished transfers of replies, by outcome.
    pub(crate) replies: IntCounterVec,
    /// Gaps that were filled from the reply log.
    pub(crate) gaps_repaired: IntCounter,
    /// Switches of slow clients to reading from the log.
    pub(crate) replies_pulled: IntCounter,
    /// Replies handed to another worker.
    pub(crate) takeovers: IntCounter,
    /// Envelopes without a waiting request.
    pub(crate) envelopes_unclaimed: IntCounter,
    /// Publishes that failed or timed out.
    pub(crate) publishes_failed: IntCounter,
    /// Requests rejected by a rate limit, by its name.
    pub(crate) rate_limited: IntCounterVec,
    /// Requests that were counted locally, because the shared limiter was unavailable.
    pub(crate) limiter_fallbacks: IntCounter,
    pub(crate) connections_open: IntGauge,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
}

impl IngressMetrics {
    /// Creates and registers the metrics. Fails if they are registered already.
    pub(crate) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let metrics = Self::new()?;
        let collectors: [Box<dyn Collector>; 13] = [
            Box::new(metrics.first_byte_seconds.clone()),
            Box::new(metrics.replies_open.clone()),
            Box::new(metrics.replies.clone()),
            Box::new(metrics.gaps_repaired.clone()),
            Box::new(metrics.replies_pulled.clone()),
            Box::new(metrics.takeovers.clone()),
            Box::new(metrics.envelopes_unclaimed.clone()),
            Box::new(metrics.publishes_failed.clone()),
            Box::new(metrics.rate_limited.clone()),
            Box::new(metrics.limiter_fallbacks.clone()),
            Box::new(metrics.connections_open.clone()),
            Box::new(metrics.requests.clone()),
            Box::new(metrics.request_seconds.clone()),
        ];
        collectors
            .into_iter()
            .try_for_each(|collector| registry.register(collector))?;
        Ok(metrics)
    }

    /// Records a request when its response starts.
    pub(crate) fn record_request(
        &self,
        route: &str,
        method: &str,
        status: u16,
        duration: Duration,
    ) {
        self.requests
            .with_label_values(&[route, method, &status.to_string()])
            .inc();
        self.request_seconds
            .with_label_values(&[route])
            .observe(duration.as_secs_f64());
    }

    fn new() -> prometheus::Result<Self> {
        Ok(Self {
            first_byte_seconds: Histogram::with_opts(
                HistogramOpts::new(
                    "switchboard_reply_first_byte_seconds",
                    "Seconds from the arrival of a chat request to the first byte of its reply.",
                )
                .buckets(FIRST_BYTE_BUCKETS.to_vec()),
            )?,
            replies_open: new_gauge(
                "switchboard_replies_open",
                "Replies whose client waits or reads.",
            )?,
            replies: IntCounterVec::new(
                Opts::new(
                    "switchboard_transfers_total",
                    "Transfers of replies by outcome.",
                ),
                &["outcome"],
            )?,
            gaps_repaired: new_counter(
                "switchboard_reply_gaps_repaired_total",
                "Gaps filled from the reply log.",
            )?,
            replies_pulled: new_counter(
                "switchboard_replies_pulled_total",
                "Replies read from the log for a slow client.",
            )?,
            takeovers: new_counter(
                "switchboard_reply_takeovers_total",
                "Replies handed to another worker.",
            )?,
            envelopes_unclaimed: new_counter(
                "switchboard_envelopes_unclaimed_total",
                "Envelopes without a waiting request.",
            )?,
            publishes_failed: new_counter(
                "switchboard_publishes_failed_total",
                "Publishes not acknowledged in time.",
            )?,
            rate_limited: IntCounterVec::new(
                Opts::new(
                    "switchboard_rate_limited_total",
                    "Requests rejected by a rate limit, by its name.",
                ),
                &["bucket"],
            )?,
            limiter_fallbacks: new_counter(
                "switchboard_limiter_fallbacks_total",
                "Requests counted by one process alone while the shared limiter is unavailable.",
            )?,
            connections_open: new_gauge(
                "switchboard_connections_open",
                "Open client connections.",
            )?,
            requests: IntCounterVec::new(
                Opts::new(
                    "switchboard_http_requests_total",
                    "Requests by route template, method and status.",
                ),
                &["route", "method", "status"],
            )?,
            request_seconds: HistogramVec::new(
                HistogramOpts::new(
                    "switchboard_http_request_seconds",
                    "Seconds until a response begins.",
                )
                .buckets(FIRST_BYTE_BUCKETS.to_vec()),
                &["route"],
            )?,
        })
    }
}

fn new_counter(name: &str, help: &str) -> prometheus::Result<IntCounter> {
    IntCounter::new(name, help)
}

fn new_gauge(name: &str, help: &str) -> prometheus::Result<IntGauge> {
    IntGauge::new(name, help)
}
