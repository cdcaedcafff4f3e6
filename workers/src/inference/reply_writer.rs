//! Brings a reply's frames to its log and to the ingress that waits (step 8 of the path), and keeps the claim alive.
//!
//! The model's text lands in a buffer that is as large as a reply may be, so that reading the model never waits for the
//! relay. [`ReplyWriter::drive`] runs beside the work: it sends whatever has collected, in one append, and a beat each
//! second. While the relay is away text collects, and each beat tries again; when the relay has lost its memory the
//! whole reply so far is written again.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use switchboard_backends::relay::{
    ClaimCompletion, ClaimStatus, ClaimToken, HEARTBEAT_INTERVAL, Relay, RelayError,
};
use switchboard_schemas::{
    ids::IngressId,
    reply_event::{Frame, FrameBody, ReplyEnd, ReplyHead, ToolProgress},
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use super::reply_log::LoggedReply;
use crate::{
    model::generation::{Pushed, TextSink},
    tools::holding_sink::ReplySink,
};

/// Tries of a call that must not be skipped lightly, before the reply goes on without the relay.
const RELAY_TRIES_MAX: u32 = 3;
/// Pause between them.
const RELAY_RETRY_DELAY: Duration = Duration::from_millis(300);

/// The writer of one reply.
pub(crate) struct ReplyWriter {
    relay: Arc<dyn Relay>,
    token: ClaimToken,
    push_to: Option<IngressId>,
    bytes_max: usize,
    text: Mutex<ReplyText>,
    log: AsyncMutex<LogState>,
    wake: Notify,
    cancelled: CancellationToken,
    fenced: CancellationToken,
}

#[derive(Default)]
struct ReplyText {
    text: String,
    head: Option<ReplyHead>,
    /// What stands beside the text and was not collected yet.
    notes: Vec<FrameBody>,
    /// Whether the user message is stored, before which nothing is shown.
    user_stored: bool,
}

struct LogState {
    generation: u32,
    seq: u64,
    logged_head: Option<ReplyHead>,
    logged_bytes: usize,
    /// Sent, but not acknowledged: to be repeated as they are, because their numbers may be taken already.
    unacknowledged: Vec<Frame>,
    /// The relay did not answer last time.
    away: bool,
    /// The relay has lost the claim.
    forgotten: bool,
    sealed: bool,
}

/// How the relay took the end of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// Fixed; nobody can store another one.
    Held,
    /// Refused, because the reply is to end as cancelled.
    Cancelled,
    /// The claim is another's.
    Fenced,
    /// The relay is away.
    Away,
}

impl ReplyWriter {
    /// The writer for a claim, going on where `logged` ends.
    pub(crate) fn new(
        relay: Arc<dyn Relay>,
        token: ClaimToken,
        push_to: Option<IngressId>,
        bytes_max: usize,
        logged: LoggedReply,
    ) -> Self {
        let generation = if logged.generation == 0 {
            rand::random::<u32>().max(1)
        } else {
            logged.generation
        };
        let log = LogState {
            generation,
            seq: logged.seq,
            logged_head: logged.head.clone(),
            logged_bytes: logged.text.len(),
            unacknowledged: Vec::new(),
            away: false,
            forgotten: false,
            sealed: false,
        };
        let user_stored = logged.head.is_some();
        let text = ReplyText {
            text: logged.text,
            head: logged.head,
            notes: Vec::new(),
            user_stored,
        };
        Self {
            relay,
            token,
            push_to,
            bytes_max,
            text: Mutex::new(text),
            log: AsyncMutex::new(log),
            wake: Notify::new(),
            cancelled: CancellationToken::new(),
            fenced: CancellationToken::new(),
        }
    }

    /// The writer of a reply whose claim could not be asked for: each beat tries to take it.
    pub(crate) fn without_claim(
        relay: Arc<dyn Relay>,
        token: ClaimToken,
        push_to: Option<IngressId>,
        bytes_max: usize,
    ) -> Self {
        let mut this = Self::new(relay, token, push_to, bytes_max, LoggedReply::default());
        let log = this.log.get_mut();
        (log.away, log.forgotten) = (true, true);
        this
    }

    /// The claim.
    pub(crate) const fn token(&self) -> &ClaimToken {
        &self.token
    }

    /// Cancelled when someone asks that the reply stops.
    pub(crate) const fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Cancelled when the claim is another's: nothing may be written any more.
    pub(crate) const fn fenced(&self) -> &CancellationToken {
        &self.fenced
    }

    /// The user message is stored: what has collected may be shown.
    pub(crate) fn user_stored(&self) {
        self.text().user_stored = true;
        self.wake.notify_one();
    }

