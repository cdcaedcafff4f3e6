//! Expiry of the embedded log: small steps between two transactions, so that no publish waits long.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use switchboard_schemas::time::Timestamp;

use super::{file, groups::Groups, tails::Tails};
use crate::bus::PartitionId;

/// Between two rounds over all partitions.
const ROUND_INTERVAL: Duration = Duration::from_secs(60);
/// Between two steps of a round.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

/// Where the sweep is.
#[derive(Default)]
pub(super) struct Sweep {
    waiting: Vec<PartitionId>,
    next_step: Option<Instant>,
    compacted_until: u64,
}

impl Sweep {
    /// Does one step if it is time for one.
    pub(super) fn step(&mut self, connection: &mut Connection, tails: &Tails, groups: &Groups) {
        let now = Instant::now();
        if self.next_step.is_some_and(|at| now < at) {
            return;
        }
        if let Err(error) = self.sweep(connection, tails, groups) {
            tracing::warn!(%error, "log sweep failed, trying again");
        }
        let pause = if self.waiting.is_empty() {
            ROUND_INTERVAL
        } else {
            STEP_INTERVAL
        };
        self.next_step = Some(now + pause);
    }

    fn sweep(
        &mut self,
        connection: &mut Connection,
        tails: &Tails,
        groups: &Groups,
    ) -> rusqlite::Result<()> {
        let now = Timestamp::now();
        let Some(partition) = self.waiting.pop() else {
            self.waiting = tails.partitions().collect();
            return file::forget_groups(connection, &groups.alive(), now);
        };
        if partition.topic.retention_hours().is_none() {
            return self.compact(connection, tails, partition);
        }
        if file::expire_step(connection, partition, tails.end(partition), now)? {
            self.waiting.push(partition);
        }
        Ok(())
    }

    fn compact(
        &mut self,
        connection: &Connection,
        tails: &Tails,
        partition: PartitionId,
    ) -> rusqlite::Result<()> {
        let end = tails.end(partition);
        // Nothing new, nothing to compact; the first round after a start looks once.
        if end != self.compacted_until {
            file::compact(connection, partition)?;
            self.compacted_until = end;
        }
        Ok(())
    }
}
