//! Follows one reply for one client: pushed frames first, the log for what was lost, the store where the log is gone,
//! and another worker where the first one has died.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use switchboard_schemas::{
    ids::MessageId,
    inference_job::{AnswerJob, ConversationJob, Routed},
    reply_event::{Frame, ReplyEnd},
    topics::Topic,
    turn::Turn,
};
use tokio::time::Instant;

use super::{
    assembly::{Breach, FrameSource, ReplyAssembly, Step},
    patience::{Patience, Verdict},
    recovery,
    registry::ReplySlot,
};
use crate::{
    publish::{TurnJob, publish},
    state::AppState,
};

/// How soon a gap that could not be closed is looked at again: its bytes are on their way from one place to another.
const GAP_RETRY: Duration = Duration::from_millis(200);

/// What comes next of a reply.
#[derive(Debug)]
pub(crate) enum Next {
    /// Bytes.
    Text(Bytes),
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
    job: TurnJob,
    reply: MessageId,
    slot: ReplySlot,
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
        state.metrics.replies_open.inc();
        let now = Instant::now();
        Self {
            reply: job.turn().reply_id(),
            patience: Patience::new(&state.config, now),
            next_look: now + Duration::from_millis(state.config.log_poll_ms),
            state,
            job,
            slot,
            assembly: ReplyAssembly::default(),
            backlog: VecDeque::new(),
            gap_open: false,
            fruitless_looks: 0,
        }
    }

    /// Follows a reply that was asked for before, beginning with what is known of it. Whoever asked first looks after its
    /// worker.
    pub(crate) fn joining(state: AppState, job: TurnJob, slot: ReplySlot, known: Vec<Frame>) -> Self {
        let mut this = Self::new(state, job, slot);
        this.patience.leave_takeovers();
        this.backlog = known.into();
        this.next_look = Instant::now();
        this
    }

    /// What is known of the reply.
    pub(crate) const fn assembly(&self) -> &ReplyAssembly {
        &self.assembly
    }

    /// The message whose reply this is.
    pub(crate) const fn turn(&self) -> &Turn {
        self.job.turn()
    }

    /// The process's shared state.
    pub(crate) const fn state(&self) -> &AppState {
        &self.state
    }

    /// Waits for what comes next. Dropping the future may lose frames, which the log gives back.
    pub(crate) async fn next(&mut self) -> Next {
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
        // Every other look reads from the beginning: a new generation counts its frames anew.
        let after_seq = if self.fruitless_looks % 2 == 1 { 0 } else { self.assembly.logged_seq() };
        self.fruitless_looks += 1;
        self.read_log(after_seq).await;
        if self.backlog_is_known() {
            self.backlog.clear();
        }
        if self.gap_open || self.patience.relay_is_away() || self.patience.is_last_hope() {
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
        self.backlog.iter().all(|frame| frame.generation == generation && frame.seq <= seq)
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
        let read = recovery::read_store(&self.state, &self.job.turn().org_id, &self.reply).await;
        self.patience.store(read.is_ok(), Instant::now());
        match read {
            Ok(frames) => self.backlog.extend(frames),
            Err(error) => tracing::debug!(%error, message.id = %self.reply, "stored reply not readable"),
        }
    }

    /// A hint to another worker; the original record stays where it is, and the claim decides who answers.
    async fn take_over(&mut self) {
        if self.state.backends.relay.check().await.is_err() {
            self.patience.relay(false, Instant::now());
            return;
        }
        let Some(job) = self.answer_job().await else { return };
        let job = AnswerJob { attempt_min: self.assembly.attempt_heard() + 1, ..job };
        let request_id = job.turn.request_id.clone();
        tracing::info!(message.id = %self.reply, attempt = job.attempt_min, "silent reply given to another worker");
        self.state.metrics.takeovers.inc();
        // A failure is counted where it happens; the next silence tries again.
        let _ = publish(&self.state, Topic::JobsRetry, &ConversationJob::Answer(Box::new(job)), &request_id).await;
        self.patience.taken_over(Instant::now());
    }

    /// The job as the worker had it; none while a team's message has nobody to answer it, and so no worker either.
    async fn answer_job(&self) -> Option<AnswerJob> {
        let job = match &self.job {
            TurnJob::Agent(job) => return Some(job.clone()),
            TurnJob::Team(job) => job,
        };
        let decided = self.state.backends.relay.decisions(&job.turn.message_id).await.ok()?.own?;
        let routed = Routed { team_id: job.team_id.clone(), reason: decided.reason };
        Some(AnswerJob { agent_id: decided.agent_id, routed: Some(routed), turn: job.turn.clone(), attempt_min: 1 })
    }

    fn look_interval(&self) -> Duration {
        if self.gap_open {
            GAP_RETRY
        } else if self.patience.relay_is_away() {
            Duration::from_millis(self.state.config.store_poll_ms)
        } else {
            Duration::from_millis(self.state.config.log_poll_ms)
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.state.metrics.replies_open.dec();
    }
}

fn into_next(step: Step) -> Option<Next> {
    match step {
        Step::Nothing | Step::Gap => None,
        Step::Text(bytes) => Some(Next::Text(bytes)),
        Step::Ended(end) => Some(Next::Ended(end)),
        Step::Broken(breach) => Some(Next::Lost(Loss::Breach(breach))),
    }
}
