//! The handle of a Kafka consumer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use switchboard_schemas::topics::Topic;
use tokio::sync::{mpsc, oneshot};

use super::{
    context::MemberContext,
    names::ClusterNames,
    outbox::{EventOutbox, OUTBOX_EVENTS_MAX, OutboxItem},
    ownership::PartitionOwnership,
    poll::PollThread,
    properties::ClientProperties,
};
use crate::bus::{BusConsumer, BusError, BusEvent, CommitMark, PartitionId};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A Kafka consumer. Dropping it ends the poll thread, which commits the last marks and leaves the
/// group.
pub(super) struct KafkaConsumer {
    deliveries: mpsc::Receiver<OutboxItem>,
    ownership: Arc<PartitionOwnership>,
    /// Epochs that the caller has received; its marks belong to these.
    delivered_epochs: HashMap<PartitionId, u64>,
    closed: oneshot::Receiver<()>,
}

impl KafkaConsumer {
    /// Subscribes without waiting for the broker.
    pub(super) fn join(
        properties: &ClientProperties,
        names: &ClusterNames,
        group: &str,
        topics: &[Topic],
    ) -> Result<Self, BusError> {
        Self::start(Self::subscribe(properties, names, group, topics)?)
    }

    /// Creates the client and subscribes it.
    pub(super) fn subscribe(
        properties: &ClientProperties,
        names: &ClusterNames,
        group: &str,
        topics: &[Topic],
    ) -> Result<Arc<BaseConsumer<MemberContext>>, BusError> {
        let context = MemberContext::new(names.clone(), Arc::default());
        let client = properties
            .consumer(&names.group(group))
            .create_with_context(context);
        let client: Arc<BaseConsumer<MemberContext>> =
            Arc::new(client.map_err(|error| BusError::Fatal(error.to_string()))?);
        client.context().start_committer(&client)?;

        let topics: Vec<String> = topics.iter().map(|topic| names.topic(*topic)).collect();
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        client
            .subscribe(&topics)
            .map_err(|error| BusError::Fatal(error.to_string()))?;
        Ok(client)
    }

    /// Starts the poll thread of a subscribed client.
    pub(super) fn start(client: Arc<BaseConsumer<MemberContext>>) -> Result<Self, BusError> {
        let ownership = client.context().ownership.clone();
        let (queue, deliveries) = mpsc::channel(OUTBOX_EVENTS_MAX);
        let (left, closed) = oneshot::channel();
        PollThread::start(client, EventOutbox::new(queue), left)?;
        Ok(Self {
            deliveries,
            ownership,
            delivered_epochs: HashMap::new(),
            closed,
        })
    }

    /// Tracks the events delivered to the caller. Returns `false` for a record of a partition that
    /// has been revoked.
    fn track(&mut self, event: &BusEvent) -> bool {
        match event {
            BusEvent::Assigned {
                partition, epoch, ..
            } => {
                self.delivered_epochs.insert(*partition, *epoch);
            }
            BusEvent::Revoked { partition } => {
                self.delivered_epochs.remove(partition);
            }
            BusEvent::Record(record) => {
                return self.ownership.epoch(record.partition) == Some(record.epoch);
            }
        }
        true
    }
}

#[async_trait]
impl BusConsumer for KafkaConsumer {
    async fn next(&mut self) -> Result<BusEvent, BusError> {
        loop {
            let delivery = self.deliveries.recv().await;
            let event =
                delivery.ok_or_else(|| BusError::Fatal("consumer has ended".to_owned()))??;
            if self.track(&event) {
                return Ok(event);
            }
        }
    }

    fn commit(&mut self, partition: PartitionId, mark: CommitMark) {
        if let Some(epoch) = self.delivered_epochs.get(&partition) {
            self.ownership.commit(partition, *epoch, mark);
        }
    }

    fn pause(&mut self, partition: PartitionId) {
        self.ownership.set_paused(partition, true);
    }

    fn resume(&mut self, partition: PartitionId) {
        self.ownership.set_paused(partition, false);
    }

    fn lag(&self) -> Vec<(PartitionId, u64)> {
        self.ownership.lag()
    }

    async fn close(self: Box<Self>) -> Result<(), BusError> {
        let Self {
            deliveries, closed, ..
        } = *self;
        drop(deliveries);
        // An error of the receiver means that the thread has ended, and the consumer with it.
        let ended = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
        ended.map(drop).map_err(|_| {
            BusError::Unavailable("consumer did not leave its group in time".to_owned())
        })
    }
}
