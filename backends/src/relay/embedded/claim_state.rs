//! The claims of one conversation as a pure state machine.
//!
//! The embedded relay runs it. The Lua scripts of the Redis relay implement the same transitions,
//! and a test compares both on random histories.

mod queue_slots;

use std::{collections::HashMap, time::Duration};

use switchboard_schemas::{
    ids::MessageId,
    reply_event::{Frame, ReplySignal},
    time::whole_millis,
};

use super::{
    attempt_file::AttemptRecord,
    frame_log::{AppendOutcome, FrameLog, RelayMillis},
};
use crate::relay::{
    ATTEMPTS_MAX, CancelOutcome, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus,
    ClaimTask, ClaimToken, FINAL_STATE_TTL, LEASE, QUEUE_SLOT_TTL, claims::is_cancelled_end,
};

/// The claims, queue slots and voided publishes of one conversation.
#[derive(Debug, Default)]
pub(super) struct ConversationClaims {
    /// The reply that holds the conversation; its lease may have ended.
    current: Option<MessageId>,
    message_count: Option<u64>,
    replies: HashMap<MessageId, ReplyClaim>,
    voided: HashMap<String, RelayMillis>,
    /// Replies with a queue slot, each with its expiry.
    slots: HashMap<MessageId, RelayMillis>,
    keep_until: RelayMillis,
}

#[derive(Debug, Default)]
struct ReplyClaim {
    /// `None` while only a cancel mark is known.
    status: Option<ReplyPhase>,
    attempt: u32,
    /// `None` after a release: no token is valid.
    nonce: Option<u64>,
    lease_until: RelayMillis,
    failures: u32,
    released: bool,
    cancelled: bool,
    end: Option<Frame>,
    log: FrameLog,
    keep_until: RelayMillis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyPhase {
    Running,
    Finalized,
    Stored,
    Done,
}

impl ConversationClaims {
    /// Claims a reply. A repeated request with the same nonce has the same outcome.
    pub(super) fn claim(&mut self, now: RelayMillis, request: &ClaimRequest) -> ClaimOutcome {
        if self
            .voided
            .get(&request.publish_nonce)
            .is_some_and(|until| *until > now)
        {
            return ClaimOutcome::Voided;
        }
        let reply = self.replies.get(&request.reply_id);
        let status = reply.and_then(|reply| reply.status);
        let lease_until = reply.map_or(0, |reply| reply.lease_until);
        match status {
            Some(ReplyPhase::Done) => return ClaimOutcome::Done,
            Some(_)
                if lease_until > now
                    && reply.is_some_and(|reply| reply.nonce == Some(request.nonce)) => {}
            Some(_) if lease_until > now => {
                return busy_outcome(lease_until - now, reply.map(|reply| reply.attempt));
            }
            _ => {
                // A stored reply has left the conversation, so that its announcement need not wait
                // for another reply.
                let other = self
                    .lease_of_another(now, &request.reply_id)
                    .filter(|_| status != Some(ReplyPhase::Stored));
                if let Some(left) = other {
                    return busy_outcome(left, None);
                }
                self.grant(now, request);
            }
        }
        self.granted_outcome(now, &request.reply_id)
    }

    /// Renews the lease and calls `push` with a heartbeat.
    pub(super) fn send_heartbeat(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
        push: impl FnOnce(ReplySignal),
    ) -> ClaimStatus {
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(status) => return status,
        };
        let attempt = token.attempt;
        push(ReplySignal::Heartbeat { attempt });
        reply.claim_status()
    }

