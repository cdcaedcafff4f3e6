//! Faults of `tests/FAULTS.md` that `make chaos` can inject, by number.

use std::time::Duration;

use futures::future::join_all;

use super::{
    cluster::{ChaosCluster, Observation},
    faults::{Fault, PlannedFault},
    measurements::Measurement::{
        self, CutContinuableReplies, CutReplies, FirstByteSeconds, HungRequests,
        MemoryGrowthMegabytes, PauseSeconds, RecoverySeconds, RefusalSeconds, Refusals,
        RepeatedCallsPercent,
    },
};
use crate::support::report;

/// Memory that a process may grow by, in megabytes.
const MEMORY_GROWTH_MAX: f64 = 50.0;
/// Time for which clients go on after the last fault. A recovery that takes longer is reported as
/// a lower bound. It is measured from the moment when the last subject works again
/// (`PastFault::ended`).
const TIME_AFTER: Duration = Duration::from_secs(30);

/// Upper limits by measurement.
type Targets = &'static [(Measurement, f64)];

/// A fault, or several at a time, with its targets.
#[derive(Clone)]
pub(super) struct NamedFault {
    /// Number in the table.
    pub(super) number: &'static str,
    description: &'static str,
    faults: Vec<PlannedFault>,
    targets: Targets,
}

impl NamedFault {
    /// Injects the fault under load, reports the measurements, and checks all invariants and
    /// counts. Times depend on the machine and are only reported.
    pub(super) async fn inject_and_check(&self, cluster: &ChaosCluster) {
        let injected = self.faults.iter().map(|fault| fault.inject(cluster));
        let observation = cluster.observe(join_all(injected), TIME_AFTER).await;
        let checks = cluster.check(&observation).await;
        let (checked, violations) = checks.totals();
        report(&format!(
            "{} {}: {checked} checks, {violations} violations",
            self.number, self.description
        ));
        let missed = self.report_measurements(&observation);
        checks.assert_no_violation();
        assert!(missed.is_empty(), "{}: {missed:?}", self.number);
        cluster.assert_totals_equal_a_recount(&observation).await;
    }

    /// Reports the measurements beside their targets. Returns the counts that missed theirs.
    fn report_measurements(&self, observation: &Observation) -> Vec<String> {
        let general = [
            (HungRequests, 0.0),
            (MemoryGrowthMegabytes, MEMORY_GROWTH_MAX),
        ];
        let mut missed = vec![];
        for (measurement, limit) in self.targets.iter().chain(&general) {
            let value = measurement.measure(observation);
            let is_lower_bound =
                value.is_some_and(|value| measurement.is_lower_bound(value, observation));
            let is_missed = value.is_some_and(|value| value > *limit);
            let outcome = match (is_missed, is_lower_bound) {
                (true, _) => "MISSED",
                (false, true) => "unknown",
                (false, false) => "met",
            };
            let described = measurement.describe(observation);
            let line = format!("{described}, at most {limit}: {outcome}");
            report(&format!("  {line}"));
            if is_missed && measurement.is_count() {
                missed.push(line);
            }
        }
        missed
    }
}

/// Returns all faults that can be injected.
pub(super) fn named_faults() -> Vec<NamedFault> {
    [
        worker_faults(),
        ingress_faults(),
        broker_faults(),
        redis_faults(),
        link_faults(),
        other_faults(),
    ]
    .concat()
}

fn worker_faults() -> Vec<NamedFault> {
    vec![
        named_fault(
            "F2",
            "a worker is killed; its model continues in one organization and not in the other",
            vec![at(5, Fault::KilledWorker, 0, 2)],
            &[
                (CutContinuableReplies, 0.0),
                (FirstByteSeconds, 5.0),
                (PauseSeconds, 5.0),
                (Refusals, 0.0),
            ],
        ),
        named_fault(
            "F4",
            "a worker is frozen for 30 s",
            vec![at(5, Fault::SuspendedWorker, 0, 30)],
            &[
                (CutContinuableReplies, 0.0),
                (FirstByteSeconds, 5.0),
                (PauseSeconds, 5.0),
                (Refusals, 0.0),
            ],
        ),
        named_fault(
            "F5",
            "all workers are drained one after the other, twice",
            staggered(Fault::StoppedWorker, 6, 8),
            &[
                (CutReplies, 0.0),
                (Refusals, 0.0),
                (RepeatedCallsPercent, 0.1),
            ],
        ),
        named_fault(
            "F12",
            "ten workers are killed and restarted in a minute",
            staggered(Fault::KilledWorker, 10, 6),
            &[(CutContinuableReplies, 0.0), (Refusals, 0.0)],
        ),
        named_fault(
            "F42",
            "a worker gets a tenth of its processor time for 30 s",
            vec![at(5, Fault::ThrottledWorker, 0, 30)],
            &[(CutContinuableReplies, 0.0), (RepeatedCallsPercent, 5.0)],
        ),
    ]
}

