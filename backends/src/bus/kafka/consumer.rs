//! A member of a Kafka group, as the rest of the program sees it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use switchboard_schemas::topics::Topic;
use tokio::sync::{mpsc, oneshot};

use super::{
    context::Context,
    names::Names,
    outbox::{Delivery, OUTBOX_EVENTS_MAX, Outbox},
    ownership::Ownership,
    poll::Poller,
    properties::Properties,
};
use crate::bus::{BusConsumer, BusError, BusEvent, CommitMark, PartitionId};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// See [`crate::bus::BusConsumer`]. Dropping it ends the poll thread, which writes the last marks and leaves the group.
pub(super) struct KafkaConsumer {
    deliveries: mpsc::Receiver<Delivery>,
    ownership: Arc<Ownership>,
    /// The epochs that the caller was told; its marks belong to these.
    told: HashMap<PartitionId, u64>,
    closed: oneshot::Receiver<()>,
}

impl KafkaConsumer {
    /// Subscribes; does not wait for the broker.
    pub(super) fn join(
        properties: &Properties,
        names: &Names,
        group: &str,
        topics: &[Topic],
    ) -> Result<Self, BusError> {
        let ownership = Arc::new(Ownership::default());
        let context = Context::new(names.clone(), ownership.clone());
        let client = properties
            .consumer(&names.group(group))
            .create_with_context(context);
        let client: Arc<BaseConsumer<Context>> =
            Arc::new(client.map_err(|error| BusError::Fatal(error.to_string()))?);
        client.context().attach(&client);

        let topics: Vec<String> = topics.iter().map(|topic| names.topic(*topic)).collect();
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        client
            .subscribe(&topics)
            .map_err(|error| BusError::Fatal(error.to_string()))?;

        let (queue, deliveries) = mpsc::channel(OUTBOX_EVENTS_MAX);
        let (left, closed) = oneshot::channel();
        Poller::start(client, Outbox::new(queue), left)?;
        Ok(Self {
            deliveries,
            ownership,
            told: HashMap::new(),
            closed,
        })
    }

    /// Keeps account of what the caller is told; false for a record of a partition that is gone by now.
    fn tell(&mut self, event: &BusEvent) -> bool {
        match event {
            BusEvent::Assigned {
                partition, epoch, ..
            } => {
                self.told.insert(*partition, *epoch);
            }
            BusEvent::Revoked { partition } => {
                self.told.remove(partition);
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
            if self.tell(&event) {
                return Ok(event);
            }
        }
    }

    fn commit(&mut self, partition: PartitionId, mark: CommitMark) {
        if let Some(epoch) = self.told.get(&partition) {
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
        // An error of the receiver means that the thread is gone, and the consumer with it.
        let ended = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
        ended.map(drop).map_err(|_| {
            BusError::Unavailable("consumer did not leave its group in time".to_owned())
        })
    }
}