    /// Logs frames and calls `push` with each one that is new.
    pub(super) fn append(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
        frames: &[Frame],
        mut push: impl FnMut(&Frame),
    ) -> ClaimStatus {
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(status) => return status,
        };
        let is_running = reply.status == Some(ReplyPhase::Running);
        for frame in frames.iter().filter(|_| is_running) {
            match reply.log.append(now, frame) {
                AppendOutcome::Added => push(frame),
                AppendOutcome::Repeated => {}
                AppendOutcome::Gap => return ClaimStatus::StateLost,
            }
        }
        reply.claim_status()
    }

    /// Takes the claim again and replaces the log by the frames of its holder.
    pub(super) fn restore(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
        frames: &[Frame],
        mut push: impl FnMut(&Frame),
    ) -> ClaimStatus {
        match self.renew(now, token).map(|_| ()) {
            Err(ClaimStatus::StateLost)
                if self.lease_of_another(now, &token.reply_id).is_some() =>
            {
                return ClaimStatus::Fenced;
            }
            Ok(()) | Err(ClaimStatus::StateLost) => {}
            Err(status) => return status,
        }
        let reply = self.replies.entry(token.reply_id.clone()).or_default();
        if reply
            .status
            .is_none_or(|status| status == ReplyPhase::Running)
        {
            reply.start_attempt(now, token.attempt, token.nonce);
            reply.status = Some(ReplyPhase::Running);
            reply.log.restore(now, frames);
            frames.iter().for_each(&mut push);
            self.current = Some(token.reply_id.clone());
        }
        self.replies
            .get(&token.reply_id)
            .map_or(ClaimStatus::StateLost, ReplyClaim::claim_status)
    }

    /// Fixes the end of a running reply. A finalized reply keeps its end.
    pub(super) fn finalize(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
        end: &Frame,
    ) -> ClaimStatus {
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(status) => return status,
        };
        if reply.status != Some(ReplyPhase::Running) {
            return ClaimStatus::Held;
        }
        if reply.cancelled && !is_cancelled_end(end) {
            return ClaimStatus::Cancelled;
        }
        reply.log.expire(now);
        if reply.log.outcome_of(end) == AppendOutcome::Gap {
            return ClaimStatus::StateLost;
        }
        reply.status = Some(ReplyPhase::Finalized);
        reply.end = Some(end.clone());
        ClaimStatus::Held
    }

    /// Logs and pushes the stored end and frees the conversation.
    pub(super) fn complete(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
        completion: &ClaimCompletion,
        mut push: impl FnMut(&Frame),
    ) -> ClaimStatus {
        if self
            .replies
            .get(&token.reply_id)
            .is_some_and(|reply| reply.is_done_by(token))
        {
            return ClaimStatus::Held;
        }
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(status) => return status,
        };
        let newly_stored = reply.status != Some(ReplyPhase::Stored);
        if newly_stored {
            // What is stored counts, even if another end was finalized.
            reply.end = None;
            reply.log.close(now, &completion.end);
            push(&completion.end);
        }
        reply.status = Some(ReplyPhase::Stored);
        if completion.announced {
            reply.status = Some(ReplyPhase::Done);
            reply.log.expire_soon(now);
        }
        reply.keep_until = now + whole_millis(FINAL_STATE_TTL);
        self.keep_until = reply.keep_until;
        // A later announcement must not reset the count: another turn may have been completed
        // meanwhile.
        if newly_stored {
            self.message_count = Some(completion.message_count);
            self.leave_conversation(&token.reply_id);
            self.slots.remove(&token.reply_id);
        }
        ClaimStatus::Held
    }

    /// Ends the lease as planned. Returns `true` if the token was valid.
    pub(super) fn release(&mut self, now: RelayMillis, token: &ClaimToken) -> bool {
        let Ok(reply) = self.renew(now, token) else {
            return false;
        };
        reply.lease_until = now;
        reply.nonce = None;
        reply.released = true;
        self.leave_conversation(&token.reply_id);
        true
    }

    /// Requests that a reply stops, or ends a waiting one.
    pub(super) fn cancel(
        &mut self,
        now: RelayMillis,
        reply_id: &MessageId,
        end: &Frame,
    ) -> CancelOutcome {
        // Without a slot, the state may be lost while a worker holds the claim.
        let is_queued = self.slots.get(reply_id).is_some_and(|until| *until > now);
        let reply = self.replies.entry(reply_id.clone()).or_default();
        let outcome = match reply.status {
            None if is_queued => {
                (reply.status, reply.released) = (Some(ReplyPhase::Finalized), true);
                reply.end = Some(end.clone());
                reply.log.close(now, end);
                CancelOutcome::Ended
            }
            None | Some(ReplyPhase::Running) => CancelOutcome::Requested,
            Some(_) => return CancelOutcome::TooLate,
        };
        reply.cancelled = true;
        reply.keep_until = now + whole_millis(FINAL_STATE_TTL);
        self.keep_until = reply.keep_until;
        outcome
    }

    /// Returns the logged frames of a reply after `after_seq`.
    pub(super) fn read_frames(
        &mut self,
        now: RelayMillis,
        reply_id: &MessageId,
        after_seq: u64,
    ) -> Vec<Frame> {
        self.replies
            .get_mut(reply_id)
            .map_or_else(Vec::new, |reply| reply.log.read(now, after_seq))
    }

    /// Logs a frame of a reply without a claim.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn put_frame(&mut self, now: RelayMillis, reply_id: &MessageId, frame: &Frame) {
        let reply = self.replies.entry(reply_id.clone()).or_default();
        reply.log.close(now, frame);
    }

    /// Returns the remaining lease of a reply, or `None` without a valid claim.
    pub(super) fn remaining_lease(
        &self,
        now: RelayMillis,
        reply_id: &MessageId,
    ) -> Option<Duration> {
        let reply = self.replies.get(reply_id)?;
        let left = reply.lease_until.checked_sub(now)?;
        (left > 0 && reply.status != Some(ReplyPhase::Done)).then(|| Duration::from_millis(left))
    }

    /// Deletes the log of a reply.
    pub(super) fn delete_log(&mut self, reply_id: &MessageId) {
        if let Some(reply) = self.replies.get_mut(reply_id) {
            reply.log = FrameLog::default();
        }
    }

    /// Returns the attempts of a reply, or `None` if it was never claimed.
    pub(super) fn attempt_record(&self, reply_id: &MessageId) -> Option<AttemptRecord> {
        let reply = self
            .replies
            .get(reply_id)
            .filter(|reply| reply.status.is_some())?;
        Some(AttemptRecord {
            attempt: reply.attempt,
            failures: reply.failures,
            released: reply.released,
        })
    }

    /// Restores the attempts that an earlier run of this process granted.
    pub(super) fn restore_attempts(
        &mut self,
        now: RelayMillis,
        reply_id: &MessageId,
        record: AttemptRecord,
    ) {
        let reply = self.replies.entry(reply_id.clone()).or_default();
        if reply.status.is_none() {
            reply.status = Some(ReplyPhase::Running);
            reply.attempt = record.attempt;
            reply.failures = record.failures;
            reply.released = record.released;
            reply.keep_until = now + whole_millis(FINAL_STATE_TTL);
        }
    }

    /// Returns `true` if this token holds the conversation now.
    #[cfg(test)]
    pub(super) fn is_held_alive(&self, now: RelayMillis, token: &ClaimToken) -> bool {
        self.replies.get(&token.reply_id).is_some_and(|reply| {
            let working = matches!(
                reply.status,
                Some(ReplyPhase::Running | ReplyPhase::Finalized)
            );
            working
                && reply.attempt == token.attempt
                && reply.nonce == Some(token.nonce)
                && reply.lease_until > now
        })
    }

    /// Removes expired entries. Returns `false` if nothing is left.
    pub(super) fn sweep(&mut self, now: RelayMillis) -> bool {
        self.voided.retain(|_, until| *until > now);
        self.replies.retain(|_, reply| {
            reply.log.expire(now);
            reply.keep_until > now
        });
        self.keep_until > now || !self.replies.is_empty() || !self.voided.is_empty()
    }

    fn grant(&mut self, now: RelayMillis, request: &ClaimRequest) {
        let reply = self.replies.entry(request.reply_id.clone()).or_default();
        let next = reply.status.map_or(1, |_| reply.attempt + 1);
        if reply.status.is_some() && !reply.released {
            reply.failures += 1;
        }
        reply.start_attempt(now, next.max(request.attempt_min), request.nonce);
        self.keep_until = reply.keep_until;
        if *reply.status.get_or_insert(ReplyPhase::Running) != ReplyPhase::Stored {
            self.current = Some(request.reply_id.clone());
        }
    }

    fn granted_outcome(&self, now: RelayMillis, reply_id: &MessageId) -> ClaimOutcome {
        let Some(reply) = self.replies.get(reply_id) else {
            return busy_outcome(0, None);
        };
        let (attempt, nonce) = (reply.attempt, reply.nonce.unwrap_or_default());
        let token = ClaimToken {
            reply_id: reply_id.clone(),
            attempt,
            nonce,
        };
        let end_of_new_slot = now + whole_millis(QUEUE_SLOT_TTL);
        let queue_wait =
            |end: &RelayMillis| Duration::from_millis(end_of_new_slot.saturating_sub(*end));
        ClaimOutcome::Granted {
            token,
            task: reply.task(),
            message_count: self.message_count,
            queue_wait: self.slots.get(reply_id).map(queue_wait),
        }
    }

    /// Renews the lease of a valid token. A lease that ended is revived unless someone claimed
    /// since.
    fn renew(
        &mut self,
        now: RelayMillis,
        token: &ClaimToken,
    ) -> Result<&mut ReplyClaim, ClaimStatus> {
        let is_current = self.current.as_ref() == Some(&token.reply_id);
        let reply = self
            .replies
            .get_mut(&token.reply_id)
            .ok_or(ClaimStatus::StateLost)?;
        let status = reply.status.ok_or(ClaimStatus::StateLost)?;
        let own = reply.attempt == token.attempt
            && reply.nonce == Some(token.nonce)
            && status != ReplyPhase::Done;
        // Another reply may have held the conversation after the lease ended and completed a turn
        // unknown to this holder.
        let overtaken = reply.lease_until <= now && status != ReplyPhase::Stored && !is_current;
        if !own || overtaken {
            return Err(ClaimStatus::Fenced);
        }
        reply.lease_until = now + whole_millis(LEASE);
        Ok(reply)
    }

    /// Returns the remaining lease of another reply of the conversation.
    fn lease_of_another(&self, now: RelayMillis, reply_id: &MessageId) -> Option<RelayMillis> {
        let current = self
            .current
            .as_ref()
            .filter(|current| *current != reply_id)?;
        let until = self.replies.get(current)?.lease_until;
        (until > now).then(|| until - now)
    }

    fn leave_conversation(&mut self, reply_id: &MessageId) {
        if self.current.as_ref() == Some(reply_id) {
            self.current = None;
        }
    }
}

