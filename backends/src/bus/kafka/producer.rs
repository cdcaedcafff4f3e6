//! The Kafka producer: enqueues a record once and waits for its delivery report.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer as _, PurgeConfig},
};
use tokio::{task::spawn_blocking, time::timeout};

use crate::bus::{BusError, OutgoingRecord};

/// Time in which a broker that answers tells the leaders of a topic.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time in which a record is delivered once the broker has told the leaders. Longer than a cluster
/// needs to notice that a leader is dead, nine seconds by default.
const DELIVERY_AFTER_PROBE: Duration = Duration::from_secs(10);

/// A producer that is replaced after a fatal error, and when it is stuck.
pub(super) struct KafkaProducer {
    config: ClientConfig,
    current: Mutex<ProducerInstance>,
    /// True while [`Self::watch`] watches a late record.
    watching: AtomicBool,
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
            watching: AtomicBool::default(),
        })
    }

    /// Appends a record to a topic of the cluster.
    pub(super) async fn publish(
        self: &Arc<Self>,
        topic: &str,
        record: OutgoingRecord,
        patience: Duration,
    ) -> Result<(), BusError> {
        let instance = self.current.lock().clone();
        // `send` would wait and retry while the queue is full; this caller gets an error at once.
        let delivery = instance
            .producer
            .send_result(outgoing(topic, &record))
            .map_err(|(error, _)| error);
        let result = match delivery {
            Ok(mut delivery) => match timeout(patience, &mut delivery).await {
                Err(_) => {
                    self.watch(instance, topic, delivery);
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

    /// Watches a late record, one at a time, and replaces the producer if the record is not
    /// delivered although the broker answers. A producer of librdkafka can lose the leader of a
    /// partition for good: <https://github.com/confluentinc/librdkafka/issues/5430>.
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends within seconds, and a drain has no use for its result"
    )]
    fn watch(self: &Arc<Self>, instance: ProducerInstance, topic: &str, delivery: DeliveryFuture) {
        if self.watching.swap(true, Ordering::AcqRel) {
            return;
        }
        let (watched, topic) = (self.clone(), topic.to_owned());
        tokio::spawn(async move {
            if is_stuck(instance.producer.clone(), topic, delivery).await {
                watched.replace(
                    instance.generation,
                    "it does not deliver to a broker that answers",
                );
            }
            watched.watching.store(false, Ordering::Release);
        });
    }

    fn failed(&self, instance: ProducerInstance, error: &KafkaError) -> BusError {
        if instance.producer.client().fatal_error().is_some() {
            self.replace(instance.generation, "it failed for good");
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

    /// Replaces a producer that will never deliver again. An idempotent one that lost its sequence
    /// rejects everything.
    fn replace(&self, failed_generation: u64, reason: &str) {
        let mut current = self.current.lock();
        if current.generation != failed_generation {
            return;
        }
        tracing::warn!(reason, "kafka producer is replaced");
        match create(&self.config) {
            Ok(producer) => {
                let next = ProducerInstance {
                    generation: failed_generation + 1,
                    producer,
                };
                let old = std::mem::replace(&mut *current, next);
                // Those who wait for a record try again with the new producer.
                old.producer
                    .purge(PurgeConfig::default().queue().inflight());
                // Dropping a producer flushes it, which blocks.
                std::thread::spawn(move || drop(old));
            }
            Err(error) => tracing::error!(%error, "kafka producer cannot be replaced yet"),
        }
    }
}

/// Returns true if a late record is not delivered although the broker tells the leaders of its
/// topic.
async fn is_stuck(producer: FutureProducer, topic: String, delivery: DeliveryFuture) -> bool {
    let probe = spawn_blocking(move || knows_leaders(&producer, &topic));
    if !matches!(probe.await, Ok(true)) {
        return false;
    }
    match timeout(DELIVERY_AFTER_PROBE, delivery).await {
        Err(_) => true,
        Ok(Ok(Err((error, _)))) => {
            error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageTimedOut)
        }
        Ok(_) => false,
    }
}

/// Returns true if the broker answers and every partition of the topic has a leader. Blocks.
fn knows_leaders(producer: &FutureProducer, topic: &str) -> bool {
    let Ok(metadata) = producer.client().fetch_metadata(Some(topic), PROBE_TIMEOUT) else {
        return false;
    };
    let mut partitions = metadata
        .topics()
        .iter()
        .flat_map(|topic| topic.partitions());
    partitions.all(|partition| partition.leader() >= 0)
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
