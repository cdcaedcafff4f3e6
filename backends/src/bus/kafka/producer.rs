//! Publishing to Kafka: one attempt at the queue, then waiting for the delivery report.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer as _},
};

use crate::bus::{BusError, OutgoingRecord, lock::lock};

/// A producer that is replaced when it has failed for good.
pub(super) struct Producer {
    config: ClientConfig,
    current: Mutex<Instance>,
}

#[derive(Clone)]
struct Instance {
    generation: u64,
    producer: FutureProducer,
}

impl Producer {
    /// Does not connect yet.
    pub(super) fn new(config: ClientConfig) -> Result<Self, BusError> {
        let producer = create(&config)?;
        Ok(Self {
            config,
            current: Mutex::new(Instance {
                generation: 0,
                producer,
            }),
        })
    }

    /// Appends a record to a topic of the cluster.
    pub(super) async fn publish(
        &self,
        topic: &str,
        record: OutgoingRecord,
        timeout: Duration,
    ) -> Result<(), BusError> {
        let instance = lock(&self.current).clone();
        // `send` would wait and try again while the queue is full; our caller is answered at once.
        let delivery = instance
            .producer
            .send_result(outgoing(topic, &record))
            .map_err(|(error, _)| error);
        let result = match delivery {
            Ok(delivery) => match tokio::time::timeout(timeout, delivery).await {
                Err(_) => {
                    return Err(BusError::Unavailable(
                        "no acknowledgement in time".to_owned(),
                    ));
                }
                Ok(Err(_)) => {
                    return Err(BusError::Unavailable("producer was replaced".to_owned()));
                }
                Ok(Ok(report)) => report.map(drop).map_err(|(error, _)| error),
            },
            Err(error) => Err(error),
        };
        result.map_err(|error| self.failed(instance, &error))
    }

    /// Asks the cluster about topics, so that their first records need not wait for it. Blocks.
    pub(super) fn warm_up(&self, topics: &[String], timeout: Duration) -> Result<(), BusError> {
        let producer = lock(&self.current).producer.clone();
        let deadline = Instant::now() + timeout;
        topics.iter().try_for_each(|topic| {
            let left = deadline.saturating_duration_since(Instant::now());
            let metadata = producer.client().fetch_metadata(Some(topic), left);
            metadata
                .map(drop)
                .map_err(|error| BusError::Unavailable(error.to_string()))
        })
    }

    fn failed(&self, instance: Instance, error: &KafkaError) -> BusError {
        if instance.producer.client().fatal_error().is_some() {
            self.replace(instance.generation);
            return BusError::Unavailable(format!("producer was replaced: {error}"));
        }
        match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::MessageSizeTooLarge
                | RDKafkaErrorCode::InvalidMessage
                | RDKafkaErrorCode::InvalidRecord
                | RDKafkaErrorCode::TopicAuthorizationFailed,
            ) => BusError::Fatal(error.to_string()),
            _ => BusError::Unavailable(error.to_string()),
        }
    }

    /// An idempotent producer that lost its place refuses everything from then on; only a new one helps.
    fn replace(&self, failed_generation: u64) {
        let mut current = lock(&self.current);
        if current.generation != failed_generation {
            return;
        }
        tracing::warn!("kafka producer failed for good and is replaced");
        match create(&self.config) {
            Ok(producer) => {
                let next = Instance {
                    generation: failed_generation + 1,
                    producer,
                };
                let old = std::mem::replace(&mut *current, next);
                // Dropping a producer flushes it, which blocks.
                std::thread::spawn(move || drop(old));
            }
            Err(error) => tracing::error!(%error, "kafka producer cannot be replaced yet"),
        }
    }
}

fn create(config: &ClientConfig) -> Result<FutureProducer, BusError> {
    config
        .create()
        .map_err(|error| BusError::Fatal(error.to_string()))
}

fn outgoing<'a>(topic: &'a str, record: &'a OutgoingRecord) -> FutureRecord<'a, str, [u8]> {
    let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
    for (key, value) in &record.headers {
        headers = headers.insert(Header {
            key,
            value: Some(value),
        });
    }
    FutureRecord::to(topic)
        .key(record.key.as_str())
        .payload(&record.payload[..])
        .headers(headers)
}
