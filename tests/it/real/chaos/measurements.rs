//! Measurements of an observation: refusals, cut replies, pauses and recovery time.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    clients::{Exchange, SentMessage},
    cluster::{Observation, ObservedOrganization},
};
use crate::support::Reply;

/// Longest time to the first byte, or between two chunks, of a reply that nothing disturbs.
const UNDISTURBED_GAP: Duration = Duration::from_secs(1);
/// Time after which a request without a response counts as hung.
const HUNG_AFTER: Duration = Duration::from_secs(10);
/// Largest distance of a recovery time from the end of the observation at which it may be cut off.
const CUT_OFF_SECONDS: f64 = 1.0;

/// A measurement of an observation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measurement {
    /// Replies that did not end cleanly.
    CutReplies,
    /// The same of the organization whose model continues a given text.
    CutContinuableReplies,
    /// Responses with an error.
    Refusals,
    /// Requests that failed without a response after more than 10 s.
    HungRequests,
    /// 95th percentile of the time from a request to its refusal, in seconds.
    RefusalSeconds,
    /// 95th percentile of the late first bytes, in seconds.
    FirstByteSeconds,
    /// 95th percentile of the pauses in disturbed replies, in seconds.
    PauseSeconds,
    /// Time from the moment when the last subject works again (`PastFault::ended`) until nothing
    /// is disturbed, in seconds.
    RecoverySeconds,
    /// Model calls beyond one per message, in percent of the messages.
    RepeatedCallsPercent,
    /// Growth of the process whose memory grew most, in megabytes.
    MemoryGrowthMegabytes,
}

impl Measurement {
    /// Returns true for measurements that do not depend on the speed of the machine.
    pub(super) const fn is_count(self) -> bool {
        matches!(
            self,
            Self::CutReplies | Self::CutContinuableReplies | Self::Refusals | Self::HungRequests
        )
    }

    /// Returns the value for an observation, if there is one.
    pub(super) fn measure(self, observation: &Observation) -> Option<f64> {
        let organizations = &observation.organizations;
        match self {
            Self::CutReplies => Some(organizations.iter().map(cut_replies).sum::<usize>() as f64),
            Self::CutContinuableReplies => Some(cut_replies(&organizations[0]) as f64),
            Self::Refusals => Some(refusals(observation).count() as f64),
            Self::HungRequests => Some(hung_requests(observation) as f64),
            Self::RefusalSeconds => {
                percentile(95, refusals(observation).map(|it| it.ended - it.sent))
            }
            Self::FirstByteSeconds => {
                percentile(95, all_exchanges(observation).filter_map(late_start))
            }
            Self::PauseSeconds => {
                percentile(95, all_exchanges(observation).filter_map(longest_pause))
            }
            Self::RecoverySeconds => recovery(observation).as_ref().map(Duration::as_secs_f64),
            Self::RepeatedCallsPercent => Some(repeated_calls_percent(observation)),
            Self::MemoryGrowthMegabytes => {
                let growth = observation.memory_growth?;
                Some((growth >> 20) as f64)
            }
        }
    }

    /// Returns true if the clients stopped too early for a recovery time.
    pub(super) fn is_lower_bound(self, value: f64, observation: &Observation) -> bool {
        let time_after = observation.time_after.as_secs_f64();
        matches!(self, Self::RecoverySeconds) && value + CUT_OFF_SECONDS >= time_after
    }

