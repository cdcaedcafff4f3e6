//! Follows one reply for one client: pushed frames first, then the log for lost frames, then the
//! store if the log is gone. Hands the reply to another worker if the first one is silent.

mod polling;

use std::{collections::VecDeque, time::Duration};

use bytes::{Bytes, BytesMut};
use switchboard_schemas::{
    agent::OnDisconnect,
    ids::{AgentId, MessageId, OrgId},
    reply_event::{Frame, ReplyEnd, ReplySignal},
};
use tokio::time::Instant;

use super::{
    assembly::{AssemblyStep, FrameSource, ReplyAssembly, ReplyUpdate, TextConflict},
    cancellation,
    resume::{ReplyContent, ResumePosition},
    timeouts::ReplyTimeouts,
};
use crate::{
    http::{ApiError, ApiResult},
    jobs::publish::TurnJob,
    state::{AppState, pending_replies::ReplySubscription},
};

/// Next event of a reply.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Text(Bytes),
    /// Something other than text arrived: the start, structured data or progress of a tool.
    ReplyUpdate(ReplyUpdate),
    /// The reply ended, and all of its text was returned.
    Ended(Box<ReplyEnd>),
    /// The reply can no longer be followed.
    Lost(StreamFailure),
}

/// Reason why a reply can no longer be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFailure {
    /// No worker started the reply in time.
    NeverStarted,
    /// The worker stopped sending frames and heartbeats.
    WentSilent,
    /// The stored text contradicts the sent text.
    TextConflict(TextConflict),
}

/// One client's view of one reply.
pub(crate) struct ReplyStream {
    state: AppState,
    org: OrgId,
    reply: MessageId,
    /// Job to publish again if its worker is silent; `None` for readers and duplicates.
    job: Option<TurnJob>,
    addressed_agent_id: Option<AgentId>,
    subscription: ReplySubscription,
    /// Events to return before following continues.
    queued_events: VecDeque<StreamEvent>,
    start_offset: u64,
    has_ended: bool,
    on_disconnect: OnDisconnect,
    assembly: ReplyAssembly,
    /// Frames that were read from log or store and not yet applied.
    backlog: VecDeque<Frame>,
    timeouts: ReplyTimeouts,
    /// True as long as frames may be pushed to another ingress.
    polls_often: bool,
    next_poll: Instant,
    gap_open: bool,
    empty_polls: u32,
}

/// Reason for waking up.
enum StreamWake {
    Pushed(ReplySignal),
    Overflowed,
    PollDue,
}

impl ReplyStream {
    /// Follows the reply to `job`. The subscription must exist before the job is published.
    pub(crate) fn new(state: AppState, job: TurnJob, subscription: ReplySubscription) -> Self {
        let timeouts = ReplyTimeouts::new(&state.config, Instant::now());
        let (org, reply) = (job.turn().org_id.clone(), job.turn().reply_id());
        subscription.watch();
        let mut this = Self::with_timeouts(state, org, reply, subscription, timeouts);
        this.polls_often = false;
        this.next_poll = this.next_poll_after(Instant::now());
        this.addressed_agent_id = job.agent_id().cloned();
        this.job = Some(job);
        this
    }

    /// Follows the reply to `job`, which was published before: an earlier record of it may push the
    /// frames to another ingress.
    pub(crate) fn for_retry(
        state: AppState,
        job: TurnJob,
        subscription: ReplySubscription,
    ) -> Self {
        let mut this = Self::new(state, job, subscription);
        this.polls_often = true;
        this.next_poll = Instant::now();
        this
    }

    /// Follows a reply that another request started.
    pub(crate) fn for_reader(state: AppState, org: OrgId, reply: MessageId) -> Self {
        let subscription = state.pending_replies.wait_for_reply(reply.clone());
        let timeouts = ReplyTimeouts::for_reader(&state.config, Instant::now());
        Self::with_timeouts(state, org, reply, subscription, timeouts)
    }

