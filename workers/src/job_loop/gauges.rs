//! Gauges of one job loop. Loops of one process share the metrics; each loop sets only the
//! series with its own labels.

use std::{collections::HashSet, sync::Arc};

use prometheus::{IntGauge, IntGaugeVec};
use switchboard_backends::bus::PartitionId;

use crate::metrics::WorkerMetrics;

pub(super) struct LoopGauges {
    queued: IntGauge,
    lag: PartitionGauge,
    open_offsets: PartitionGauge,
}

impl LoopGauges {
    /// Creates the gauges of the loop that reads as consumer group `group`.
    pub(super) fn new(metrics: &Arc<WorkerMetrics>, group: &str) -> Self {
        Self {
            queued: metrics.queued.with_label_values(&[group]),
            lag: PartitionGauge::new(metrics.lag.clone()),
            open_offsets: PartitionGauge::new(metrics.open_offsets.clone()),
        }
    }

    /// Sets the number of jobs that wait in this loop.
    pub(super) fn set_queued(&self, jobs: usize) {
        self.queued.set(i64::try_from(jobs).unwrap_or(i64::MAX));
    }

    /// Sets the number of records behind the newest one, for each owned partition.
    pub(super) fn set_lag(&mut self, of: impl IntoIterator<Item = (PartitionId, u64)>) {
        self.lag.set_values(
            of.into_iter()
                .map(|(partition, lag)| (partition, i64::try_from(lag).unwrap_or(i64::MAX))),
        );
    }

    /// Sets the number of offsets that were taken and are not finished, for each owned partition.
    pub(super) fn set_open_offsets(&mut self, of: impl IntoIterator<Item = (PartitionId, usize)>) {
        let of = of
            .into_iter()
            .map(|(partition, open)| (partition, i64::try_from(open).unwrap_or(i64::MAX)));
        self.open_offsets.set_values(of);
    }
}

/// Gauge with one value for each owned partition; series of revoked partitions are removed.
struct PartitionGauge {
    gauge: IntGaugeVec,
    labeled: HashSet<PartitionId>,
}

impl PartitionGauge {
    fn new(gauge: IntGaugeVec) -> Self {
        Self {
            gauge,
            labeled: HashSet::new(),
        }
    }

    fn set_values(&mut self, values: impl Iterator<Item = (PartitionId, i64)>) {
        let before = std::mem::take(&mut self.labeled);
        for (partition, value) in values {
            let number = partition.number.to_string();
            self.gauge
                .with_label_values(&[partition.topic.name(), &number])
                .set(value);
            self.labeled.insert(partition);
        }
        for gone in before.difference(&self.labeled) {
            // A series that does not exist needs no removal.
            let _ = self
                .gauge
                .remove_label_values(&[gone.topic.name(), &gone.number.to_string()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::Registry;
    use switchboard_schemas::topics::Topic;

    use super::*;

    fn at(topic: Topic, number: u32) -> PartitionId {
        PartitionId { topic, number }
    }

    fn series(metrics: &WorkerMetrics) -> HashSet<(String, String, i64)> {
        let families = prometheus::core::Collector::collect(&metrics.lag);
        let all = families.iter().flat_map(|family| family.get_metric());
        let label = |metric: &prometheus::proto::Metric, name: &str| {
            metric
                .get_label()
                .iter()
                .find(|label| label.name() == name)
                .unwrap()
                .value()
                .to_owned()
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the values of this test are small"
        )]
        let value = |metric: &prometheus::proto::Metric| metric.get_gauge().get_value() as i64;
        all.map(|metric| {
            (
                label(metric, "topic"),
                label(metric, "partition"),
                value(metric),
            )
        })
        .collect()
    }

    fn expected(of: &[(Topic, u32, i64)]) -> HashSet<(String, String, i64)> {
        of.iter()
            .map(|(topic, number, lag)| (topic.name().to_owned(), number.to_string(), *lag))
            .collect()
    }

    #[test]
    fn loops_of_one_process_keep_separate_series() {
        let metrics = Arc::new(WorkerMetrics::register(&Registry::new()).unwrap());
        let (mut jobs, mut route) = (
            LoopGauges::new(&metrics, "inference"),
            LoopGauges::new(&metrics, "routing"),
        );
        jobs.set_queued(3);
        jobs.set_lag([(at(Topic::Jobs, 0), 7), (at(Topic::Jobs, 1), 8)]);
        route.set_queued(0);
        route.set_lag([(at(Topic::Route, 0), 1)]);
        assert_eq!(metrics.queued.with_label_values(&["inference"]).get(), 3);
        assert_eq!(
            series(&metrics),
            expected(&[
                (Topic::Jobs, 0, 7),
                (Topic::Jobs, 1, 8),
                (Topic::Route, 0, 1)
            ])
        );
    }

    #[test]
    fn revoked_partition_has_no_gauge() {
        let metrics = Arc::new(WorkerMetrics::register(&Registry::new()).unwrap());
        let mut gauges = LoopGauges::new(&metrics, "inference");
        gauges.set_lag([(at(Topic::Jobs, 0), 7), (at(Topic::Jobs, 1), 8)]);
        gauges.set_lag([(at(Topic::Jobs, 1), 2)]);
        assert_eq!(series(&metrics), expected(&[(Topic::Jobs, 1, 2)]));
    }
}
