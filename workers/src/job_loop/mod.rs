//! Takes records, runs them and settles them (step 5 of the path): the one loop of every worker role.
//!
//! One task owns the consumers and only listens; jobs run beside it. A record is settled when its job has finished,
//! never when it merely ended: a job that is to be tried again stays open in its ledger and holds its lane. A panic
//! ends one attempt of one job. Nothing here knows what a job does.

pub(crate) mod dispatcher;
mod gauges;
mod partitions;
mod sources;
#[cfg(test)]
mod tests;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::FutureExt;
use switchboard_backends::{
    bus::{BusEvent, IncomingRecord, MessageBus, PartitionId},
    relay::LEASE,
};
use switchboard_schemas::{time::Timestamp, versioned::DecodeError};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) use self::sources::Source;
use self::{
    dispatcher::{Dispatcher, LaneKey},
    gauges::LoopGauges,
    partitions::{Partitions, Ticket},
    sources::{SourceEvent, Sources},
};
use crate::{
    config::WorkersConfig,
    dead_letter::{self, Cause},
    metrics::WorkerMetrics,
    trace,
};

/// How often gauges are read.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is said of jobs that they wait; an ingress gives up a message of which it hears nothing for some 20 s.
const WAITING_SIGN_INTERVAL: Duration = Duration::from_secs(5);
/// Records of newer programs that wait in a process; far below what stops it from reading on.
const PARKED_NEWER_MAX: usize = 256;
/// What jobs get to hand over their claims once the budget of the drain is spent.
const HANDOVER_GRACE: Duration = Duration::from_secs(3);

/// What a role does with a record.
#[async_trait]
pub(crate) trait Handler: Send + Sync + 'static {
    /// A record, read.
    type Job: Clone + Send + Sync + 'static;

    /// What the role reads.
    const SOURCES: &'static [Source];

    /// Reads a record and says in which lane it runs.
    fn read(&self, record: &IncomingRecord) -> Result<(LaneKey, Self::Job), DecodeError>;

    /// Does the work. When `handover` is cancelled it hands over what it holds and ends soon.
    async fn run(&self, job: Self::Job, handover: &CancellationToken) -> JobEnd;

    /// These jobs wait for their turn: tells those who wait for their replies.
    async fn say_waiting(&self, _jobs: Vec<Self::Job>) {}

    /// A partition became ours: what was remembered of its conversations may be old.
    fn assigned(&self) {}
}

/// How a run of a job ended.
#[derive(Debug)]
pub(crate) enum JobEnd {
    /// For good: settle its record.
    Finished,
    /// Not yet: run it again after this pause; its lane waits.
    Open(Duration),
    /// It cannot be done: bury the record, then settle it.
    Dead(Cause),
}

/// The loop of one role.
pub(crate) struct JobLoop<H: Handler> {
    handler: Arc<H>,
    bus: Arc<dyn MessageBus>,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
    gauges: LoopGauges,
    dispatcher: Dispatcher<Queued<H::Job>>,
    partitions: Partitions,
    running: JoinSet<(LaneKey, Queued<H::Job>, JobEnd)>,
    parked: Vec<(Instant, LaneKey, Queued<H::Job>)>,
    /// At most one round of signs at a time.
    signs: JoinSet<()>,
    handover: CancellationToken,
}

struct Queued<J> {
    ticket: Ticket,
    record: Arc<IncomingRecord>,
    work: Work<J>,
    /// It ran before, so that it no longer waits for its first start.
    started: bool,
}

#[derive(Clone)]
enum Work<J> {
    Run(J),
    Bury(Cause),
    /// Written by a newer program: waits for one that can read it.
    Park,
}

/// Everything that can wake the loop.
enum Wake<J> {
    Stop,
    Ended(LaneKey, Box<Queued<J>>, JobEnd),
    Aborted,
    Due,
    Observe,
    SignDue,
    Source(SourceEvent),
}

