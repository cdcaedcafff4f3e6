//! Writes one reply to the relay: frames as they arise, heartbeats, the end frame and the
//! completion of the claim.
//!
//! The text is kept in memory. While the relay is unavailable the reply continues without it; a
//! relay that lost its state gets the whole reply again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use switchboard_backends::relay::{
    ClaimCompletion, ClaimStatus, ClaimToken, HEARTBEAT_INTERVAL, LEASE, Relay, RelayError,
};
use switchboard_schemas::{
    ids::IngressId,
    reply_event::{Frame, FrameBody, ReplyEnd, ReplyHead},
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{reply_log::LoggedReply, reply_text::ReplyText};

/// Tries of finalization and completion before the reply continues without the relay.
const RELAY_TRIES_MAX: u32 = 3;
/// Pause between these tries.
const RELAY_RETRY_DELAY: Duration = Duration::from_millis(300);

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

/// The relay's log of the reply, as far as this writer knows.
struct LogState {
    generation: u32,
    seq: u64,
    head: Option<ReplyHead>,
    text_bytes: usize,
    /// Sent but not acknowledged. They are sent again unchanged, because their numbers may be taken
    /// already.
    unacknowledged: Vec<Frame>,
    claim: ClaimRecord,
    /// False if another attempt may store the reply and the relay would not know it: the claim was
    /// put into a relay that had lost it, or another worker may run without a claim.
    is_exclusive: bool,
    /// False if the last call failed.
    reachable: bool,
    /// Start of the last call that renewed the lease; at first, creation of this writer.
    renewed_at: Instant,
}

impl LogState {
    /// Makes the next call restore the claim and send the whole reply again.
    fn forget_relay_state(&mut self) {
        self.unacknowledged.clear();
        (self.claim, self.is_exclusive) = (ClaimRecord::Lost, false);
        (self.head, self.text_bytes) = (None, 0);
    }
}

/// The claim as the relay remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimRecord {
    /// The relay accepts frames.
    Writing,
    /// The end frame is fixed.
    Finalized,
    /// The relay does not know the claim: it has to be restored with the reply so far.
    Lost,
}

/// Result of the finalization of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalizeResult {
    /// No other end or text can be stored any more.
    Finalized,
    /// Rejected: the reply has to end as cancelled.
    Cancelled,
    /// Another worker holds the claim.
    Fenced,
    /// The relay is unavailable.
    Unavailable,
}

impl ReplyWriter {
    /// Creates the writer for a claim. It continues `logged`.
    pub(crate) fn new(
        relay: Arc<dyn Relay>,
        token: ClaimToken,
        push_to: Option<IngressId>,
        bytes_max: usize,
        logged: LoggedReply,
    ) -> Self {
        // Never 0: older records have it where there was no generation.
        let new_generation = || rand::random::<u32>().max(1);
        let log = LogState {
            generation: logged.generation.unwrap_or_else(new_generation),
            seq: logged.seq,
            head: logged.head.clone(),
            text_bytes: logged.text.len(),
            unacknowledged: Vec::new(),
            claim: ClaimRecord::Writing,
            is_exclusive: true,
            reachable: true,
            renewed_at: Instant::now(),
        };
        let text = ReplyText {
            user_message_stored: logged.head.is_some(),
            text: logged.text,
            head: logged.head,
            side_frames: Vec::new(),
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

    /// Creates the writer of a reply whose claim could not be requested. Every heartbeat tries to
    /// obtain it.
    pub(crate) fn without_claim(
        relay: Arc<dyn Relay>,
        token: ClaimToken,
        push_to: Option<IngressId>,
        bytes_max: usize,
    ) -> Self {
        let mut this = Self::new(relay, token, push_to, bytes_max, LoggedReply::default());
        let log = this.log.get_mut();
        log.forget_relay_state();
        log.reachable = false;
        this
    }

    /// Records that another worker may be working on this reply without a claim.
    pub(crate) fn expect_other_attempts(&mut self) {
        self.log.get_mut().is_exclusive = false;
    }

    pub(crate) const fn token(&self) -> &ClaimToken {
        &self.token
    }

    /// Returns the token that is cancelled when a client cancels the reply.
    pub(crate) const fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Returns the token that is cancelled when another worker holds the claim: nothing may be
    /// written any more.
    pub(crate) const fn fenced(&self) -> &CancellationToken {
        &self.fenced
    }

    /// Allows that the reply is displayed, because the user message is stored.
    pub(crate) fn mark_user_message_stored(&self) {
        self.text().user_message_stored = true;
        self.wake();
    }

    pub(crate) fn head(&self) -> Option<ReplyHead> {
        self.text().head.clone()
    }

    /// Returns the text so far.
    pub(crate) fn whole_text(&self) -> String {
        self.text().text.clone()
    }

    pub(crate) async fn generation(&self) -> u32 {
        self.log.lock().await.generation
    }

    /// Sends frames and heartbeats until it is dropped.
    pub(crate) async fn drive(&self) {
        // The turn sends the first heartbeat itself.
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.wake.notified() => self.flush(false).await,
                _ = heartbeat.tick() => self.flush(true).await,
            }
        }
    }

