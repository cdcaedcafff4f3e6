//! Follows one reply for one client: pushed frames first, the log for what was lost, the store where the log is gone,
//! and another worker where the first one has died.

use std::{collections::VecDeque, time::Duration};

use bytes::{Bytes, BytesMut};
use switchboard_schemas::{
    agent::OnDisconnect,
    conversation_job::{ReplyJob, TeamRouting},
    ids::{AgentId, MessageId, OrgId},
    reply_event::{Frame, ReplyEnd},
    topics::Topic,
};
use tokio::time::Instant;

use super::{
    assembly::{Breach, FrameSource, Note, ReplyAssembly, Step},
    disconnect,
    patience::{Patience, Verdict},
    recovery,
    registry::ReplySlot,
    resume::{Known, Position},
};
use crate::{
    error::{ApiError, ApiResult},
    publish::{TurnJob, publish},
    state::AppState,
};

/// How soon a gap that could not be closed is looked at again: its bytes are on their way from one place to another.
const GAP_RETRY: Duration = Duration::from_millis(200);
/// How often, in looks that find nothing, a look reads from the beginning: a new generation counts its frames anew.
const THOROUGH_EVERY: u32 = 2;
/// The same for a reader, which looks more often.
const READER_THOROUGH_EVERY: u32 = 10;

/// What comes next of a reply.
#[derive(Debug)]
pub(crate) enum Next {
    /// Bytes.
    Text(Bytes),
    /// Something beside the text.
    Note(Note),
    /// All of its text was given out.
    Ended(Box<ReplyEnd>),
    /// It cannot be followed any further.
    Lost(Loss),
}

/// Why a reply cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// No worker was heard of.
    Unheard,
    /// No worker is heard of any more.
    Silent,
    /// What was sent is not what is kept.
    Breach(Breach),
}

/// One client's view of one reply.
pub(crate) struct Follower {
    state: AppState,
    org: OrgId,
    reply: MessageId,
    /// What is given to another worker when the first one falls silent; a mere reader has none.
    job: Option<TurnJob>,
    addressed: Option<AgentId>,
    slot: ReplySlot,
    /// What was prepared and comes before anything that is still to be followed.
    ahead: VecDeque<Next>,
    begins_at: u64,
    over: bool,
    on_disconnect: OnDisconnect,
    assembly: ReplyAssembly,
    /// Frames that were read back and not yet taken.
    backlog: VecDeque<Frame>,
    patience: Patience,
    next_look: Instant,
    gap_open: bool,
    fruitless_looks: u32,
}

/// What can wake a follower.
enum Wake {
    Pushed(Frame),
    Overflowed,
    LookDue,
}

impl Follower {
    /// Follows the reply to `job`, whose slot was taken before the job was published.
    pub(crate) fn new(state: AppState, job: TurnJob, slot: ReplySlot) -> Self {
        let patience = Patience::new(&state.config, Instant::now());
        let (org, reply) = (job.turn().org_id.clone(), job.turn().reply_id());
        let mut this = Self::with(state, org, reply, slot, patience);
        this.next_look = Instant::now() + Duration::from_millis(this.state.config.log_poll_ms);
        this.addressed = job.agent_id().cloned();
        this.job = Some(job);
        this
    }

    /// Follows a reply that another request asked for.
    pub(crate) fn reading(state: AppState, org: OrgId, reply: MessageId) -> Self {
        let slot = state.registry.wait_for_reply(reply.clone());
        let patience = Patience::of_reader(&state.config, Instant::now());
        Self::with(state, org, reply, slot, patience)
    }

    /// Reads the reply that an earlier request of the same `job` asked for, beginning with what is known of it. Whoever
    /// asked first looks after its worker.
    pub(crate) fn joining(
        state: AppState,
        job: &TurnJob,
        slot: ReplySlot,
        known: Vec<Frame>,
    ) -> Self {
        let patience = Patience::of_reader(&state.config, Instant::now());
        let (org, reply) = (job.turn().org_id.clone(), job.turn().reply_id());
        let mut this = Self::with(state, org, reply, slot, patience);
        this.addressed = job.agent_id().cloned();
        this.backlog = known.into();
        this.next_look = Instant::now();
        this
    }