    /// Returns the measurement with its value for an observation.
    pub(super) fn describe(self, observation: &Observation) -> String {
        match self.measure(observation) {
            Some(value) if self.is_lower_bound(value, observation) => {
                format!("{self}: at least {value:.1}")
            }
            Some(value) => format!("{self}: {value:.1}"),
            None if matches!(self, Self::MemoryGrowthMegabytes) => {
                format!("{self}: every process was restarted")
            }
            None => format!("{self}: nothing was disturbed"),
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::CutReplies => "cut replies",
            Self::CutContinuableReplies => "cut replies of a model that continues",
            Self::Refusals => "refusals",
            Self::HungRequests => "hung requests",
            Self::RefusalSeconds => "seconds to a refusal (p95)",
            Self::FirstByteSeconds => "seconds to a late first byte (p95)",
            Self::PauseSeconds => "seconds of pause (p95)",
            Self::RecoverySeconds => "seconds to recovery",
            Self::RepeatedCallsPercent => "percent repeated model calls",
            Self::MemoryGrowthMegabytes => "megabytes of memory growth",
        })
    }
}

/// Returns all requests of an organization.
pub(super) fn exchanges(observed: &ObservedOrganization) -> impl Iterator<Item = &Exchange> {
    observed.sent.iter().flat_map(|message| &message.exchanges)
}

/// Returns the number of replies that did not end cleanly.
pub(super) fn cut_replies(observed: &ObservedOrganization) -> usize {
    let replies = observed.sent.iter().filter_map(SentMessage::reply);
    replies.filter(|reply| !reply.ended_cleanly).count()
}

fn all_exchanges(observation: &Observation) -> impl Iterator<Item = &Exchange> {
    observation.organizations.iter().flat_map(exchanges)
}

fn refusals(observation: &Observation) -> impl Iterator<Item = &Exchange> {
    all_exchanges(observation).filter(|exchange| exchange.is_refusal())
}

fn hung_requests(observation: &Observation) -> usize {
    let failed = all_exchanges(observation).filter(|exchange| exchange.is_failed_connection());
    failed.filter(|it| it.ended - it.sent > HUNG_AFTER).count()
}

/// Returns the time to the first byte of a reply, if that was late.
fn late_start(exchange: &Exchange) -> Option<Duration> {
    let (first, _) = exchange.reply()?.chunks.first()?;
    Some(*first - exchange.sent).filter(|wait| *wait > UNDISTURBED_GAP)
}

/// Returns the longest time between two chunks of a reply, if it was disturbed.
fn longest_pause(exchange: &Exchange) -> Option<Duration> {
    let pauses = pauses(exchange.reply()?);
    pauses.map(|(from, to)| to - from).max()
}

/// Returns the disturbances between two chunks, each as start and end.
fn pauses(reply: &Reply) -> impl Iterator<Item = (Instant, Instant)> {
    let times = reply.chunks.iter().map(|(at, _)| *at);
    let gaps = times.clone().zip(times.skip(1));
    gaps.filter(|(from, to)| *to - *from > UNDISTURBED_GAP)
}

/// Returns the time from the end of the last fault until the last disturbance ended.
fn recovery(observation: &Observation) -> Option<Duration> {
    let end_of_faults = observation.faults.iter().map(|fault| fault.ended).max()?;
    let disturbances = all_exchanges(observation).filter_map(last_disturbance);
    Some(disturbances.max()?.saturating_duration_since(end_of_faults))
}

fn last_disturbance(exchange: &Exchange) -> Option<Instant> {
    match exchange.reply() {
        Some(reply) if reply.ended_cleanly => {
            let late_start = late_start(exchange).map(|wait| exchange.sent + wait);
            late_start.max(pauses(reply).map(|(_, to)| to).max())
        }
        _ => Some(exchange.ended),
    }
}

fn repeated_calls_percent(observation: &Observation) -> f64 {
    let (mut messages, mut calls) = (0, 0);
    for observed in &observation.organizations {
        messages += observed.sent.len();
        calls += observed.organization.requests().len();
    }
    calls.saturating_sub(messages) as f64 * 100.0 / messages.max(1) as f64
}

/// Returns a percentile in seconds, or `None` without durations.
fn percentile(percent: usize, durations: impl Iterator<Item = Duration>) -> Option<f64> {
    let mut sorted: Vec<Duration> = durations.collect();
    sorted.sort_unstable();
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map(Duration::as_secs_f64)
}
