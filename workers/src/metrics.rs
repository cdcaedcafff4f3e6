//! Prometheus metrics of the workers. Labels are bounded: topic, partition, outcome, kind; never an
//! id or a name.

use prometheus::{
    Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, core::Collector,
};
use switchboard_backends::bus::BusError;
use switchboard_schemas::topics::Topic;

/// From a token on a fast machine to the longest reply, in seconds.
const SECONDS_BUCKETS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 110.0,
    600.0,
];

const TRUNCATED_HELP: &str = "Messages dropped from prompts, by whether a summary covered them";

const UNKNOWN_FINISH_HELP: &str = "Answers with a finish reason that nobody knows";

const UNREAD_HELP: &str =
    "Consumers replaced because an assigned partition delivered none of its records";

/// Classes of dead letters.
const DEAD_LETTER_CLASSES: [&str; 5] = [
    "malformed",
    "unknown-version",
    "attempts-exhausted",
    "reply-text-lost",
    "no-route",
];

/// Labels of metrics that have one series for each partition.
const PARTITION: [&str; 2] = ["topic", "partition"];

/// Metrics of the workers; one set per process.
pub struct WorkerMetrics {
    /// Seconds from the publish of a job to its start.
    pub queue_wait: Histogram,
    /// Seconds from the start of the model call to the first text, over all retries.
    pub first_token: Histogram,
    /// Seconds of the whole model call.
    pub model_call: Histogram,
    /// Seconds of a routing decision by intent.
    pub routing: Histogram,
    /// Routing decisions by the stage that made them.
    pub routed: IntCounterVec,
    /// Runs of jobs by topic and outcome.
    pub jobs: IntCounterVec,
    /// Replies by final state.
    pub replies: IntCounterVec,
    /// Prompt and completion tokens.
    pub tokens: IntCounterVec,
    /// Answers that ended with a finish reason that nobody knows.
    pub unknown_finishes: IntCounterVec,
    /// Tool calls by kind of tool and outcome.
    pub tool_calls: IntCounterVec,
    /// Messages dropped from prompts, by whether a summary covered them.
    pub left_out: IntCounterVec,
    /// Summaries of conversations by outcome.
    pub summaries: IntCounterVec,
    /// Jobs that run now.
    pub in_flight: IntGauge,
    /// Jobs that wait in this process, by consumer group.
    pub queued: IntGaugeVec,
    /// Records behind the newest one, by partition.
    pub lag: IntGaugeVec,
    /// Offsets taken and not finished, by partition.
    pub open_offsets: IntGaugeVec,
    /// Partitions that had records and delivered none, by topic.
    pub unread_partitions: IntCounterVec,
    /// Retries of calls by kind.
    pub retries: IntCounterVec,
    /// Dead letters by class.
    pub dead_letters: IntCounterVec,
}

impl WorkerMetrics {
    /// Creates and registers the metrics. Fails if they are registered already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let dead_letters = new_counters("dead_letters_total", "Dead letters by class", &["class"])?;
        for class in DEAD_LETTER_CLASSES {
            // A series that is created at 1 shows no increase to an alert.
            dead_letters.with_label_values(&[class]);
        }
        let unread_partitions =
            new_counters("bus_unread_partitions_total", UNREAD_HELP, &["topic"])?;
        for topic in [Topic::Route, Topic::Jobs, Topic::JobsRetry] {
            unread_partitions.with_label_values(&[topic.name()]);
        }
        let histogram = |name, help| register_metric(registry, new_histogram(name, help)?);
        let counters = |name, help, labels: &[&str]| {
            register_metric(registry, new_counters(name, help, labels)?)
        };
        let gauges = |name, help, labels: &[&str]| {
            register_metric(registry, new_gauges(name, help, labels)?)
        };
        Ok(Self {
            queue_wait: histogram(
                "queue_wait",
                "Seconds from the publish of a job to its start",
            )?,
            first_token: histogram(
                "model_first_token",
                "Seconds to the first text of a model call",
            )?,
            model_call: histogram("model_call", "Seconds of a whole model call")?,
            routing: histogram("routing", "Seconds of a routing decision by intent")?,
            routed: counters("routed_total", "Routing decisions by stage", &["stage"])?,
            jobs: counters("jobs_total", "Jobs by outcome", &["topic", "outcome"])?,
            replies: counters("replies_total", "Replies by final state", &["status"])?,
            tokens: counters("tokens_total", "Tokens of models", &["kind"])?,
            unknown_finishes: counters("unknown_finish_reasons_total", UNKNOWN_FINISH_HELP, &[])?,
            tool_calls: counters(
                "tool_calls_total",
                "Tool calls by outcome",
                &["kind", "outcome"],
            )?,
            left_out: counters(
                "prompt_messages_left_out_total",
                TRUNCATED_HELP,
                &["summarized"],
            )?,
            summaries: counters(
                "summaries_total",
                "Summaries of conversations",
                &["outcome"],
            )?,
            in_flight: register_metric(
                registry,
                IntGauge::new("switchboard_jobs_in_flight", "Jobs that run now")?,
            )?,
            queued: gauges("jobs_queued", "Jobs that wait in this process", &["group"])?,
            lag: gauges(
                "bus_lag_records",
                "Records behind the newest one",
                &PARTITION,
            )?,
            open_offsets: gauges(
                "bus_open_offsets",
                "Offsets taken and not finished",
                &PARTITION,
            )?,
            unread_partitions: register_metric(registry, unread_partitions)?,
            retries: counters("retries_total", "Retries by kind", &["of"])?,
            dead_letters: register_metric(registry, dead_letters)?,
        })
    }

    /// Counts the end of a consumer if it owned a partition that it could not read.
    pub(crate) fn count_unread_partition(&self, error: &BusError) {
        if let BusError::PartitionUnread(partition) = error {
            self.unread_partitions
                .with_label_values(&[partition.topic.name()])
                .inc();
        }
    }
}

fn new_histogram(name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
    let options = HistogramOpts::new(format!("switchboard_{name}_seconds"), help);
    Histogram::with_opts(options.buckets(SECONDS_BUCKETS.to_vec()))
}

fn new_counters(
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(format!("switchboard_{name}"), help), labels)
}

fn new_gauges(name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    IntGaugeVec::new(Opts::new(format!("switchboard_{name}"), help), labels)
}

fn register_metric<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
