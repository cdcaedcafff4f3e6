//! The bus on Kafka.
//!
//! [`producer`] publishes, [`topics`] creates topics. A consumer is a handle ([`consumer`]) and a
//! thread that only polls ([`poll`]), connected by a bounded [`outbox`] and the shared
//! [`ownership`]. [`context`] implements the rebalance protocol, [`committer`] commits marks, and
//! [`watchdog`] finds partitions that are not read.

mod committer;
mod consumer;
mod context;
mod names;
mod outbox;
mod ownership;
mod partitions;
mod poll;
mod producer;
mod properties;
#[cfg(test)]
mod tests;
mod topics;
mod watchdog;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use switchboard_schemas::{ids::OrgId, topics::Topic};

use super::{BusConsumer, BusError, MessageBus, OutgoingRecord};
use crate::config::BusConfig;
use consumer::KafkaConsumer;
use names::ClusterNames;
use producer::KafkaProducer;
use properties::ClientProperties;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The bus on a Kafka cluster.
pub struct KafkaBus {
    config: BusConfig,
    names: ClusterNames,
    properties: ClientProperties,
    /// Producer of jobs, separate so that a full queue of events cannot block a job.
    jobs: Arc<KafkaProducer>,
    events: Arc<KafkaProducer>,
}

impl KafkaBus {
    /// Creates the bus; the cluster need not be reachable yet. `namespace` is the prefix of topics
    /// and groups unless it is empty; `client_id` identifies this process to the brokers.
    ///
    /// # Errors
    /// [`BusError::Fatal`] for a configuration that librdkafka rejects.
    pub fn connect(config: &BusConfig, namespace: &str, client_id: &str) -> Result<Self, BusError> {
        let properties = ClientProperties::new(config, client_id)?;
        Ok(Self {
            config: config.clone(),
            names: ClusterNames::new(namespace),
            jobs: Arc::new(KafkaProducer::new(properties.job_producer())?),
            events: Arc::new(KafkaProducer::new(properties.event_producer())?),
            properties,
        })
    }

    fn producer(&self, topic: Topic) -> &Arc<KafkaProducer> {
        match topic {
            Topic::Route | Topic::Jobs | Topic::JobsRetry => &self.jobs,
            Topic::Messages | Topic::Control | Topic::DeadLetters => &self.events,
        }
    }

    fn topics_of(&self, producer: &Arc<KafkaProducer>) -> Vec<String> {
        let own = |topic: &Topic| Arc::ptr_eq(self.producer(*topic), producer);
        Topic::ALL
            .into_iter()
            .filter(own)
            .map(|topic| self.names.topic(topic))
            .collect()
    }
}

#[async_trait]
impl MessageBus for KafkaBus {
    async fn publish(&self, record: OutgoingRecord, timeout: Duration) -> Result<(), BusError> {
        self.producer(record.topic)
            .publish(&self.names.topic(record.topic), record, timeout)
            .await
    }

    async fn consume(
        &self,
        group: &str,
        topics: &[Topic],
    ) -> Result<Box<dyn BusConsumer>, BusError> {
        Ok(Box::new(KafkaConsumer::join(
            &self.properties,
            &self.names,
            group,
            topics,
        )?))
    }

    async fn erase_records(&self, _key: &str) -> Result<(), BusError> {
        Ok(())
    }

    async fn erase_organization(&self, _org: &OrgId) -> Result<(), BusError> {
        Ok(())
    }

    async fn migrate(&self) -> Result<(), BusError> {
        topics::create_missing(&self.config, &self.properties, &self.names).await
    }

    async fn check(&self) -> Result<(), BusError> {
        let checks = [&self.jobs, &self.events].map(|producer| {
            let (topics, producer) = (self.topics_of(producer), producer.clone());
            tokio::task::spawn_blocking(move || producer.warm_up(&topics, CHECK_TIMEOUT))
        });
        for check in checks {
            check
                .await
                .map_err(|error| BusError::Unavailable(error.to_string()))??;
        }
        Ok(())
    }
}
