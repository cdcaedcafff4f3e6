//! Deletion of expired records in small steps between transactions, so that no publish waits long.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use switchboard_schemas::time::Timestamp;

use super::{file, groups::ConsumerGroups, tails::RecordTails};
use crate::bus::PartitionId;

/// Interval between two rounds over all partitions.
const ROUND_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two steps of a round.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

/// The position of the sweep.
#[derive(Default)]
pub(super) struct ExpirySweep {
    waiting: Vec<PartitionId>,
    next_step: Option<Instant>,
    compacted_until: u64,
    has_deleted: bool,
}

impl ExpirySweep {
    /// Executes a step if it is due. Returns true after the last step of a round that deleted
    /// records.
    pub(super) fn step(
        &mut self,
        connection: &mut Connection,
        tails: &RecordTails,
        groups: &ConsumerGroups,
    ) -> bool {
        let now = Instant::now();
        if self.next_step.is_some_and(|at| now < at) {
            return false;
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
        self.waiting.is_empty() && std::mem::take(&mut self.has_deleted)
    }

    fn sweep(
        &mut self,
        connection: &mut Connection,
        tails: &RecordTails,
        groups: &ConsumerGroups,
    ) -> rusqlite::Result<()> {
        let now = Timestamp::now();
        let Some(partition) = self.waiting.pop() else {
            self.waiting = tails.partitions().collect();
            return file::forget_groups(connection, &groups.alive(), now);
        };
        if partition.topic.retention_hours().is_none() {
            return self.compact(connection, tails, partition);
        }
        let deleted = file::expire_step(connection, partition, tails.end(partition), now)?;
        self.has_deleted |= deleted > 0;
        if deleted >= file::SWEEP_STEP_ROWS {
            self.waiting.push(partition);
        }
        Ok(())
    }

    fn compact(
        &mut self,
        connection: &Connection,
        tails: &RecordTails,
        partition: PartitionId,
    ) -> rusqlite::Result<()> {
        let end = tails.end(partition);
        // Without new records there is nothing to compact; the first round after a start checks
        // once.
        if end != self.compacted_until {
            self.has_deleted |= file::compact(connection, partition)? > 0;
            self.compacted_until = end;
        }
        Ok(())
    }
}