impl<H: Handler> JobLoop<H> {
    pub(crate) fn new(
        handler: Arc<H>,
        bus: Arc<dyn MessageBus>,
        config: WorkersConfig,
        metrics: Arc<WorkerMetrics>,
    ) -> Self {
        Self {
            handler,
            bus,
            dispatcher: Dispatcher::new(config.in_flight_max, config.patches_in_flight_max),
            config,
            gauges: LoopGauges::new(
                &metrics,
                H::SOURCES.first().map_or("none", |(_, group)| *group),
            ),
            metrics,
            partitions: Partitions::default(),
            running: JoinSet::new(),
            parked: Vec::new(),
            signs: JoinSet::new(),
            handover: CancellationToken::new(),
        }
    }

    /// Runs until `shutdown`, then drains.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut sources = Sources::new(self.bus.clone(), H::SOURCES);
        let mut observe = interval(OBSERVE_INTERVAL);
        observe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sign = interval(WAITING_SIGN_INTERVAL);
        sign.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_ready();
            let room = self.dispatcher.waiting() + self.parked.len() < self.config.queued_jobs_max;
            let due = self.parked.iter().map(|(due, _, _)| *due).min();
            let wake = tokio::select! {
                biased;
                () = shutdown.cancelled() => Wake::Stop,
                Some(ended) = self.running.join_next() => wake_of(ended),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Wake::Due,
                _ = observe.tick() => Wake::Observe,
                _ = sign.tick() => Wake::SignDue,
                // Not polled, a consumer holds a bounded number of records: this is the back-pressure.
                event = sources.next(), if room => Wake::Source(event),
            };
            match wake {
                Wake::Stop => break,
                Wake::Ended(lane, queued, end) => self.ended(&mut sources, lane, *queued, end),
                Wake::Aborted => {}
                Wake::Due => self.resume_due(),
                Wake::Observe => self.observe(&sources),
                Wake::SignDue => self.say_waiting(),
                Wake::Source(event) => self.heard(&mut sources, event),
            }
        }
        self.drain(&mut sources).await;
    }

    fn heard(&mut self, sources: &mut Sources, event: SourceEvent) {
        match event {
            SourceEvent::Bus(BusEvent::Record(record)) => self.take(sources, record),
            SourceEvent::Bus(BusEvent::Assigned {
                partition,
                epoch,
                committed,
            }) => {
                self.partitions.assign(partition, epoch, committed.as_ref());
                self.handler.assigned();
            }
            SourceEvent::Bus(BusEvent::Revoked { partition }) => {
                self.revoke(|owned| owned == partition)
            }
            SourceEvent::Lost(topic) => self.revoke(|owned| owned.topic == topic),
        }
    }

    fn take(&mut self, sources: &mut Sources, record: IncomingRecord) {
        let partition = record.partition;
        let (ticket, told) = self.partitions.take(&record);
        sources.tell(partition, told);
        let Some(ticket) = ticket else { return };
        let (lane, work) = match self.handler.read(&record) {
            Ok((lane, job)) => (lane, Work::Run(job)),
            Err(DecodeError::Malformed(reason)) => (
                lane_of(&record),
                Work::Bury(Cause {
                    class: "malformed",
                    reason,
                    attempts: 0,
                }),
            ),
            Err(error @ DecodeError::UnknownVersion(_)) => {
                (lane_of(&record), self.park(&record, &error))
            }
        };
        self.dispatcher.push(
            lane,
            Queued {
                ticket,
                record: Arc::new(record),
                work,
                started: false,
            },
        );
    }

    /// What a newer program wrote waits for one, but for what exceeds a bound: it would keep everybody else from working,
    /// and an operator can bring it back.
    fn park<J>(&self, record: &IncomingRecord, error: &DecodeError) -> Work<J> {
        let waiting = self
            .dispatcher
            .jobs_waiting()
            .chain(self.parked.iter().map(|(_, _, queued)| queued));
        let parked = waiting
            .filter(|queued| matches!(queued.work, Work::Park))
            .count();
        if parked >= PARKED_NEWER_MAX {
            return Work::Bury(Cause {
                class: "unknown-version",
                reason: error.to_string(),
                attempts: 0,
            });
        }
        // Powers of two: a whole topic of them must not fill the log.
        if (parked + 1).is_power_of_two() {
            tracing::warn!(partition = %record.partition, %error, parked, "parked until a newer program reads it");
        }
        Work::Park
    }

    /// Running jobs finish under their claims, and settle nothing here any more.
    fn revoke(&mut self, lost: impl Fn(PartitionId) -> bool) {
        let owned: Vec<_> = self
            .partitions
            .open()
            .map(|(partition, _)| partition)
            .filter(|owned| lost(*owned))
            .collect();
        for partition in owned {
            self.partitions.revoke(partition);
        }
        self.dispatcher
            .forget(|queued| lost(queued.ticket.partition));
        for (_, lane, _) in self
            .parked
            .extract_if(.., |(_, _, queued)| lost(queued.ticket.partition))
        {
            self.dispatcher.release(&lane);
        }
    }

    fn start_ready(&mut self) {
        while let Some((lane, mut queued)) = self.dispatcher.start() {
            self.metrics.in_flight.inc();
            if !std::mem::replace(&mut queued.started, true) {
                let waited = Timestamp::now().millis_since(queued.record.published_at);
                self.metrics
                    .queue_wait
                    .observe(Duration::from_millis(waited).as_secs_f64());
            }
            let run = run_one(
                self.handler.clone(),
                self.bus.clone(),
                self.config.clone(),
                queued,
                self.handover.clone(),
            );
            self.running.spawn(async move {
                let (queued, end) = run.await;
                (lane, queued, end)
            });
        }
    }

    fn ended(&mut self, sources: &mut Sources, lane: LaneKey, queued: Queued<H::Job>, end: JobEnd) {
        self.metrics.in_flight.dec();
        let topic = queued.ticket.partition.topic.name();
        let outcome = match &end {
            JobEnd::Finished => "finished",
            JobEnd::Open(_) => "open",
            JobEnd::Dead(_) => "dead",
        };
        self.metrics.jobs.with_label_values(&[topic, outcome]).inc();
        match end {
            JobEnd::Finished => {
                if let Work::Bury(cause) = &queued.work {
                    self.metrics
                        .dead_letters
                        .with_label_values(&[cause.class])
                        .inc();
                }
                self.dispatcher.finished(&lane);
                let told = self.partitions.finish(&queued.ticket);
                sources.tell(queued.ticket.partition, told);
            }
            JobEnd::Open(pause) if self.partitions.owns(&queued.ticket) => {
                self.dispatcher.parked(&lane);
                self.parked.push((Instant::now() + pause, lane, queued));
            }
            JobEnd::Dead(cause) if self.partitions.owns(&queued.ticket) => {
                self.dispatcher.parked(&lane);
                self.dispatcher.resume(
                    &lane,
                    Queued {
                        work: Work::Bury(cause),
                        ..queued
                    },
                );
            }
            JobEnd::Open(_) | JobEnd::Dead(_) => self.dispatcher.finished(&lane),
        }
    }

    fn resume_due(&mut self) {
        let now = Instant::now();
        for (_, lane, queued) in self.parked.extract_if(.., |(due, _, _)| *due <= now) {
            self.dispatcher.resume(&lane, queued);
        }
    }

    fn observe(&mut self, sources: &Sources) {
        self.gauges
            .queued(self.dispatcher.waiting() + self.parked.len());
        self.gauges.lag(sources.lag());
        self.gauges.open_offsets(self.partitions.open());
    }

    /// Without a sign an ingress could not tell a message that waits behind a long reply from one that nobody has.
    fn say_waiting(&mut self) {
        while self.signs.try_join_next().is_some() {}
        let parked = self.parked.iter().map(|(_, _, queued)| queued);
        let jobs = self
            .dispatcher
            .jobs_waiting()
            .chain(parked)
            .filter_map(|queued| match &queued.work {
                Work::Run(job) => Some(job.clone()),
                Work::Bury(_) | Work::Park => None,
            });
        let jobs: Vec<_> = jobs.collect();
        if self.signs.is_empty() && !jobs.is_empty() {
            let handler = self.handler.clone();
            self.signs
                .spawn(async move { handler.say_waiting(jobs).await });
        }
    }

    /// Nothing new starts; running jobs get their budget, then hand over.
    ///
    /// The partitions go first: what has not started here is another worker's at once, while running jobs are safe under
    /// their claims. What they finish is delivered again, and found done.
    async fn drain(&mut self, sources: &mut Sources) {
        tracing::info!(running = self.running.len(), "draining");
        sources.close().await;
        let budget = Instant::now() + Duration::from_millis(self.config.drain_ms);
        self.finish_running(sources, budget).await;
        self.handover.cancel();
        self.finish_running(sources, Instant::now() + HANDOVER_GRACE)
            .await;
        self.running.shutdown().await;
    }

    async fn finish_running(&mut self, sources: &mut Sources, until: Instant) {
        while let Ok(Some(ended)) = timeout_at(until, self.running.join_next()).await {
            if let Wake::Ended(lane, queued, end) = wake_of(ended) {
                self.ended(sources, lane, *queued, end);
            }
        }
    }
}