    /// Sends new frames; with `heartbeat`, calls the relay even if there are none.
    pub(crate) async fn flush(&self, heartbeat: bool) {
        let mut log = self.log.lock().await;
        // Only heartbeats try an unavailable relay, or every token would wait for a time-out.
        if heartbeat || log.reachable {
            self.send_frames(&mut log, heartbeat).await;
        }
    }

    /// Fixes the text and this end, after all text is in the log.
    pub(crate) async fn finalize(&self, end: &ReplyEnd) -> FinalizeResult {
        let mut log = self.log.lock().await;
        for _ in 0..RELAY_TRIES_MAX {
            let asked_at = Instant::now();
            let status = match self.try_finalize(&mut log, end).await {
                Ok(status) => status,
                Err(error) => {
                    tracing::warn!(%error, "could not finalize the reply");
                    sleep(RELAY_RETRY_DELAY).await;
                    continue;
                }
            };
            self.apply_status(&mut log, status, asked_at);
            match status {
                ClaimStatus::Held => {
                    log.claim = ClaimRecord::Finalized;
                    return FinalizeResult::Finalized;
                }
                ClaimStatus::Cancelled => return FinalizeResult::Cancelled,
                ClaimStatus::Fenced => return FinalizeResult::Fenced,
                ClaimStatus::StateLost => {}
            }
        }
        log.reachable = false;
        FinalizeResult::Unavailable
    }

    /// Returns true if only this writer can store the reply: the first attempt has finalized it
    /// with an exclusive claim, whose lease has not ended since, as it does while the process is
    /// suspended.
    pub(crate) async fn holds_finalized_reply(&self) -> bool {
        let log = self.log.lock().await;
        self.token.attempt == 1
            && log.is_exclusive
            && log.claim == ClaimRecord::Finalized
            && log.renewed_at.elapsed() < LEASE
    }

    /// Records that the end of the reply is fixed already.
    pub(crate) async fn mark_finalized(&self) {
        self.log.lock().await.claim = ClaimRecord::Finalized;
    }

    /// Completes the claim of a stored reply, finalizing it again if the relay lost it. Returns
    /// false if another worker holds the claim. An unavailable relay counts as success, because
    /// readers find the reply in the store.
    pub(crate) async fn complete(
        &self,
        end: &ReplyEnd,
        message_count: u64,
        announced: bool,
    ) -> bool {
        for _ in 0..RELAY_TRIES_MAX {
            let claim = self.log.lock().await.claim;
            if claim != ClaimRecord::Finalized {
                match self.finalize(end).await {
                    FinalizeResult::Finalized | FinalizeResult::Cancelled => {}
                    FinalizeResult::Fenced => return false,
                    FinalizeResult::Unavailable => return true,
                }
            }
            let mut log = self.log.lock().await;
            let completion = ClaimCompletion {
                end: self.end_frame(&log, end),
                message_count,
                announced,
                push_to: self.push_to.clone(),
            };
            match self.relay.complete_claim(&self.token, &completion).await {
                Ok(ClaimStatus::Held | ClaimStatus::Cancelled) => return true,
                Ok(ClaimStatus::Fenced) => return false,
                Ok(ClaimStatus::StateLost) => log.forget_relay_state(),
                Err(error) => {
                    tracing::warn!(%error, "could not complete the claim");
                    drop(log);
                    sleep(RELAY_RETRY_DELAY).await;
                }
            }
        }
        true
    }