    /// Follows the reply that an earlier identical request started, beginning with `known` frames.
    /// The earlier request watches the worker.
    pub(crate) fn for_duplicate(
        state: AppState,
        job: &TurnJob,
        subscription: ReplySubscription,
        known: Vec<Frame>,
    ) -> Self {
        let timeouts = ReplyTimeouts::for_reader(&state.config, Instant::now());
        let (org, reply) = (job.turn().org_id.clone(), job.turn().reply_id());
        let mut this = Self::with_timeouts(state, org, reply, subscription, timeouts);
        this.addressed_agent_id = job.agent_id().cloned();
        this.backlog = known.into();
        this.next_poll = Instant::now();
        this
    }

    fn with_timeouts(
        state: AppState,
        org: OrgId,
        reply: MessageId,
        subscription: ReplySubscription,
        timeouts: ReplyTimeouts,
    ) -> Self {
        state.metrics.replies_open.inc();
        Self {
            next_poll: Instant::now() + Duration::from_millis(state.config.reader_poll_ms),
            timeouts,
            polls_often: true,
            state,
            org,
            reply,
            job: None,
            addressed_agent_id: None,
            subscription,
            queued_events: VecDeque::new(),
            start_offset: 0,
            has_ended: false,
            on_disconnect: OnDisconnect::Continue,
            assembly: ReplyAssembly::default(),
            backlog: VecDeque::new(),
            gap_open: false,
            empty_polls: 0,
        }
    }

    /// Sets the effect of dropping this stream before the reply has ended. Has no effect on
    /// readers.
    pub(crate) fn on_disconnect(mut self, on_disconnect: OnDisconnect) -> Self {
        if !self.only_follows() {
            self.on_disconnect = on_disconnect;
        }
        self
    }

