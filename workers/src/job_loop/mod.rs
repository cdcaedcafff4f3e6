//! Consumes records, runs them as jobs and commits their offsets: the one loop of every worker
//! role.
//!
//! One task owns the consumers and never works itself; jobs run beside it. An offset is finished
//! when its job has finished: a job that will be retried keeps its offset open in the ledger and
//! holds its lane. A panic ends one attempt of one job. Nothing here knows the content of a job.

pub(crate) mod dispatcher;
mod fair_queue;
mod gauges;
mod parked;
mod partitions;
mod slots;
mod sources;
#[cfg(test)]
mod tests;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::FutureExt;
use switchboard_backends::{
    bus::{BusEvent, IncomingRecord, MessageBus, PartitionId, trace::TraceContext},
    relay::LEASE,
};
use switchboard_schemas::{time::Timestamp, versioned::DecodeError};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{dispatcher::DecodedJob, sources::TopicSource};
use self::{
    dispatcher::{LaneDispatcher, LaneKey},
    gauges::LoopGauges,
    parked::{ParkedJob, ParkedJobs},
    partitions::{OwnedPartitions, RecordTicket},
    sources::{SourceConsumers, SourceEvent},
};
use crate::{
    config::WorkersConfig,
    dead_letter::{self, DeadLetterCause},
    metrics::WorkerMetrics,
};

/// Interval between two updates of the gauges.
const GAUGES_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between two announcements of waiting jobs. An ingress gives up a message after about
/// 20 s without one.
const WAITING_ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);
/// Records of newer versions that may wait in a process. Far below `queued_jobs_max`, at which the
/// loop stops reading.
const PARKED_NEWER_MAX: usize = 256;
/// Time for jobs to hand off their claims once the drain budget is spent.
const HANDOFF_GRACE: Duration = Duration::from_secs(3);

/// Work of one worker role on the records that it consumes.
#[async_trait]
pub(crate) trait JobHandler: Send + Sync + 'static {
    /// The decoded content of a record.
    type Job: Clone + Send + Sync + 'static;

    /// Topics of the role, each with its consumer group.
    const SOURCES: &'static [TopicSource];

    /// Decodes a record and chooses the lane in which it runs.
    fn decode_job(&self, record: &IncomingRecord) -> Result<DecodedJob<Self::Job>, DecodeError>;

    /// Runs a job. When `handoff` is cancelled, releases its claims and returns soon.
    async fn run_job(&self, job: Self::Job, handoff: &CancellationToken) -> JobEnd;

    /// Notifies the ingresses that wait for these jobs that the jobs are still queued.
    async fn announce_waiting(&self, _jobs: Vec<Self::Job>) {}

    /// Called when a partition was assigned: cached state of its conversations may be stale.
    fn on_assigned(&self) {}
}

/// Result of one run of a job.
#[derive(Debug)]
pub(crate) enum JobEnd {
    /// The job is done: finish its offset.
    Finished,
    /// The job runs again after this pause; its lane waits.
    RetryAfter(Duration),
    /// Another worker runs the job. Looks again after this pause, in case that it dies.
    HeldElsewhere(Duration),
    /// The job cannot be done: send its record to the dead letter topic, then finish its offset.
    DeadLetter(DeadLetterCause),
}

/// Job loop of one worker role.
pub(crate) struct JobLoop<H: JobHandler> {
    handler: Arc<H>,
    bus: Arc<dyn MessageBus>,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
    gauges: LoopGauges,
    dispatcher: LaneDispatcher<QueuedJob<H::Job>>,
    partitions: OwnedPartitions,
    running: JoinSet<(LaneKey, QueuedJob<H::Job>, JobEnd)>,
    parked: ParkedJobs<QueuedJob<H::Job>>,
    /// At most one announcement at a time.
    announcements: JoinSet<()>,
    handoff: CancellationToken,
}

struct QueuedJob<J> {
    ticket: RecordTicket,
    record: Arc<IncomingRecord>,
    /// The age of a record is counted from here: the clock of its producer may be hours off.
    taken_at: Instant,
    work: JobWork<J>,
    /// True once it ran, so that it no longer counts as waiting for its first start.
    started: bool,
}

#[derive(Clone)]
enum JobWork<J> {
    Run(J),
    DeadLetter(DeadLetterCause),
    /// Written by a newer version: waits for a worker that can decode it.
    Park,
}

/// Every event that can wake the loop.
enum WakeReason<J> {
    Stop,
    Ended(LaneKey, Box<QueuedJob<J>>, JobEnd),
    Aborted,
    Due,
    GaugesDue,
    AnnounceDue,
    Source(SourceEvent),
}