    /// How the reply began, if it did.
    pub(crate) fn head(&self) -> Option<ReplyHead> {
        self.text().head.clone()
    }

    /// The text so far.
    pub(crate) fn whole_text(&self) -> String {
        self.text().text.clone()
    }

    /// The generation of the text.
    pub(crate) async fn generation(&self) -> u32 {
        self.log.lock().await.generation
    }

    /// A place for the model's text. `head` is completed with the model that gives the first of it.
    pub(crate) fn sink(&self, head: ReplyHead) -> WriterSink<'_> {
        let mut reply = self.text();
        if reply.text.is_empty()
            && let Some(begun) = &mut reply.head
        {
            // An earlier attempt came no further: what its tools found is found anew.
            begun.ui_spec = None;
        }
        drop(reply);
        WriterSink { writer: self, head }
    }

    /// Sends and beats until it is dropped.
    pub(crate) async fn drive(&self) {
        let mut beat = interval(HEARTBEAT_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.wake.notified() => self.flush(false).await,
                _ = beat.tick() => self.flush(true).await,
            }
        }
    }

    /// Sends what has collected; with `beat`, a sign of life even when there is nothing.
    pub(crate) async fn flush(&self, beat: bool) {
        let mut log = self.log.lock().await;
        // While the relay is away only beats try, or every token would wait for a time-out.
        if beat || !log.away {
            self.send(&mut log, beat).await;
        }
    }

    /// Fixes the text and this end. All text is in the log before.
    pub(crate) async fn seal(&self, end: &ReplyEnd) -> Sealed {
        let mut log = self.log.lock().await;
        for _ in 0..RELAY_TRIES_MAX {
            let standing = match self.seal_once(&mut log, end).await {
                Ok(standing) => standing,
                Err(error) => {
                    tracing::warn!(%error, "could not seal the reply");
                    sleep(RELAY_RETRY_DELAY).await;
                    continue;
                }
            };
            self.note(&mut log, standing);
            match standing {
                ClaimStatus::Held => {
                    log.sealed = true;
                    return Sealed::Held;
                }
                ClaimStatus::Cancelled => return Sealed::Cancelled,
                ClaimStatus::Fenced => return Sealed::Fenced,
                ClaimStatus::StateLost => {}
            }
        }
        log.away = true;
        Sealed::Away
    }

    /// An earlier attempt has sealed it.
    pub(crate) async fn mark_sealed(&self) {
        self.log.lock().await.sealed = true;
    }

    /// Tells the stored end. `false` when the claim is another's.
    pub(crate) async fn settle(&self, end: &ReplyEnd, message_count: u64, announced: bool) -> bool {
        for _ in 0..RELAY_TRIES_MAX {
            let sealed = self.log.lock().await.sealed;
            match if sealed {
                Sealed::Held
            } else {
                self.seal(end).await
            } {
                Sealed::Held | Sealed::Cancelled => {}
                Sealed::Fenced => return false,
                Sealed::Away => return true,
            }
            let mut log = self.log.lock().await;
            let end = self.end_frame(&log, end);
            let settlement = ClaimCompletion {
                end,
                message_count,
                announced,
                push_to: self.push_to.clone(),
            };
            match self.relay.settle(&self.token, &settlement).await {
                Ok(ClaimStatus::Held | ClaimStatus::Cancelled) => return true,
                Ok(ClaimStatus::Fenced) => return false,
                Ok(ClaimStatus::StateLost) => self.note(&mut log, ClaimStatus::StateLost),
                Err(error) => {
                    tracing::warn!(%error, "could not tell the end of the reply");
                    drop(log);
                    sleep(RELAY_RETRY_DELAY).await;
                }
            }
        }
        // It is stored: readers find it there.
        true
    }

    async fn seal_once(
        &self,
        log: &mut LogState,
        end: &ReplyEnd,
    ) -> Result<ClaimStatus, RelayError> {
        self.send(log, false).await;
        if log.away {
            // An end over text that is not in the log would let the next holder store less than was sealed.
            return Err(RelayError::Unavailable("text is not in the log".into()));
        }
        if self.fenced.is_cancelled() {
            return Ok(ClaimStatus::Fenced);
        }
        self.relay
            .seal(&self.token, &self.end_frame(log, end))
            .await
    }

    fn end_frame(&self, log: &LogState, end: &ReplyEnd) -> Frame {
        self.frame(
            log.generation,
            log.seq + 1,
            FrameBody::End(Box::new(end.clone())),
        )
    }

    async fn send(&self, log: &mut LogState, beat: bool) {
        // At most twice: what was forgotten is written again at once.
        for _ in 0..2 {
            self.collect(log);
            if log.unacknowledged.is_empty() && !beat && !log.forgotten && !log.away {
                return;
            }
            let (frames, push_to) = (&log.unacknowledged, self.push_to.as_ref());
            let sent = if log.forgotten {
                self.relay.restore(&self.token, push_to, frames).await
            } else {
                self.relay.append(&self.token, push_to, frames).await
            };
            match sent {
                Ok(standing) => {
                    log.away = false;
                    let again = standing == ClaimStatus::StateLost;
                    self.note(log, standing);
                    if !again {
                        return;
                    }
                }
                Err(error) => {
                    if !log.away {
                        tracing::warn!(%error, "the relay is away, the reply goes on without it");
                    }
                    log.away = true;
                    return;
                }
            }
        }
    }

    fn note(&self, log: &mut LogState, standing: ClaimStatus) {
        match standing {
            ClaimStatus::Held | ClaimStatus::Cancelled => {
                log.unacknowledged.clear();
                log.forgotten = false;
                if standing == ClaimStatus::Cancelled {
                    self.cancelled.cancel();
                }
            }
            ClaimStatus::Fenced => self.fenced.cancel(),
            ClaimStatus::StateLost => {
                log.unacknowledged.clear();
                (log.forgotten, log.sealed) = (true, false);
                (log.logged_head, log.logged_bytes) = (None, 0);
            }
        }
    }

    /// Makes frames of what is new.
    fn collect(&self, log: &mut LogState) {
        let mut shown = self.text();
        let (true, Some(head)) = (shown.user_stored, shown.head.clone()) else {
            return;
        };
        // As long as there is no text the beginning may still change: another provider answers, nothing is to be shown.
        let begins_anew = |before: &ReplyHead| before.model != head.model || head.ui_spec.is_none();
        let differs = log.logged_head.as_ref() != Some(&head);
        if differs && log.logged_bytes == 0 && log.logged_head.as_ref().is_none_or(begins_anew) {
            self.add(log, FrameBody::Head(Box::new(head.clone())));
        }
        log.logged_head = Some(head);
        for note in std::mem::take(&mut shown.notes) {
            self.add(log, note);
        }
        if shown.text.len() > log.logged_bytes {
            let text = Bytes::copy_from_slice(&shown.text.as_bytes()[log.logged_bytes..]);
            let offset = log.logged_bytes as u64;
            log.logged_bytes = shown.text.len();
            self.add(log, FrameBody::Text { offset, text });
        }
    }

    fn add(&self, log: &mut LogState, body: FrameBody) {
        log.seq += 1;
        let frame = self.frame(log.generation, log.seq, body);
        log.unacknowledged.push(frame);
    }

    const fn frame(&self, generation: u32, seq: u64, body: FrameBody) -> Frame {
        Frame {
            attempt: self.token.attempt,
            generation,
            seq,
            body,
        }
    }

    fn text(&self) -> MutexGuard<'_, ReplyText> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the model's text goes.
