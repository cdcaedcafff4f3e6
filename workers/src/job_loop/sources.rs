//! The consumers of one role: joins them, joins again after an error, and hands out what any of them says.

use std::{sync::Arc, time::Duration};

use futures::future::{FutureExt, select_all};
use switchboard_backends::bus::{BusConsumer, BusError, BusEvent, MessageBus, PartitionId};
use switchboard_schemas::topics::Topic;
use tokio::{task::JoinSet, time::sleep};

use super::partitions::Told;

/// Pause before a consumer that failed is made anew.
const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// A topic and the group that reads it.
pub(crate) type Source = (Topic, &'static str);

/// What came of joining.
type Joined = (Source, Result<Box<dyn BusConsumer>, BusError>);

/// One consumer for each source.
pub(crate) struct Sources {
    bus: Arc<dyn MessageBus>,
    sources: &'static [Source],
    joined: Vec<(Topic, Box<dyn BusConsumer>)>,
    /// Joining talks to the bus, and the loop never waits for that.
    joining: JoinSet<Joined>,
}

/// What a consumer said.
pub(crate) enum SourceEvent {
    /// Something happened to it.
    Bus(BusEvent),
    /// It ended; its partitions are another's.
    Lost(Topic),
}

impl Sources {
    pub(crate) fn new(bus: Arc<dyn MessageBus>, sources: &'static [Source]) -> Self {
        let mut this = Self {
            bus,
            sources,
            joined: Vec::new(),
            joining: JoinSet::new(),
        };
        for source in sources {
            this.join(*source, Duration::ZERO);
        }
        this
    }

    /// The next thing that any consumer says. Cancel-safe.
    pub(crate) async fn next(&mut self) -> SourceEvent {
        loop {
            let heard = if self.joined.is_empty() {
                Heard::Joined(self.joining.join_next().await)
            } else {
                let any = select_all(self.joined.iter_mut().map(|(topic, consumer)| {
                    let topic = *topic;
                    consumer.next().map(move |event| (topic, event)).boxed()
                }));
                tokio::select! {
                    Some(joined) = self.joining.join_next() => Heard::Joined(Some(joined)),
                    ((topic, event), _, _) = any => Heard::Event(topic, event),
                }
            };
            match heard {
                Heard::Joined(Some(Ok((source, result)))) => self.joined(source, result),
                Heard::Joined(_) => self.join_missing(),
                Heard::Event(_, Ok(event)) => {
                    // The first one is asked first: taken in turn, a busy topic cannot starve another.
                    self.joined.rotate_left(1);
                    return SourceEvent::Bus(event);
                }
                Heard::Event(topic, Err(error)) => {
                    tracing::warn!(%topic, %error, "consumer ended, joining again");
                    self.lose(topic);
                    return SourceEvent::Lost(topic);
                }
            }
        }
    }

    /// Passes on what a ledger had to say.
    pub(crate) fn tell(&mut self, partition: PartitionId, told: Told) {
        let Some((_, consumer)) = self
            .joined
            .iter_mut()
            .find(|(topic, _)| *topic == partition.topic)
        else {
            return;
        };
        if let Some(mark) = told.mark {
            consumer.commit(partition, mark);
        }
        match told.pause {
            Some(true) => consumer.pause(partition),
            Some(false) => consumer.resume(partition),
            None => {}
        }
    }

    /// Records behind the newest, per partition.
    pub(crate) fn lag(&self) -> Vec<(PartitionId, u64)> {
        self.joined
            .iter()
            .flat_map(|(_, consumer)| consumer.lag())
            .collect()
    }

    /// Writes the last marks and leaves the groups; nothing is heard or told after it.
    pub(crate) async fn close(&mut self) {
        self.joining.abort_all();
        for (topic, consumer) in std::mem::take(&mut self.joined) {
            if let Err(error) = consumer.close().await {
                tracing::warn!(%topic, %error, "consumer did not leave cleanly; its last records may come again");
            }
        }
    }

    fn joined(&mut self, source: Source, result: Result<Box<dyn BusConsumer>, BusError>) {
        match result {
            Ok(consumer) => self.joined.push((source.0, consumer)),
            Err(error) => {
                tracing::warn!(topic = %source.0, %error, "could not join the consumer group, trying again");
                self.join(source, REJOIN_DELAY);
            }
        }
    }

    /// A join that died has not said of which source it was.
    fn join_missing(&mut self) {
        if self.joining.is_empty() {
            for source in self.sources {
                if self.joined.iter().all(|(topic, _)| *topic != source.0) {
                    self.join(*source, REJOIN_DELAY);
                }
            }
        }
    }

    fn lose(&mut self, topic: Topic) {
        self.joined.retain(|(joined, _)| *joined != topic);
        if let Some(source) = self.sources.iter().find(|(name, _)| *name == topic) {
            self.join(*source, REJOIN_DELAY);
        }
    }

    fn join(&mut self, source: Source, delay: Duration) {
        let bus = self.bus.clone();
        self.joining.spawn(async move {
            sleep(delay).await;
            (source, bus.consume(source.1, &[source.0]).await)
        });
    }
}

enum Heard {
    Joined(Option<Result<Joined, tokio::task::JoinError>>),
    Event(Topic, Result<BusEvent, BusError>),
}