fn age_ms(record: &IncomingRecord) -> u64 {
    Timestamp::now().millis_since(record.published_at)
}

async fn run_one<H: Handler>(
    handler: Arc<H>,
    bus: Arc<dyn MessageBus>,
    config: WorkersConfig,
    queued: Queued<H::Job>,
    handover: CancellationToken,
) -> (Queued<H::Job>, JobEnd) {
    let end = match queued.work.clone() {
        Work::Park if age_ms(&queued.record) < config.parked_max_ms => {
            JobEnd::Open(config.parked_delay())
        }
        Work::Park => JobEnd::Dead(Cause {
            class: "unknown-version",
            reason: "no program that reads its version took it in time".into(),
            attempts: 0,
        }),
        Work::Bury(cause) => bury(&*bus, &queued.record, &cause, &config).await,
        Work::Run(job) => {
            let span = tracing::info_span!("process", topic = %queued.ticket.partition.topic, otel.kind = "consumer");
            trace::continue_trace(&span, &queued.record.headers);
            let run = AssertUnwindSafe(handler.run(job, &handover))
                .catch_unwind()
                .instrument(span);
            // The claim of the attempt that panicked lives until its lease ends; the next one counts as another.
            run.await.unwrap_or_else(|_| {
                tracing::error!(partition = %queued.ticket.partition, offset = queued.ticket.offset, "a job panicked");
                JobEnd::Open(LEASE)
            })
        }
    };
    (queued, end)
}

async fn bury(
    bus: &dyn MessageBus,
    record: &IncomingRecord,
    cause: &Cause,
    config: &WorkersConfig,
) -> JobEnd {
    match dead_letter::bury(bus, record, cause, config.publish_timeout()).await {
        Ok(()) => {
            tracing::error!(partition = %record.partition, offset = record.offset, class = cause.class, "buried a record");
            JobEnd::Finished
        }
        Err(error) => {
            tracing::warn!(partition = %record.partition, offset = record.offset, %error, "could not bury a record");
            JobEnd::Open(config.parked_delay())
        }
    }
}

/// A record that cannot be read still waits its turn in the conversation that its key names.
fn lane_of(record: &IncomingRecord) -> LaneKey {
    LaneKey {
        key: record.key.clone(),
        kind: dispatcher::LaneKind::Turns,
    }
}

fn wake_of<J>(ended: Result<(LaneKey, Queued<J>, JobEnd), tokio::task::JoinError>) -> Wake<J> {
    match ended {
        Ok((lane, queued, end)) => Wake::Ended(lane, Box::new(queued), end),
        Err(_) => Wake::Aborted,
    }
}