impl ReplyClaim {
    fn start_attempt(&mut self, now: RelayMillis, attempt: u32, nonce: u64) {
        self.attempt = attempt;
        self.nonce = Some(nonce);
        self.released = false;
        self.lease_until = now + whole_millis(LEASE);
        self.keep_until = now + whole_millis(FINAL_STATE_TTL);
    }

    fn task(&self) -> ClaimTask {
        match (self.status, &self.end) {
            (Some(ReplyPhase::Stored | ReplyPhase::Done), _) => ClaimTask::Announce,
            (Some(ReplyPhase::Finalized), Some(end)) => {
                ClaimTask::StoreFinalized { end: end.clone() }
            }
            _ if self.failures >= ATTEMPTS_MAX => ClaimTask::GiveUp,
            _ => ClaimTask::Generate,
        }
    }

    fn claim_status(&self) -> ClaimStatus {
        let to_stop = self.cancelled && self.status == Some(ReplyPhase::Running);
        if to_stop {
            ClaimStatus::Cancelled
        } else {
            ClaimStatus::Held
        }
    }

    /// Returns `true` if this token completed the reply: the call is a retry whose response was
    /// lost.
    fn is_done_by(&self, token: &ClaimToken) -> bool {
        self.status == Some(ReplyPhase::Done)
            && self.attempt == token.attempt
            && self.nonce == Some(token.nonce)
    }
}

fn busy_outcome(left: RelayMillis, attempt: Option<u32>) -> ClaimOutcome {
    ClaimOutcome::Busy {
        attempt,
        retry_after: std::time::Duration::from_millis(left.max(1)),
    }
}