    async fn try_finalize(
        &self,
        log: &mut LogState,
        end: &ReplyEnd,
    ) -> Result<ClaimStatus, RelayError> {
        self.send_frames(log, false).await;
        if !log.reachable {
            // An end without its text in the log would let the next holder store less than was
            // finalized.
            return Err(RelayError::Unavailable("text is not in the log".into()));
        }
        if self.fenced.is_cancelled() {
            return Ok(ClaimStatus::Fenced);
        }
        self.relay
            .finalize_reply(&self.token, &self.end_frame(log, end))
            .await
    }

    fn end_frame(&self, log: &LogState, end: &ReplyEnd) -> Frame {
        let body = FrameBody::End(Box::new(end.clone()));
        self.frame(log.generation, log.seq + 1, body)
    }

    async fn send_frames(&self, log: &mut LogState, heartbeat: bool) {
        // A lost claim is restored at once, but only once.
        for _ in 0..2 {
            self.collect_frames(log);
            let is_lost = log.claim == ClaimRecord::Lost;
            if log.unacknowledged.is_empty() && !heartbeat && !is_lost && log.reachable {
                return;
            }
            let asked_at = Instant::now();
            let (frames, push_to) = (&log.unacknowledged, self.push_to.as_ref());
            let sent = if is_lost {
                self.relay.restore_claim(&self.token, push_to, frames).await
            } else if frames.is_empty() {
                self.relay.renew_claim(&self.token, push_to).await
            } else {
                self.relay.append_frames(&self.token, push_to, frames).await
            };
            match sent {
                Ok(status) => {
                    log.reachable = true;
                    self.apply_status(log, status, asked_at);
                    if status != ClaimStatus::StateLost {
                        return;
                    }
                }
                Err(error) => {
                    if log.reachable {
                        tracing::warn!(%error, "relay unavailable, continuing the reply without it");
                    }
                    log.reachable = false;
                    return;
                }
            }
        }
    }

    /// Applies the response to a call that began at `asked_at`. The relay renewed the lease at that
    /// time or later.
    fn apply_status(&self, log: &mut LogState, status: ClaimStatus, asked_at: Instant) {
        match status {
            ClaimStatus::Held | ClaimStatus::Cancelled => {
                log.renewed_at = asked_at;
                log.unacknowledged.clear();
                if log.claim == ClaimRecord::Lost {
                    log.claim = ClaimRecord::Writing;
                }
                if status == ClaimStatus::Cancelled {
                    self.cancelled.cancel();
                }
            }
            ClaimStatus::Fenced => self.fenced.cancel(),
            ClaimStatus::StateLost => log.forget_relay_state(),
        }
    }

    /// Converts everything that is not in the log yet into frames.
    fn collect_frames(&self, log: &mut LogState) {
        let mut reply = self.text();
        let (true, Some(head)) = (reply.user_message_stored, reply.head.clone()) else {
            return;
        };
        // Before the first text the head may still change: another provider may answer, or its
        // products may be gone.
        let is_replaceable =
            |logged: &ReplyHead| logged.model != head.model || head.ui_spec.is_none();
        let is_new = log.head.as_ref() != Some(&head);
        if is_new && log.text_bytes == 0 && log.head.as_ref().is_none_or(is_replaceable) {
            self.add_frame(log, FrameBody::Head(Box::new(head.clone())));
        }
        log.head = Some(head);
        for body in std::mem::take(&mut reply.side_frames) {
            self.add_frame(log, body);
        }
        if reply.text.len() > log.text_bytes {
            let text = Bytes::copy_from_slice(&reply.text.as_bytes()[log.text_bytes..]);
            let offset = log.text_bytes as u64;
            log.text_bytes = reply.text.len();
            self.add_frame(log, FrameBody::Text { offset, text });
        }
    }

    fn add_frame(&self, log: &mut LogState, body: FrameBody) {
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

    pub(super) fn text(&self) -> MutexGuard<'_, ReplyText> {
        self.text.lock()
    }

    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Wakes the task that sends frames.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }
}