impl<H: JobHandler> JobLoop<H> {
    pub(crate) fn new(
        handler: Arc<H>,
        bus: Arc<dyn MessageBus>,
        config: WorkersConfig,
        metrics: Arc<WorkerMetrics>,
    ) -> Self {
        let group = H::SOURCES.first().map_or("none", |(_, group)| *group);
        Self {
            handler,
            bus,
            dispatcher: LaneDispatcher::new(&config),
            gauges: LoopGauges::new(&metrics, group),
            config,
            metrics,
            partitions: OwnedPartitions::default(),
            running: JoinSet::new(),
            parked: ParkedJobs::new(),
            announcements: JoinSet::new(),
            handoff: CancellationToken::new(),
        }
    }

    /// Runs until `shutdown` is cancelled, then drains.
    pub(crate) async fn run_until(mut self, shutdown: CancellationToken) {
        let mut sources = SourceConsumers::new(self.bus.clone(), H::SOURCES);
        let mut observe = interval(GAUGES_INTERVAL);
        observe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announce = interval(WAITING_ANNOUNCE_INTERVAL);
        announce.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_ready();
            let room = self.waiting_count() < self.config.queued_jobs_max;
            let due = self.parked.next_due();
            let wake = tokio::select! {
                biased;
                () = shutdown.cancelled() => WakeReason::Stop,
                Some(ended) = self.running.join_next() => wake_reason(ended),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => WakeReason::Due,
                _ = observe.tick() => WakeReason::GaugesDue,
                _ = announce.tick() => WakeReason::AnnounceDue,
                // A consumer that is not polled buffers a bounded number of records.
                event = sources.next_event(), if room => WakeReason::Source(event),
            };
            match wake {
                WakeReason::Stop => break,
                WakeReason::Ended(lane, queued, end) => {
                    self.handle_job_end(&mut sources, lane, *queued, end)
                }
                WakeReason::Aborted => {}
                WakeReason::Due => self.resume_due(),
                WakeReason::GaugesDue => self.update_gauges(&sources),
                WakeReason::AnnounceDue => self.announce_waiting(),
                WakeReason::Source(event) => self.handle_source_event(&mut sources, event),
            }
        }
        self.drain_jobs(&mut sources).await;
    }

    fn handle_source_event(&mut self, sources: &mut SourceConsumers, event: SourceEvent) {
        match event {
            SourceEvent::Bus(BusEvent::Record(record)) => self.take_record(sources, record),
            SourceEvent::Bus(BusEvent::Assigned {
                partition,
                epoch,
                committed,
            }) => {
                self.partitions
                    .add_partition(partition, epoch, committed.as_ref());
                self.handler.on_assigned();
            }
            SourceEvent::Bus(BusEvent::Revoked { partition }) => {
                self.drop_partitions(|owned| owned == partition)
            }
            SourceEvent::Lost(topic, error) => {
                self.metrics.count_unread_partition(&error);
                self.drop_partitions(|owned| owned.topic == topic);
            }
        }
    }

    fn take_record(&mut self, sources: &mut SourceConsumers, record: IncomingRecord) {
        let partition = record.partition;
        let (ticket, update) = self.partitions.take_record(&record);
        sources.apply_update(partition, update);
        let Some(ticket) = ticket else { return };
        let (lane, organization, work) = match self.handler.decode_job(&record) {
            Ok(decoded) => (
                decoded.lane,
                Some(decoded.organization),
                JobWork::Run(decoded.job),
            ),
            Err(error) => {
                let lane = LaneKey::of_unreadable(&record.key);
                (lane, None, self.work_for_unreadable(&record, error))
            }
        };
        self.dispatcher.push_job(
            lane,
            organization,
            QueuedJob {
                ticket,
                record: Arc::new(record),
                taken_at: Instant::now(),
                work,
                started: false,
            },
        );
    }

    /// Sends a malformed record to the dead letter topic, and parks one of a newer version until a
    /// worker can decode it. Beyond the bound it becomes a dead letter, too, because it would keep
    /// other records from running and an operator can replay it.
    fn work_for_unreadable<J>(&self, record: &IncomingRecord, error: DecodeError) -> JobWork<J> {
        if let DecodeError::Malformed(reason) = error {
            return JobWork::DeadLetter(DeadLetterCause {
                class: "malformed",
                reason,
                attempts: 0,
            });
        }
        let parked = self
            .pending_jobs()
            .filter(|queued| matches!(queued.work, JobWork::Park))
            .count();
        if parked >= PARKED_NEWER_MAX {
            return JobWork::DeadLetter(DeadLetterCause {
                class: "unknown-version",
                reason: error.to_string(),
                attempts: 0,
            });
        }
        // Logged at powers of two, so that a whole topic of such records does not fill the log.
        if (parked + 1).is_power_of_two() {
            tracing::warn!(partition = %record.partition, %error, parked, "parked a record of a newer version");
        }
        JobWork::Park
    }

    /// Drops the jobs of lost partitions. Running jobs finish under their claims, but commit
    /// nothing here.
    fn drop_partitions(&mut self, lost: impl Fn(PartitionId) -> bool) {
        let owned: Vec<_> = self
            .partitions
            .open_offsets()
            .map(|(partition, _)| partition)
            .filter(|owned| lost(*owned))
            .collect();
        for partition in owned {
            self.partitions.remove_partition(partition);
        }
        self.dispatcher
            .drop_waiting(|queued| lost(queued.ticket.partition));
        for parked in self
            .parked
            .take_lost(|queued| lost(queued.ticket.partition))
        {
            self.dispatcher.release_lane(&parked.lane);
        }
    }

    fn pending_jobs(&self) -> impl Iterator<Item = &QueuedJob<H::Job>> {
        self.dispatcher.waiting_jobs().chain(self.parked.jobs())
    }

    /// Returns the number of jobs that wait for a slot or for their retry and are counted.
    fn waiting_count(&self) -> usize {
        self.dispatcher.waiting_count() + self.parked.count()
    }

    fn start_ready(&mut self) {
        while let Some((lane, mut queued)) = self.dispatcher.start_next() {
            self.metrics.in_flight.inc();
            if !std::mem::replace(&mut queued.started, true) {
                let waited = Timestamp::now().millis_since(queued.record.published_at);
                self.metrics
                    .queue_wait
                    .observe(Duration::from_millis(waited).as_secs_f64());
            }
            let run = run_attempt(
                self.handler.clone(),
                self.bus.clone(),
                self.config.clone(),
                queued,
                self.handoff.clone(),
            );
            self.running.spawn(async move {
                let (queued, end) = run.await;
                (lane, queued, end)
            });
        }
    }

    fn handle_job_end(
        &mut self,
        sources: &mut SourceConsumers,
        lane: LaneKey,
        queued: QueuedJob<H::Job>,
        end: JobEnd,
    ) {
        self.metrics.in_flight.dec();
        let topic = queued.ticket.partition.topic.name();
        let outcome = match &end {
            JobEnd::Finished => "finished",
            JobEnd::RetryAfter(_) | JobEnd::HeldElsewhere(_) => "open",
            JobEnd::DeadLetter(_) => "dead",
        };
        self.metrics.jobs.with_label_values(&[topic, outcome]).inc();
        match end {
            JobEnd::Finished => {
                if let JobWork::DeadLetter(cause) = &queued.work {
                    self.metrics
                        .dead_letters
                        .with_label_values(&[cause.class])
                        .inc();
                }
                self.dispatcher.finish_job(&lane);
                let update = self.partitions.finish_record(&queued.ticket);
                sources.apply_update(queued.ticket.partition, update);
            }
            JobEnd::RetryAfter(pause) | JobEnd::HeldElsewhere(pause)
                if self.partitions.is_owned(&queued.ticket) =>
            {
                self.dispatcher.park_job(&lane);
                self.parked.push(ParkedJob {
                    due: Instant::now() + pause,
                    counts: lane.kind.is_counted() && matches!(end, JobEnd::RetryAfter(_)),
                    lane,
                    job: queued,
                });
            }
            JobEnd::DeadLetter(cause) if self.partitions.is_owned(&queued.ticket) => {
                self.dispatcher.park_job(&lane);
                self.dispatcher.resume_job(
                    &lane,
                    QueuedJob {
                        work: JobWork::DeadLetter(cause),
                        ..queued
                    },
                );
            }
            JobEnd::RetryAfter(_) | JobEnd::HeldElsewhere(_) | JobEnd::DeadLetter(_) => {
                self.dispatcher.finish_job(&lane)
            }
        }
    }

    fn resume_due(&mut self) {
        for parked in self.parked.take_due(Instant::now()) {
            self.dispatcher.resume_job(&parked.lane, parked.job);
        }
    }

    fn update_gauges(&mut self, sources: &SourceConsumers) {
        self.gauges.set_queued(self.waiting_count());
        self.gauges.set_lag(sources.partition_lags());
        self.gauges.set_open_offsets(self.partitions.open_offsets());
    }

    /// Notifies ingresses of waiting jobs. Without an announcement an ingress cannot distinguish a
    /// message queued behind a long reply from a lost one.
    fn announce_waiting(&mut self) {
        while self.announcements.try_join_next().is_some() {}
        let jobs = self.pending_jobs().filter_map(|queued| match &queued.work {
            JobWork::Run(job) => Some(job.clone()),
            JobWork::DeadLetter(_) | JobWork::Park => None,
        });
        let jobs: Vec<_> = jobs.collect();
        if self.announcements.is_empty() && !jobs.is_empty() {
            let handler = self.handler.clone();
            self.announcements
                .spawn(async move { handler.announce_waiting(jobs).await });
        }
    }

    /// Stops starting jobs; running jobs get their drain budget, then hand off.
    ///
    /// The partitions are released first: jobs that have not started here go to another worker at
    /// once, while running jobs are protected by their claims. The jobs that finish here are
    /// delivered again elsewhere and found complete.
    async fn drain_jobs(&mut self, sources: &mut SourceConsumers) {
        tracing::info!(running = self.running.len(), "draining");
        sources.leave_groups().await;
        let budget = Instant::now() + Duration::from_millis(self.config.drain_ms);
        self.await_running(sources, budget).await;
        self.handoff.cancel();
        self.await_running(sources, Instant::now() + HANDOFF_GRACE)
            .await;
        self.running.shutdown().await;
    }

    async fn await_running(&mut self, sources: &mut SourceConsumers, until: Instant) {
        while let Ok(Some(ended)) = timeout_at(until, self.running.join_next()).await {
            if let WakeReason::Ended(lane, queued, end) = wake_reason(ended) {
                self.handle_job_end(sources, lane, *queued, end);
            }
        }
    }
}

