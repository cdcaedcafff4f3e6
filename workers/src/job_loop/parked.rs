//! Jobs that run again after a pause. Each holds its lane until then.

use tokio::time::Instant;

use super::dispatcher::LaneKey;

/// A job that runs again.
pub(super) struct ParkedJob<T> {
    pub(super) due: Instant,
    pub(super) lane: LaneKey,
    pub(super) job: T,
    /// False while another worker runs the job: such jobs are bounded by the windows of offsets,
    /// and the open replies of a dead worker must not stop the intake of others.
    pub(super) counts: bool,
}

pub(super) struct ParkedJobs<T>(Vec<ParkedJob<T>>);

impl<T> ParkedJobs<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, parked: ParkedJob<T>) {
        self.0.push(parked);
    }

    /// Returns the number of jobs that count against the bound of waiting jobs.
    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|parked| parked.counts).count()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|parked| &parked.job)
    }

    /// Returns the time at which the first job is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.iter().map(|parked| parked.due).min()
    }

    pub(super) fn take_due(&mut self, now: Instant) -> impl Iterator<Item = ParkedJob<T>> {
        self.0.extract_if(.., move |parked| parked.due <= now)
    }

    pub(super) fn take_lost(
        &mut self,
        lost: impl Fn(&T) -> bool,
    ) -> impl Iterator<Item = ParkedJob<T>> {
        self.0.extract_if(.., move |parked| lost(&parked.job))
    }
}
