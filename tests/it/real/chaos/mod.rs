//! Faults under load. Clients record what they receive, and a checker compares clients, store,
//! model and topics once everything is quiet.
//!
//! `make chaos SEED=7 MINUTES=30` injects random faults for longer than `make test`, and
//! `make chaos FAULT=F9` those of tests/FAULTS.md (`FAULT=all`).

mod checker;
mod clients;
mod cluster;
mod faults;
mod links;
mod measurements;
mod named;
mod side_load;

use std::{collections::BTreeMap, time::Duration};

use crate::support::report;
use clients::SentMessage;
use cluster::{ChaosCluster, Observation, ObservedOrganization};
use faults::{Fault, inject_random_faults};
use measurements::{Measurement, cut_replies, exchanges};
use named::{NamedFault, named_faults};

/// Seed and time of `make test`.
const DEFAULT_SEED: u64 = 1;
const DEFAULT_MINUTES: u64 = 1;
/// Named faults of `make test`.
const DEFAULT_FAULTS: &str = "F20,F45";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_faults_lose_no_message() {
    let seed = setting("SEED").map_or(DEFAULT_SEED, |seed| seed.parse().unwrap());
    let minutes = setting("MINUTES").map_or(DEFAULT_MINUTES, |minutes| minutes.parse().unwrap());
    report(&format!("chaos: SEED={seed} MINUTES={minutes}"));
    let cluster = ChaosCluster::start().await;
    let time = Duration::from_secs(minutes * 60);
    let faults = inject_random_faults(&cluster, seed, time);
    let observation = Box::pin(cluster.observe(faults, Duration::ZERO)).await;
    report_faults(&observation);
    for observed in &observation.organizations {
        report_load(observed);
    }
    for measurement in [
        Measurement::HungRequests,
        Measurement::RefusalSeconds,
        Measurement::FirstByteSeconds,
        Measurement::PauseSeconds,
        Measurement::RecoverySeconds,
        Measurement::RepeatedCallsPercent,
        Measurement::MemoryGrowthMegabytes,
    ] {
        report(&measurement.describe(&observation));
    }
    let checks = cluster.check(&observation).await;
    for line in checks.lines() {
        report(&line);
    }
    checks.assert_no_violation();
    cluster.assert_totals_equal_a_recount(&observation).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn named_faults_lose_no_message_when_quiet() {
    let wanted = setting("FAULT").unwrap_or_else(|| DEFAULT_FAULTS.to_owned());
    let faults = selected_faults(&wanted);
    let cluster = ChaosCluster::start().await;
    for fault in faults {
        fault.inject_and_check(&cluster).await;
    }
}

/// Returns the faults with the numbers of a list such as `F9, F20`, or all of them for `all`.
fn selected_faults(list: &str) -> Vec<NamedFault> {
    let mut faults = named_faults();
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    if wanted == ["all"] {
        return faults;
    }
    let known: Vec<&str> = faults.iter().map(|fault| fault.number).collect();
    for number in &wanted {
        let is_known = known.contains(number);
        assert!(is_known, "unknown fault {number:?}, known are {known:?}");
    }
    faults.retain(|fault| wanted.contains(&fault.number));
    faults
}

/// Returns a setting of `make chaos`.
fn setting(name: &str) -> Option<String> {
    let value = std::env::var(format!("SWITCHBOARD_CHAOS_{name}")).ok()?;
    (!value.is_empty()).then_some(value)
}

fn report_faults(observation: &Observation) {
    let mut by_fault: BTreeMap<Fault, Vec<Duration>> = BTreeMap::new();
    for fault in &observation.faults {
        let time = fault.ended - fault.began;
        by_fault.entry(fault.fault).or_default().push(time);
    }
    report(&format!("{} faults", observation.faults.len()));
    for (fault, times) in by_fault {
        let seconds: f64 = times.iter().map(Duration::as_secs_f64).sum();
        report(&format!("{fault:?}: {} times, {seconds:.0} s", times.len()));
    }
}

fn report_load(observed: &ObservedOrganization) {
    let sent = &observed.sent;
    let replies = sent.iter().filter_map(SentMessage::reply).count();
    let cut = cut_replies(observed);
    let refused = exchanges(observed).filter(|exchange| exchange.is_refusal());
    let unconnected = exchanges(observed).filter(|exchange| exchange.is_failed_connection());
    report(&format!(
        "{} messages: {} whole and {cut} cut replies, {} refusals, {} failed connections, {} model calls",
        sent.len(),
        replies - cut,
        refused.count(),
        unconnected.count(),
        observed.organization.requests().len(),
    ));
}
