//! What an operator sees of the workers. Labels are bounded: topic, partition, outcome, kind; never an id or a name.

use prometheus::{
    Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, core::Collector,
};

/// From a token on a fast machine to the longest reply, in seconds.
const SECONDS_BUCKETS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 110.0,
    600.0,
];

const LEFT_OUT_HELP: &str = "Messages that a prompt left out, by whether a summary stood for them";

/// Why records are buried.
const DEAD_LETTER_CLASSES: [&str; 5] = [
    "malformed",
    "unknown-version",
    "attempts-exhausted",
    "reply-text-lost",
    "no-route",
];

/// Labels of what each partition has.
const PARTITION: [&str; 2] = ["topic", "partition"];

/// The workers' metrics; one set per process.
pub struct WorkerMetrics {
    /// Seconds from the publish of a job to its start.
    pub queue_wait: Histogram,
    /// Seconds from the start of the model call to the first text, over all tries.
    pub first_token: Histogram,
    /// Seconds of the whole model call.
    pub model_call: Histogram,
    /// Seconds of a choice by intent.
    pub routing: Histogram,
    /// Choices of a team's agent, by the stage that made them.
    pub routed: IntCounterVec,
    /// Jobs by what became of them.
    pub jobs: IntCounterVec,
    /// Replies by final state.
    pub replies: IntCounterVec,
    /// Tokens, read and written.
    pub tokens: IntCounterVec,
    /// Tool calls by kind of tool and outcome.
    pub tool_calls: IntCounterVec,
    /// Messages that a prompt left out, by whether a summary stood for them.
    pub left_out: IntCounterVec,
    /// Summaries by outcome.
    pub summaries: IntCounterVec,
    /// Jobs that run now.
    pub in_flight: IntGauge,
    /// Jobs that wait in this process, by the group that reads them.
    pub queued: IntGaugeVec,
    /// Records behind the newest one.
    pub lag: IntGaugeVec,
    /// Offsets taken and not finished.
    pub open_offsets: IntGaugeVec,
    /// Repeated tries, by what was tried again.
    pub retries: IntCounterVec,
    /// Records that were buried, by class.
    pub dead_letters: IntCounterVec,
}

impl WorkerMetrics {
    /// Makes and registers them. Errors: they are registered already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let dead_letters = counters("dead_letters_total", "Buried records by class", &["class"])?;
        for class in DEAD_LETTER_CLASSES {
            // A series that is born at one has no increase for an alert to see.
            dead_letters.with_label_values(&[class]);
        }
        Ok(Self {
            queue_wait: add(
                registry,
                seconds(
                    "queue_wait",
                    "Seconds from the publish of a job to its start",
                )?,
            )?,
            first_token: add(
                registry,
                seconds(
                    "model_first_token",
                    "Seconds to the first text of a model call",
                )?,
            )?,
            model_call: add(
                registry,
                seconds("model_call", "Seconds of a whole model call")?,
            )?,
            routing: add(
                registry,
                seconds("routing", "Seconds of a choice by intent")?,
            )?,
            routed: add(
                registry,
                counters(
                    "routed_total",
                    "Choices of a team's agent by stage",
                    &["stage"],
                )?,
            )?,
            jobs: add(
                registry,
                counters("jobs_total", "Jobs by outcome", &["topic", "outcome"])?,
            )?,
            replies: add(
                registry,
                counters("replies_total", "Replies by final state", &["status"])?,
            )?,
            tokens: add(
                registry,
                counters("tokens_total", "Tokens of models", &["kind"])?,
            )?,
            tool_calls: add(
                registry,
                counters(
                    "tool_calls_total",
                    "Tool calls by outcome",
                    &["kind", "outcome"],
                )?,
            )?,
            left_out: add(
                registry,
                counters(
                    "prompt_messages_left_out_total",
                    LEFT_OUT_HELP,
                    &["summarized"],
                )?,
            )?,
            summaries: add(
                registry,
                counters(
                    "summaries_total",
                    "Summaries of conversations",
                    &["outcome"],
                )?,
            )?,
            in_flight: add(
                registry,
                IntGauge::new("switchboard_jobs_in_flight", "Jobs that run now")?,
            )?,
            queued: add(
                registry,
                gauges("jobs_queued", "Jobs that wait in this process", &["group"])?,
            )?,
            lag: add(
                registry,
                gauges(
                    "bus_lag_records",
                    "Records behind the newest one",
                    &PARTITION,
                )?,
            )?,
            open_offsets: add(
                registry,
                gauges(
                    "bus_open_offsets",
                    "Offsets taken and not finished",
                    &PARTITION,
                )?,
            )?,
            retries: add(
                registry,
                counters("retries_total", "Repeated tries", &["of"])?,
            )?,
            dead_letters: add(registry, dead_letters)?,
        })
    }
}

fn seconds(name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
    let options = HistogramOpts::new(format!("switchboard_{name}_seconds"), help);
    Histogram::with_opts(options.buckets(SECONDS_BUCKETS.to_vec()))
}

fn counters(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(format!("switchboard_{name}"), help), labels)
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    IntGaugeVec::new(Opts::new(format!("switchboard_{name}"), help), labels)
}

fn add<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
