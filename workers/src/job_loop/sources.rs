//! Consumers of one role: joins their groups, rejoins after errors and merges their events.

use std::{sync::Arc, time::Duration};

use futures::future::{FutureExt, select_all};
use switchboard_backends::bus::{BusConsumer, BusError, BusEvent, MessageBus, PartitionId};
use switchboard_schemas::topics::Topic;
use tokio::{task::JoinSet, time::sleep};

use super::partitions::ConsumerUpdate;

/// Pause before a failed consumer joins again.
const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// A topic and the consumer group that reads it.
pub(crate) type TopicSource = (Topic, &'static str);

type JoinResult = (TopicSource, Result<Box<dyn BusConsumer>, BusError>);

pub(crate) struct SourceConsumers {
    bus: Arc<dyn MessageBus>,
    sources: &'static [TopicSource],
    joined: Vec<(Topic, Box<dyn BusConsumer>)>,
    /// Joining talks to the bus; it runs beside the loop.
    joining: JoinSet<JoinResult>,
}

/// Event of any consumer.
pub(crate) enum SourceEvent {
    Bus(BusEvent),
    /// The consumer of a topic ended; its partitions belong to other members.
    Lost(Topic, BusError),
}

impl SourceConsumers {
    pub(crate) fn new(bus: Arc<dyn MessageBus>, sources: &'static [TopicSource]) -> Self {
        let mut this = Self {
            bus,
            sources,
            joined: Vec::new(),
            joining: JoinSet::new(),
        };
        for source in sources {
            this.start_joining(*source, Duration::ZERO);
        }
        this
    }

    /// Returns the next event of any consumer. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> SourceEvent {
        loop {
            let signal = if self.joined.is_empty() {
                ConsumerSignal::Joined(self.joining.join_next().await)
            } else {
                let any = select_all(self.joined.iter_mut().map(|(topic, consumer)| {
                    let topic = *topic;
                    consumer.next().map(move |event| (topic, event)).boxed()
                }));
                tokio::select! {
                    Some(joined) = self.joining.join_next() => ConsumerSignal::Joined(Some(joined)),
                    ((topic, event), _, _) = any => ConsumerSignal::Event(topic, event),
                }
            };
            match signal {
                ConsumerSignal::Joined(Some(Ok((source, result)))) => {
                    self.add_consumer(source, result)
                }
                ConsumerSignal::Joined(_) => self.join_missing(),
                ConsumerSignal::Event(_, Ok(event)) => {
                    // Rotated, because the first consumer is polled first: a busy topic must not
                    // starve the others.
                    self.joined.rotate_left(1);
                    return SourceEvent::Bus(event);
                }
                ConsumerSignal::Event(topic, Err(error)) => {
                    tracing::warn!(%topic, %error, "consumer ended, joining again");
                    self.rejoin_topic(topic);
                    return SourceEvent::Lost(topic, error);
                }
            }
        }
    }

    /// Applies a commit mark and a pause or resume to the consumer of the partition.
    pub(crate) fn apply_update(&mut self, partition: PartitionId, update: ConsumerUpdate) {
        let Some((_, consumer)) = self
            .joined
            .iter_mut()
            .find(|(topic, _)| *topic == partition.topic)
        else {
            return;
        };
        if let Some(mark) = update.mark {
            consumer.commit(partition, mark);
        }
        match update.pause {
            Some(true) => consumer.pause(partition),
            Some(false) => consumer.resume(partition),
            None => {}
        }
    }

    /// Returns the number of records behind the newest one, by partition.
    pub(crate) fn partition_lags(&self) -> Vec<(PartitionId, u64)> {
        self.joined
            .iter()
            .flat_map(|(_, consumer)| consumer.lag())
            .collect()
    }

    /// Commits the last marks and leaves the groups. No event follows.
    pub(crate) async fn leave_groups(&mut self) {
        self.joining.abort_all();
        for (topic, consumer) in std::mem::take(&mut self.joined) {
            if let Err(error) = consumer.close().await {
                tracing::warn!(%topic, %error, "consumer did not leave its group cleanly; its last records may be delivered again");
            }
        }
    }

    fn add_consumer(
        &mut self,
        source: TopicSource,
        result: Result<Box<dyn BusConsumer>, BusError>,
    ) {
        match result {
            Ok(consumer) => self.joined.push((source.0, consumer)),
            Err(error) => {
                tracing::warn!(topic = %source.0, %error, "could not join the consumer group, trying again");
                self.start_joining(source, REJOIN_DELAY);
            }
        }
    }

    /// Rejoins sources whose join task died: such a task does not name its source.
    fn join_missing(&mut self) {
        if self.joining.is_empty() {
            for source in self.sources {
                if self.joined.iter().all(|(topic, _)| *topic != source.0) {
                    self.start_joining(*source, REJOIN_DELAY);
                }
            }
        }
    }

    fn rejoin_topic(&mut self, topic: Topic) {
        self.joined.retain(|(joined, _)| *joined != topic);
        if let Some(source) = self.sources.iter().find(|(name, _)| *name == topic) {
            self.start_joining(*source, REJOIN_DELAY);
        }
    }

    fn start_joining(&mut self, source: TopicSource, delay: Duration) {
        let bus = self.bus.clone();
        self.joining.spawn(async move {
            sleep(delay).await;
            (source, bus.consume(source.1, &[source.0]).await)
        });
    }
}

enum ConsumerSignal {
    Joined(Option<Result<JoinResult, tokio::task::JoinError>>),
    Event(Topic, Result<BusEvent, BusError>),
}