pub(crate) struct WriterSink<'a> {
    writer: &'a ReplyWriter,
    head: ReplyHead,
}

impl WriterSink<'_> {
    /// The reply begins, if it has not; until its first text it is told which model makes it.
    fn begin(&self, reply: &mut ReplyText, model: &str) {
        let nothing_said = reply.text.is_empty();
        let head = reply.head.get_or_insert_with(|| self.head.clone());
        if nothing_said && head.model != model {
            model.clone_into(&mut head.model);
        }
    }

    fn note(&self, model: &str, note: FrameBody) {
        let mut reply = self.writer.text();
        self.begin(&mut reply, model);
        if let (FrameBody::Ui(spec), Some(head)) = (&note, &mut reply.head) {
            head.ui_spec = Some(spec.clone());
        }
        reply.notes.push(note);
        drop(reply);
        self.writer.wake.notify_one();
    }
}

impl TextSink for WriterSink<'_> {
    fn push(&mut self, model: &str, text: &str) -> Pushed {
        let mut reply = self.writer.text();
        self.begin(&mut reply, model);
        let room = self.writer.bytes_max.saturating_sub(reply.text.len());
        let fitting = text.floor_char_boundary(room);
        reply.text.push_str(&text[..fitting]);
        drop(reply);
        self.writer.wake.notify_one();
        if fitting == text.len() && fitting < room {
            Pushed::Shown
        } else {
            Pushed::Full
        }
    }

    fn text(&self) -> String {
        self.writer.whole_text()
    }

    fn len(&self) -> usize {
        self.writer.text().text.len()
    }
}

impl ReplySink for WriterSink<'_> {
    fn tool(&mut self, model: &str, progress: ToolProgress) {
        self.note(model, FrameBody::Tool(progress));
    }

    fn show(&mut self, model: &str, ui: Value) {
        self.note(model, FrameBody::Ui(ui));
    }
}