    fn with(
        state: AppState,
        org: OrgId,
        reply: MessageId,
        slot: ReplySlot,
        patience: Patience,
    ) -> Self {
        state.metrics.replies_open.inc();
        Self {
            next_look: Instant::now() + Duration::from_millis(state.config.reader_poll_ms),
            patience,
            state,
            org,
            reply,
            job: None,
            addressed: None,
            slot,
            ahead: VecDeque::new(),
            begins_at: 0,
            over: false,
            on_disconnect: OnDisconnect::Continue,
            assembly: ReplyAssembly::default(),
            backlog: VecDeque::new(),
            gap_open: false,
            fruitless_looks: 0,
        }
    }

    /// What becomes of the reply when this follower is dropped before it has ended; a reader that goes changes nothing.
    pub(crate) fn on_disconnect(mut self, on_disconnect: OnDisconnect) -> Self {
        if !self.is_reader() {
            self.on_disconnect = on_disconnect;
        }
        self
    }

    /// Takes what exists by now, and goes on from `position` in it.
    pub(crate) async fn resume(mut self, position: &Position, is_final: bool) -> ApiResult<Self> {
        if is_final {
            self.read_store().await;
        } else {
            self.read_log(0).await;
        }
        let unread = if is_final {
            self.backlog.is_empty()
        } else {
            self.patience.relay_is_away()
        };
        if unread {
            return Err(ApiError::unavailable(
                "the reply cannot be read at the moment",
            ));
        }
        let (text, rest) = self.drain();
        let known = Known {
            text: &text,
            generation: self.assembly.known_generation(),
        };
        let start = position.start_in(&known)?;
        self.begins_at = start as u64;
        let (end, notes): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|next| !matches!(next, Next::Note(_)));
        self.ahead.extend(notes);
        if start < text.len() {
            self.ahead.push_back(Next::Text(text.slice(start..)));
        }
        self.ahead.extend(end);
        Ok(self)
    }

    /// The byte of the reply at which the text begins that is given out.
    pub(crate) const fn begins_at(&self) -> u64 {
        self.begins_at
    }

    /// The reply.
    pub(crate) const fn reply(&self) -> &MessageId {
        &self.reply
    }

    /// What is known of the reply.
    pub(crate) const fn assembly(&self) -> &ReplyAssembly {
        &self.assembly
    }

    /// The agent that was addressed, if this follower's request named one.
    pub(crate) const fn addressed(&self) -> Option<&AgentId> {
        self.addressed.as_ref()
    }

    /// The process's shared state.
    pub(crate) const fn state(&self) -> &AppState {
        &self.state
    }

    /// Waits for what comes next. Dropping the future may lose frames, which the log gives back.
    pub(crate) async fn next(&mut self) -> Next {
        let next = match self.ahead.pop_front() {
            Some(next) => next,
            None => self.follow().await,
        };
        self.over = matches!(next, Next::Ended(_) | Next::Lost(_));
        next
    }

    async fn follow(&mut self) -> Next {
        loop {
            if let Some(frame) = self.backlog.pop_front() {
                if let Some(next) = self.take_logged(frame) {
                    return next;
                }
                continue;
            }
            match self.wake().await {
                Wake::Pushed(frame) => {
                    if let Some(next) = self.take_pushed(frame).await {
                        return next;
                    }
                }
                Wake::Overflowed => self.pull().await,
                Wake::LookDue => {
                    if let Some(loss) = self.look().await {
                        return Next::Lost(loss);
                    }
                }
            }
        }
    }

    /// Takes the whole backlog: its text as one, and what else it held.
    fn drain(&mut self) -> (Bytes, Vec<Next>) {
        let (mut text, mut rest) = (BytesMut::new(), Vec::new());
        while let Some(frame) = self.backlog.pop_front() {
            match self.take_logged(frame) {
                Some(Next::Text(bytes)) => text.extend_from_slice(&bytes),
                // The beginning is told last of all, with whatever is to be shown by then.
                Some(Next::Note(Note::Ui))
                    if rest
                        .iter()
                        .any(|next| matches!(next, Next::Note(Note::Began))) => {}
                Some(next) => rest.push(next),
                None => {}
            }
        }
        (text.freeze(), rest)
    }

    async fn wake(&mut self) -> Wake {
        if self.slot.must_pull() {
            return Wake::Overflowed;
        }
        // Frames first: after a client's pause the look is always due, and yet what it would find lies in the queue.
        tokio::select! {
            biased;
            Some(frame) = self.slot.next() => Wake::Pushed(frame),
            () = tokio::time::sleep_until(self.next_look) => Wake::LookDue,
        }
    }

    async fn take_pushed(&mut self, frame: Frame) -> Option<Next> {
        let now = Instant::now();
        if frame.attempt == 0 {
            self.patience.waits(now);
            return None;
        }
        self.patience.sign(now);
        let step = self.assembly.accept(frame, FrameSource::Push);
        if step != Step::Gap {
            if !self.gap_open {
                self.next_look = now + self.look_interval();
            }
            return into_next(step);
        }
        if !self.gap_open {
            self.gap_open = true;
            self.repair().await;
        }
        None
    }

    fn take_logged(&mut self, frame: Frame) -> Option<Next> {
        let before = self.assembly.progress();
        let step = self.assembly.accept(frame, FrameSource::Log);
        if self.assembly.progress() != before {
            self.patience.sign(Instant::now());
            self.fruitless_looks = 0;
        }
        if step != Step::Gap && self.gap_open && matches!(step, Step::Text(_) | Step::Ended(_)) {
            self.gap_open = false;
            self.state.metrics.gaps_repaired.inc();
        }
        into_next(step)
    }

    /// A slow client's frames were dropped: it goes on from the log, at its own pace.
    async fn pull(&mut self) {
        self.state.metrics.replies_pulled.inc();
        self.patience.sign(Instant::now());
        self.read_log(self.assembly.logged_seq()).await;
    }

    /// Something is missing: the log has it, or the store once the reply is finished.
    async fn repair(&mut self) {
        let in_log = self.read_log(self.assembly.logged_seq()).await;
        if !in_log && !self.read_log(0).await {
            self.read_store().await;
        }
        self.next_look = Instant::now() + GAP_RETRY;
    }

    /// Nothing came for a while: is there something that was not pushed, and does anyone still work on it?
    async fn look(&mut self) -> Option<Loss> {
        let every = if self.is_reader() {
            READER_THOROUGH_EVERY
        } else {
            THOROUGH_EVERY
        };
        let thorough = self.fruitless_looks % every == every - 1;
        let after_seq = if thorough {
            0
        } else {
            self.assembly.logged_seq()
        };
        self.fruitless_looks += 1;
        self.read_log(after_seq).await;
        if self.backlog_is_known() {
            self.backlog.clear();
        }
        // Without a word of it the relay may be refusing what workers write, though it answers what we ask.
        let unheard = thorough && self.patience.is_unheard();
        let store_may_know = if self.is_reader() {
            thorough
        } else {
            unheard || self.patience.is_last_hope()
        };
        if self.gap_open || self.patience.relay_is_away() || store_may_know {
            self.read_store().await;
        }
        self.next_look = Instant::now() + self.look_interval();
        if !self.backlog.is_empty() {
            return None;
        }
        match self.patience.judge(Instant::now()) {
            Verdict::Wait => None,
            Verdict::GiveUpUnheard => Some(Loss::Unheard),
            Verdict::GiveUpSilent => Some(Loss::Silent),
            Verdict::TakeOver => {
                self.take_over().await;
                None
            }
        }
    }

    /// Whether all that was read back was taken before, so that it is no sign of life.
    fn backlog_is_known(&self) -> bool {
        let (generation, seq) = (self.assembly.generation(), self.assembly.logged_seq());
        self.backlog
            .iter()
            .all(|frame| frame.generation == generation && frame.seq <= seq)
    }

    async fn read_log(&mut self, after_seq: u64) -> bool {
        let read = recovery::read_log(&self.state, &self.reply, after_seq).await;
        self.patience.relay(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => {
                self.backlog.extend(frames);
                !self.backlog.is_empty()
            }
            Err(error) => {
                tracing::debug!(%error, message.id = %self.reply, "reply log not readable");
                false
            }
        }
    }

    async fn read_store(&mut self) {
        let read = recovery::read_store(&self.state, &self.org, &self.reply).await;
        self.patience.store(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => self.backlog.extend(frames),
            Err(error) => {
                tracing::debug!(%error, message.id = %self.reply, "stored reply not readable")
            }
        }
    }

    /// A hint to another worker; the original record stays where it is, and the claim decides who answers.
    async fn take_over(&mut self) {
        if self.state.backends.relay.check().await.is_err() {
            self.patience.relay(false, Instant::now());
            return;
        }
        let (Some(asked), Some(job)) = (&self.job, self.answer_job().await) else {
            return;
        };
        let job = ReplyJob {
            attempt_min: self.assembly.attempt_heard() + 1,
            ..job
        };
        tracing::info!(message.id = %self.reply, attempt = job.attempt_min, "silent reply given to another worker");
        self.state.metrics.takeovers.inc();
        // A failure is counted where it happens; the next silence tries again.
        let request_id = job.turn.request_id.clone();
        let _ = publish(
            &self.state,
            Topic::JobsRetry,
            &asked.record(job),
            &request_id,
        )
        .await;
        self.patience.taken_over(Instant::now());
    }

    /// Whether this is a further reader, to which nothing need be pushed.
    const fn is_reader(&self) -> bool {
        self.job.is_none()
    }

    /// The job as the worker had it; none for a reader, and while a team's message has nobody to answer it, and so no
    /// worker either.
    async fn answer_job(&self) -> Option<ReplyJob> {
        let job = match self.job.as_ref()? {
            TurnJob::Agent(job) | TurnJob::Trial(job) => return Some(job.clone()),
            TurnJob::Team(job) => job,
        };
        let decided = self
            .state
            .backends
            .relay
            .decisions(&job.turn.message_id)
            .await
            .ok()?
            .own?;
        // When the router decided, the relay does not tell.
        let routed = TeamRouting {
            team_id: job.team_id.clone(),
            reason: decided.reason,
            facts: decided.facts,
            routed_at: None,
        };
        Some(ReplyJob {
            agent_id: decided.agent_id,
            routed: Some(routed),
            turn: job.turn.clone(),
            attempt_min: 1,
        })
    }

    fn look_interval(&self) -> Duration {
        if self.gap_open {
            GAP_RETRY
        } else if self.patience.relay_is_away() {
            Duration::from_millis(self.state.config.store_poll_ms)
        } else if self.is_reader() {
            Duration::from_millis(self.state.config.reader_poll_ms)
        } else {
            Duration::from_millis(self.state.config.log_poll_ms)
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.state.metrics.replies_open.dec();
        if self.on_disconnect == OnDisconnect::Cancel && !self.over {
            disconnect::cancel(&self.state, self.reply.clone());
        }
    }
}

fn into_next(step: Step) -> Option<Next> {
    match step {
        Step::Nothing | Step::Gap => None,
        Step::Text(bytes) => Some(Next::Text(bytes)),
        Step::Note(note) => Some(Next::Note(note)),
        Step::Ended(end) => Some(Next::Ended(end)),
        Step::Broken(breach) => Some(Next::Lost(Loss::Breach(breach))),
    }
}
