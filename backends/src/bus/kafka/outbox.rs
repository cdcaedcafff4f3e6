//! The outbox from the poll thread, which must never wait, to the handle, which may not be polled
//! for long.

use std::collections::VecDeque;

use tokio::sync::mpsc::{Sender, error::TrySendError};

use crate::bus::{BusError, BusEvent, IncomingRecord, PartitionId};

/// Maximum number of events that the handle has not taken.
pub(super) const OUTBOX_EVENTS_MAX: usize = 256;

/// An event or error on its way from the poll thread to the handle.
pub(super) type OutboxItem = Result<BusEvent, BusError>;

/// A bounded queue and its overflow: rebalance events, and records that were polled before a pause
/// took effect.
pub(super) struct EventOutbox {
    queue: Sender<OutboxItem>,
    overflow: VecDeque<OutboxItem>,
}

impl EventOutbox {
    /// Creates an outbox into a queue.
    pub(super) fn new(queue: Sender<OutboxItem>) -> Self {
        Self {
            queue,
            overflow: VecDeque::new(),
        }
    }

    /// Adds an event. Undelivered records of a revoked partition are removed, which bounds the
    /// overflow.
    pub(super) fn push(&mut self, event: BusEvent) {
        if let BusEvent::Revoked { partition } = &event
            && self.take_back(*partition)
        {
            return;
        }
        self.overflow.push_back(Ok(event));
        self.flush();
    }

    /// Ends the queue with an error.
    pub(super) fn fail(&mut self, error: BusError) {
        self.overflow.push_back(Err(error));
        self.flush();
    }

    /// Moves events from the overflow into the queue.
    pub(super) fn flush(&mut self) {
        while let Some(delivery) = self.overflow.pop_front() {
            if let Err(TrySendError::Full(delivery)) = self.queue.try_send(delivery) {
                self.overflow.push_front(delivery);
                return;
            }
        }
    }

    /// Returns `true` if nothing more should be polled.
    pub(super) fn is_full(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// Returns `true` if polling can resume.
    pub(super) fn has_room(&self) -> bool {
        self.overflow.is_empty() && self.queue.capacity() >= OUTBOX_EVENTS_MAX / 2
    }

    /// Returns `true` if the receiver is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Removes undelivered events of a lost partition. Returns `true` if the handle never received
    /// its assignment.
    fn take_back(&mut self, lost: PartitionId) -> bool {
        let assigned = |delivery: &OutboxItem| matches!(delivery, Ok(BusEvent::Assigned { partition, .. }) if *partition == lost);
        let of_lost = |delivery: &OutboxItem| match delivery {
            Ok(BusEvent::Record(IncomingRecord { partition, .. })) => *partition == lost,
            _ => assigned(delivery),
        };
        let unknown = self.overflow.iter().any(assigned);
        self.overflow.retain(|delivery| !of_lost(delivery));
        unknown
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use switchboard_schemas::{time::Timestamp, topics::Topic};
    use tokio::sync::mpsc;

    use super::*;

    const PARTITION: PartitionId = PartitionId {
        topic: Topic::Jobs,
        number: 0,
    };

    fn record(offset: u64) -> BusEvent {
        let (partition, key) = (PARTITION, String::new());
        let (payload, headers, published_at) = (Bytes::new(), Vec::new(), Timestamp::default());
        BusEvent::Record(IncomingRecord {
            partition,
            epoch: 1,
            offset,
            key,
            payload,
            headers,
            published_at,
            maybe_repeated: false,
        })
    }

    #[test]
    fn overflowing_events_are_delivered_later_in_order() {
        let (queue, mut taken) = mpsc::channel(OUTBOX_EVENTS_MAX);
        let mut outbox = EventOutbox::new(queue);
        let count = OUTBOX_EVENTS_MAX as u64 + 3;
        (0..count).for_each(|offset| outbox.push(record(offset)));
        assert!(outbox.is_full() && !outbox.has_room());
        for expected in 0..count {
            outbox.flush();
            let delivery = taken.try_recv().unwrap().unwrap();
            assert!(matches!(delivery, BusEvent::Record(record) if record.offset == expected));
        }
        assert!(outbox.has_room());
    }

    #[test]
    fn rebalance_events_of_an_unpolled_handle_are_bounded() {
        let (queue, _taken) = mpsc::channel(1);
        let mut outbox = EventOutbox::new(queue);
        outbox.push(record(0));
        for epoch in 0..1000 {
            outbox.push(BusEvent::Assigned {
                partition: PARTITION,
                epoch,
                committed: None,
            });
            outbox.push(record(epoch));
            outbox.push(BusEvent::Revoked {
                partition: PARTITION,
            });
        }
        assert_eq!(outbox.overflow.len(), 0);
    }
}
