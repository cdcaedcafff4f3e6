//! The Kafka producer: enqueues a record once and waits for its delivery report.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer as _},
};

use crate::bus::{BusError, OutgoingRecord};

/// A producer that is replaced after a fatal error.
pub(super) struct KafkaProducer {
    config: ClientConfig,
    current: Mutex<ProducerInstance>,
}

#[derive(Clone)]
struct ProducerInstance {
    generation: u64,
    producer: FutureProducer,
}

impl KafkaProducer {
    /// Creates the producer without connecting.
    pub(super) fn new(config: ClientConfig) -> Result<Self, BusError> {
        let producer = create(&config)?;
        Ok(Self {
            config,
            current: Mutex::new(ProducerInstance {
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
        let instance = self.current.lock().clone();
        // `send` would wait and retry while the queue is full; this caller gets an error at once.
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

    /// Fetches the metadata of topics, so that their first records need not wait for it. Blocks.
    pub(super) fn warm_up(&self, topics: &[String], timeout: Duration) -> Result<(), BusError> {
        let producer = self.current.lock().producer.clone();
        let deadline = Instant::now() + timeout;
        topics.iter().try_for_each(|topic| {
            let left = deadline.saturating_duration_since(Instant::now());
            let metadata = producer.client().fetch_metadata(Some(topic), left);
            metadata
                .map(drop)
                .map_err(|error| BusError::Unavailable(error.to_string()))
        })
    }

    fn failed(&self, instance: ProducerInstance, error: &KafkaError) -> BusError {
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

    /// Replaces a producer after a fatal error: an idempotent producer that lost its sequence
    /// rejects everything.
    fn replace(&self, failed_generation: u64) {
        let mut current = self.current.lock();
        if current.generation != failed_generation {
            return;
        }
        tracing::warn!("kafka producer failed for good and is replaced");
        match create(&self.config) {
            Ok(producer) => {
                let next = ProducerInstance {
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