    /// Loads the available part of the reply and continues from `position`.
    pub(crate) async fn resume_at(
        mut self,
        position: &ResumePosition,
        is_final: bool,
    ) -> ApiResult<Self> {
        if is_final {
            self.read_store().await;
        } else {
            self.read_log(0).await;
        }
        let is_unreadable = if is_final {
            self.backlog.is_empty()
        } else {
            self.timeouts.is_relay_unavailable()
        };
        if is_unreadable {
            return Err(ApiError::unavailable(
                "the reply cannot be read at the moment",
            ));
        }
        let (text, rest) = self.drain_backlog();
        let known = ReplyContent {
            text: &text,
            generation: self.assembly.generation(),
        };
        let start = position.start_in(&known)?;
        self.start_offset = start as u64;
        let (last_events, updates): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|event| !matches!(event, StreamEvent::ReplyUpdate(_)));
        self.queued_events.extend(updates);
        if start < text.len() {
            self.queued_events
                .push_back(StreamEvent::Text(text.slice(start..)));
        }
        self.queued_events.extend(last_events);
        Ok(self)
    }

    /// Returns the byte offset at which the returned text starts.
    pub(crate) const fn start_offset(&self) -> u64 {
        self.start_offset
    }

    pub(crate) const fn reply(&self) -> &MessageId {
        &self.reply
    }

    /// Returns the state assembled so far.
    pub(crate) const fn assembly(&self) -> &ReplyAssembly {
        &self.assembly
    }

    /// Returns the agent that this request addresses; `None` for teams.
    pub(crate) const fn addressed_agent(&self) -> Option<&AgentId> {
        self.addressed_agent_id.as_ref()
    }

    /// Returns the shared application state.
    pub(crate) const fn state(&self) -> &AppState {
        &self.state
    }

    /// Waits for the next event. Dropping the future may lose frames, which are then read from the
    /// log.
    pub(crate) async fn next(&mut self) -> StreamEvent {
        let next = match self.queued_events.pop_front() {
            Some(next) => next,
            None => self.next_from_sources().await,
        };
        self.has_ended = matches!(next, StreamEvent::Ended(_) | StreamEvent::Lost(_));
        next
    }

    async fn next_from_sources(&mut self) -> StreamEvent {
        loop {
            if let Some(frame) = self.backlog.pop_front() {
                if let Some(next) = self.apply_logged(frame) {
                    return next;
                }
                continue;
            }
            match self.next_wake().await {
                StreamWake::Pushed(signal) => {
                    if let Some(next) = self.apply_pushed(signal).await {
                        return next;
                    }
                }
                StreamWake::Overflowed => self.pull_from_log().await,
                StreamWake::PollDue => {
                    self.timeouts
                        .record_lateness(self.next_poll, Instant::now());
                    if let Some(failure) = self.poll_sources().await {
                        return StreamEvent::Lost(failure);
                    }
                }
            }
        }
    }

    /// Applies the whole backlog. Returns its text and the other events.
    fn drain_backlog(&mut self) -> (Bytes, Vec<StreamEvent>) {
        let (mut text, mut rest) = (BytesMut::new(), Vec::new());
        while let Some(frame) = self.backlog.pop_front() {
            match self.apply_logged(frame) {
                Some(StreamEvent::Text(bytes)) => text.extend_from_slice(&bytes),
                // The event `start` (`Began`) is formatted after the whole backlog was applied, so
                // that it contains the structured data already.
                Some(StreamEvent::ReplyUpdate(ReplyUpdate::Ui))
                    if rest.iter().any(|next| {
                        matches!(next, StreamEvent::ReplyUpdate(ReplyUpdate::Began))
                    }) => {}
                Some(next) => rest.push(next),
                None => {}
            }
        }
        (text.freeze(), rest)
    }

    async fn next_wake(&mut self) -> StreamWake {
        if self.subscription.must_pull() {
            return StreamWake::Overflowed;
        }
        // Frames first: after a slow client's pause a poll is always due, although the frames are
        // already queued.
        tokio::select! {
            biased;
            Some(signal) = self.subscription.next() => StreamWake::Pushed(signal),
            () = tokio::time::sleep_until(self.next_poll) => StreamWake::PollDue,
        }
    }

    async fn apply_pushed(&mut self, signal: ReplySignal) -> Option<StreamEvent> {
        let now = Instant::now();
        let step = match signal {
            ReplySignal::Waiting => {
                self.timeouts.record_waiting(now);
                return None;
            }
            ReplySignal::Heartbeat { attempt } => {
                self.record_push();
                self.assembly.record_attempt(attempt);
                self.timeouts.record_sign_of_life(now);
                // The next poll is not postponed: a heartbeat does not show that the frames before
                // it have arrived.
                return None;
            }
            ReplySignal::Frame(frame) => self.assembly.apply_frame(frame, FrameSource::Push),
        };
        self.record_push();
        self.timeouts.record_sign_of_life(now);
        if step != AssemblyStep::Gap {
            if !self.gap_open {
                self.next_poll = self.next_poll_after(now);
            }
            return into_event(step);
        }
        if !self.gap_open {
            self.gap_open = true;
            self.repair_gap().await;
        }
        None
    }

    /// Records that frames are pushed to this ingress. Its readers do not know for how long.
    const fn record_push(&mut self) {
        self.polls_often = self.only_follows();
    }

    fn apply_logged(&mut self, frame: Frame) -> Option<StreamEvent> {
        let before = self.assembly.progress();
        let step = self.assembly.apply_frame(frame, FrameSource::Log);
        if self.assembly.progress() != before {
            self.timeouts.record_sign_of_life(Instant::now());
            self.empty_polls = 0;
        }
        if step != AssemblyStep::Gap
            && self.gap_open
            && matches!(step, AssemblyStep::Text(_) | AssemblyStep::Ended(_))
        {
            self.gap_open = false;
            self.state.metrics.gaps_repaired.inc();
        }
        into_event(step)
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        self.state.metrics.replies_open.dec();
        if let Some(job) = &self.job
            && self.on_disconnect == OnDisconnect::Cancel
            && !self.has_ended
            && self.subscription.end_watch()
        {
            cancellation::cancel_in_background(&self.state, job);
        }
    }
}

fn into_event(step: AssemblyStep) -> Option<StreamEvent> {
    match step {
        AssemblyStep::Nothing | AssemblyStep::Gap => None,
        AssemblyStep::Text(bytes) => Some(StreamEvent::Text(bytes)),
        AssemblyStep::ReplyUpdate(update) => Some(StreamEvent::ReplyUpdate(update)),
        AssemblyStep::Ended(end) => Some(StreamEvent::Ended(end)),
        AssemblyStep::Broken(conflict) => {
            Some(StreamEvent::Lost(StreamFailure::TextConflict(conflict)))
        }
    }
}
