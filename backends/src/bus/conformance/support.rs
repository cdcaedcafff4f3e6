//! Consumers and helpers of the conformance tests of the bus.

use std::collections::{BTreeMap, BTreeSet};

use switchboard_schemas::topics::Topic;
use tokio::time::{Instant, timeout, timeout_at};

use super::{DEADLINE, GROUP, PARTITIONS, PUBLISH_TIMEOUT};
use crate::bus::{
    BusConsumer, BusEvent, IncomingRecord, MessageBus, OutgoingRecord, PartitionId,
    ledger::{OffsetLedger, OffsetState},
};

/// A consumer with its assignments and the records it received.
pub(super) struct OwningConsumer {
    pub(super) consumer: Box<dyn BusConsumer>,
    pub(super) owned: BTreeMap<PartitionId, u64>,
    pub(super) records: Vec<IncomingRecord>,
}

impl OwningConsumer {
    pub(super) async fn join(bus: &impl MessageBus) -> Self {
        Self {
            consumer: join(bus, GROUP).await,
            owned: BTreeMap::new(),
            records: Vec::new(),
        }
    }

    pub(super) fn partitions(&self) -> BTreeSet<PartitionId> {
        self.owned.keys().copied().collect()
    }

    pub(super) async fn step(&mut self) {
        match next(&mut *self.consumer).await {
            BusEvent::Assigned {
                partition, epoch, ..
            } => {
                assert_eq!(self.owned.insert(partition, epoch), None, "assigned twice");
            }
            BusEvent::Revoked { partition } => {
                self.owned
                    .remove(&partition)
                    .expect("revoked what was assigned");
                // Nothing was committed, so the next owner gets these again.
                self.records.retain(|record| record.partition != partition);
            }
            BusEvent::Record(record) => {
                assert_eq!(
                    self.owned.get(&record.partition),
                    Some(&record.epoch),
                    "a record of another epoch"
                );
                self.records.push(record);
            }
        }
    }
}

/// A consumer that finishes every record at once, with a ledger for each partition.
pub(super) struct FinishingConsumer {
    pub(super) consumer: Box<dyn BusConsumer>,
    pub(super) ledgers: BTreeMap<PartitionId, OffsetLedger>,
}

impl FinishingConsumer {
    pub(super) async fn join(bus: &impl MessageBus) -> Self {
        Self {
            consumer: join(bus, GROUP).await,
            ledgers: BTreeMap::new(),
        }
    }

    /// Handles one event and returns the payload of the record that was finished, if any.
    pub(super) async fn step(&mut self) -> Option<String> {
        let record = match next(&mut *self.consumer).await {
            BusEvent::Assigned {
                partition,
                committed,
                ..
            } => {
                self.ledgers
                    .insert(partition, OffsetLedger::resume(committed.as_ref()));
                return None;
            }
            BusEvent::Revoked { partition } => {
                self.ledgers.remove(&partition);
                return None;
            }
            BusEvent::Record(record) => record,
        };
        let ledger = self
            .ledgers
            .get_mut(&record.partition)
            .expect("assigned before its first record");
        let run = ledger.take(record.offset) == OffsetState::Run;
        ledger.finish(record.offset);
        if let Some(mark) = ledger.mark() {
            self.consumer.commit(record.partition, mark);
        }
        run.then(|| text(&record).to_owned())
    }
}

pub(super) async fn run_until(
    one: &mut OwningConsumer,
    two: &mut OwningConsumer,
    done: impl Fn(&OwningConsumer, &OwningConsumer) -> bool,
) {
    while !done(one, two) {
        tokio::select! { () = one.step() => {}, () = two.step() => {} }
    }
}

pub(super) async fn join(bus: &impl MessageBus, group: &str) -> Box<dyn BusConsumer> {
    bus.consume(group, &[Topic::Jobs]).await.unwrap()
}

pub(in crate::bus) async fn publish(bus: &impl MessageBus, key: &str, payload: &str) {
    publish_owned(bus, key.to_owned(), payload.to_owned()).await;
}

pub(super) async fn publish_owned(bus: &impl MessageBus, key: String, payload: String) {
    let record = OutgoingRecord {
        topic: Topic::Jobs,
        key,
        payload: payload.into(),
        headers: Vec::new(),
    };
    bus.publish(record, PUBLISH_TIMEOUT).await.unwrap();
}

pub(super) async fn next(consumer: &mut dyn BusConsumer) -> BusEvent {
    timeout(DEADLINE, consumer.next())
        .await
        .expect("nothing happened in time")
        .unwrap()
}

/// Returns the next `count` records.
pub(in crate::bus) async fn records(
    consumer: &mut dyn BusConsumer,
    count: usize,
) -> Vec<IncomingRecord> {
    let (mut records, deadline) = (Vec::new(), Instant::now() + DEADLINE);
    while records.len() < count {
        let event = timeout_at(deadline, consumer.next())
            .await
            .expect("the records did not come in time");
        if let BusEvent::Record(record) = event.unwrap() {
            records.push(record);
        }
    }
    records
}

pub(in crate::bus) fn texts(records: &[IncomingRecord]) -> Vec<String> {
    records
        .iter()
        .map(|record| text(record).to_owned())
        .collect()
}

pub(super) fn text(record: &IncomingRecord) -> &str {
    std::str::from_utf8(&record.payload).unwrap()
}

pub(super) fn place(key: &str) -> u32 {
    crate::bus::placement::partition_of_key(key, PARTITIONS)
}