fn ingress_faults() -> Vec<NamedFault> {
    vec![
        named_fault(
            "F7",
            "an ingress is killed",
            vec![at(5, Fault::KilledIngress, 0, 5)],
            &[(RecoverySeconds, 5.0)],
        ),
        named_fault(
            "F8",
            "both ingresses are drained one after the other",
            staggered(Fault::StoppedIngress, 2, 10),
            &[(CutReplies, 0.0), (Refusals, 0.0)],
        ),
        named_fault(
            "F19",
            "an ingress is frozen for 20 s",
            vec![at(5, Fault::SuspendedIngress, 0, 20)],
            &[(CutReplies, 0.0)],
        ),
        named_fault(
            "F40",
            "an ingress can open no connection for 10 s",
            vec![at(5, Fault::DescriptorStarvedIngress, 0, 10)],
            &[(CutReplies, 0.0), (RecoverySeconds, 2.0)],
        ),
    ]
}

fn broker_faults() -> Vec<NamedFault> {
    let outage: Targets = &[
        (CutReplies, 0.0),
        (RefusalSeconds, 3.0),
        (RecoverySeconds, 5.0),
    ];
    vec![
        named_fault(
            "F6",
            "a worker is drained while the broker is killed",
            vec![
                at(5, Fault::KilledBroker, 0, 15),
                at(8, Fault::StoppedWorker, 0, 0),
            ],
            &[(CutReplies, 0.0)],
        ),
        named_fault(
            "F9",
            "the broker is killed for 20 s",
            vec![at(5, Fault::KilledBroker, 0, 20)],
            outage,
        ),
        named_fault(
            "F10",
            "the broker is frozen for 30 s",
            vec![at(5, Fault::SuspendedBroker, 0, 30)],
            outage,
        ),
        named_fault(
            "F11",
            "the broker can write no more for 20 s",
            vec![at(5, Fault::FullBroker, 0, 20)],
            outage,
        ),
    ]
}

fn redis_faults() -> Vec<NamedFault> {
    vec![
        named_fault(
            "F14",
            "Redis is killed and back after 3 s, empty",
            vec![at(5, Fault::KilledRedis, 0, 3)],
            &[(CutReplies, 0.0), (PauseSeconds, 5.0)],
        ),
        named_fault(
            "F15",
            "Redis is killed and back after 60 s, empty",
            vec![at(5, Fault::KilledRedis, 0, 60)],
            &[(CutReplies, 0.0), (RecoverySeconds, 2.0)],
        ),
        named_fault(
            "F17",
            "Redis is frozen for 10 s",
            vec![at(5, Fault::SuspendedRedis, 0, 10)],
            &[(CutReplies, 0.0)],
        ),
    ]
}

fn link_faults() -> Vec<NamedFault> {
    vec![
        named_fault(
            "F16",
            "an ingress is without Redis for 20 s",
            vec![at(5, Fault::CutIngressRedis, 0, 20)],
            &[(CutReplies, 0.0), (RecoverySeconds, 2.0)],
        ),
        named_fault(
            "F21",
            "the store answers 2 s later for 20 s",
            vec![at(5, Fault::SlowStore, 0, 20)],
            &[(CutReplies, 0.0)],
        ),
        named_fault(
            "F38",
            "5 % of the packets to Redis and the store are lost for 30 s",
            vec![at(5, Fault::LossyLinks, 0, 30)],
            &[(CutReplies, 0.0), (Refusals, 0.0)],
        ),
        named_fault(
            "F39",
            "an ingress has 1 Mbit/s to Redis for 30 s",
            vec![at(5, Fault::NarrowIngressRedis, 0, 30)],
            &[(CutReplies, 0.0), (Refusals, 0.0)],
        ),
    ]
}

fn other_faults() -> Vec<NamedFault> {
    vec![
        named_fault(
            "F20",
            "the store is killed for 10 s",
            vec![at(5, Fault::KilledStore, 0, 10)],
            &[(CutReplies, 0.0), (RefusalSeconds, 3.0)],
        ),
        named_fault(
            "F45",
            "everything is killed at once",
            everything_killed(),
            &[(RecoverySeconds, 60.0)],
        ),
    ]
}

const fn named_fault(
    number: &'static str,
    description: &'static str,
    faults: Vec<PlannedFault>,
    targets: Targets,
) -> NamedFault {
    NamedFault {
        number,
        description,
        faults,
        targets,
    }
}

/// Plans a fault that starts after `delay` seconds and lasts `seconds`, which are ignored for
/// stopped processes.
fn at(delay: u64, fault: Fault, target: usize, seconds: u64) -> PlannedFault {
    PlannedFault {
        fault,
        target,
        delay: Duration::from_secs(delay),
        duration: Duration::from_secs(seconds),
    }
}

/// Plans a fault for one process after the other, one each `interval` seconds.
fn staggered(fault: Fault, count: usize, interval: u64) -> Vec<PlannedFault> {
    (0..count)
        .map(|number| at(5 + number as u64 * interval, fault, number, 1))
        .collect()
}

fn everything_killed() -> Vec<PlannedFault> {
    let processes = [
        (Fault::KilledIngress, 2),
        (Fault::KilledRouter, 2),
        (Fault::KilledWorker, 3),
        (Fault::KilledRedis, 1),
        (Fault::KilledBroker, 1),
        (Fault::KilledStore, 1),
    ];
    let killed = processes
        .into_iter()
        .flat_map(|(fault, count)| (0..count).map(move |target| at(5, fault, target, 1)));
    killed.collect()
}