async fn run_attempt<H: JobHandler>(
    handler: Arc<H>,
    bus: Arc<dyn MessageBus>,
    config: WorkersConfig,
    queued: QueuedJob<H::Job>,
    handoff: CancellationToken,
) -> (QueuedJob<H::Job>, JobEnd) {
    let end = match queued.work.clone() {
        JobWork::Park if queued.taken_at.elapsed() < config.parked_max() => {
            JobEnd::RetryAfter(config.parked_delay())
        }
        JobWork::Park => JobEnd::DeadLetter(DeadLetterCause {
            class: "unknown-version",
            reason: "no worker that supports its version ran in time".into(),
            attempts: 0,
        }),
        JobWork::DeadLetter(cause) => send_to_dlq(&*bus, &queued.record, &cause, &config).await,
        JobWork::Run(job) => {
            let span = tracing::info_span!("process", topic = %queued.ticket.partition.topic, otel.kind = "consumer");
            let headers = &queued.record.headers;
            let trace = TraceContext::enter(&span, |name| {
                let header = headers.iter().find(|(known, _)| known == name)?;
                Some(header.1.as_str())
            });
            let run = AssertUnwindSafe(handler.run_job(job, &handoff)).catch_unwind();
            // The claim of a panicked attempt lives until its lease ends; the next attempt gets a
            // new number.
            trace.run(span, run).await.unwrap_or_else(|_| {
                tracing::error!(partition = %queued.ticket.partition, offset = queued.ticket.offset, "a job panicked");
                JobEnd::RetryAfter(LEASE)
            })
        }
    };
    (queued, end)
}

async fn send_to_dlq(
    bus: &dyn MessageBus,
    record: &IncomingRecord,
    cause: &DeadLetterCause,
    config: &WorkersConfig,
) -> JobEnd {
    match dead_letter::publish_dead_letter(bus, record, cause, config.publish_timeout()).await {
        Ok(()) => {
            tracing::error!(partition = %record.partition, offset = record.offset, class = cause.class, "sent a record to the dead letter topic");
            JobEnd::Finished
        }
        Err(error) => {
            tracing::warn!(partition = %record.partition, offset = record.offset, %error, "could not send a record to the dead letter topic");
            JobEnd::RetryAfter(config.parked_delay())
        }
    }
}

fn wake_reason<J>(
    ended: Result<(LaneKey, QueuedJob<J>, JobEnd), tokio::task::JoinError>,
) -> WakeReason<J> {
    match ended {
        Ok((lane, queued, end)) => WakeReason::Ended(lane, Box::new(queued), end),
        Err(_) => WakeReason::Aborted,
    }
}
