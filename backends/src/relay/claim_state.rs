//! The claim table of one conversation, pure: a state, a time and an event give an answer. The embedded relay runs it;
//! the scripts of the production twin say the same in Lua, and a test compares the two word for word.

use std::collections::HashMap;

use switchboard_schemas::{
    conversation::ReplyStatus,
    ids::MessageId,
    reply_event::{Frame, FrameBody},
};

use super::{
    ATTEMPTS_MAX, ClaimCompletion, ClaimOutcome, ClaimRequest, ClaimStatus, ClaimTask, ClaimToken,
    FINAL_STATE_TTL, LEASE, QUEUE_SLOT_TTL, millis,
    reply_log::{Logged, Millis, ReplyLog},
};

/// All that is known of one conversation.
#[derive(Debug, Default)]
pub(super) struct ConversationClaims {
    /// The reply that holds the conversation; its lease may have ended.
    current: Option<MessageId>,
    message_count: Option<u64>,
    replies: HashMap<MessageId, ReplyClaim>,
    voided: HashMap<String, Millis>,
    /// Replies with a place in the queue, each until when.
    places: HashMap<MessageId, Millis>,
    keep_until: Millis,
}

/// What outlives a crash of the process that also holds the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptRecord {
    /// Last attempt that was handed out.
    pub(super) attempt: u32,
    /// Attempts that died before it.
    pub(super) failures: u32,
    /// Whether it was handed over as planned.
    pub(super) released: bool,
}

#[derive(Debug, Default)]
struct ReplyClaim {
    /// None while only a cancel mark is known.
    status: Option<ReplyPhase>,
    attempt: u32,
    /// None after a release: no token is valid.
    nonce: Option<u64>,
    lease_until: Millis,
    failures: u32,
    released: bool,
    cancelled: bool,
    end: Option<Frame>,
    log: ReplyLog,
    keep_until: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyPhase {
    Running,
    Sealed,
    Stored,
    Done,
}

impl ConversationClaims {
    /// Asks for a reply; `nonce` becomes part of the token. The same nonce again gets the same answer.
    pub(super) fn claim(
        &mut self,
        now: Millis,
        request: &ClaimRequest,
        nonce: u64,
    ) -> ClaimOutcome {
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
                if lease_until > now && reply.is_some_and(|reply| reply.nonce == Some(nonce)) => {}
            Some(_) if lease_until > now => return busy(lease_until - now),
            _ => {
                // A stored reply has left the conversation: announcing it waits for nobody.
                let other = self
                    .lease_of_another(now, &request.reply_id)
                    .filter(|_| status != Some(ReplyPhase::Stored));
                if let Some(left) = other {
                    return busy(left);
                }
                self.grant(now, request, nonce);
            }
        }
        self.granted(&request.reply_id)
    }

    /// Logs frames; each one that is to be pushed is given to `push`.
    pub(super) fn append(
        &mut self,
        now: Millis,
        token: &ClaimToken,
        frames: &[Frame],
        mut push: impl FnMut(&Frame),
    ) -> ClaimStatus {
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(standing) => return standing,
        };
        for frame in frames {
            if frame.seq == 0 {
                push(frame);
            } else if reply.status == Some(ReplyPhase::Running) {
                match reply.log.add(now, frame) {
                    Logged::Added => push(frame),
                    Logged::Repeated => {}
                    Logged::Gap => return ClaimStatus::StateLost,
                }
            }
        }
        reply.standing()
    }

    /// Takes the claim again with what its holder knows.
    pub(super) fn restore(
        &mut self,
        now: Millis,
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
            Err(standing) => return standing,
        }
        let reply = self.replies.entry(token.reply_id.clone()).or_default();
        if reply
            .status
            .is_none_or(|status| status == ReplyPhase::Running)
        {
            reply.take(now, token.attempt, token.nonce);
            reply.status = Some(ReplyPhase::Running);
            reply.log.restore(now, frames);
            frames.iter().for_each(&mut push);
            self.current = Some(token.reply_id.clone());
        }
        self.replies
            .get(&token.reply_id)
            .map_or(ClaimStatus::StateLost, ReplyClaim::standing)
    }

    /// Fixes the end of a running reply; a sealed one keeps the end that it has.
    pub(super) fn seal(&mut self, now: Millis, token: &ClaimToken, end: &Frame) -> ClaimStatus {
        let reply = match self.renew(now, token) {
            Ok(reply) => reply,
            Err(standing) => return standing,
        };
        if reply.status != Some(ReplyPhase::Running) {
            return ClaimStatus::Held;
        }
        if reply.cancelled && !is_cancelled_end(end) {
            return ClaimStatus::Cancelled;
        }
        reply.log.expire(now);
        if reply.log.place(end) == Logged::Gap {
            return ClaimStatus::StateLost;
        }
        reply.status = Some(ReplyPhase::Sealed);
        reply.end = Some(end.clone());
        ClaimStatus::Held
    }

    /// The end is stored: shows it, and frees the conversation.
    pub(super) fn settle(
        &mut self,
        now: Millis,
        token: &ClaimToken,
        settlement: &ClaimCompletion,
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
            Err(standing) => return standing,
        };
        let newly_stored = reply.status != Some(ReplyPhase::Stored);
        if newly_stored {
            let end = reply.end.take().unwrap_or_else(|| settlement.end.clone());
            reply.log.close(now, &end);
            push(&end);
        }
        reply.status = Some(if settlement.announced {
            ReplyPhase::Done
        } else {
            ReplyPhase::Stored
        });
        reply.keep_until = now + millis(FINAL_STATE_TTL);
        self.keep_until = reply.keep_until;
        // A later announcement must not turn the count back: another turn may have been settled meanwhile.
        if newly_stored {
            self.message_count = Some(settlement.message_count);
            self.leave(&token.reply_id);
            self.places.remove(&token.reply_id);
        }
        ClaimStatus::Held
    }

    /// Ends the lease as planned; says whether the token was valid.
    pub(super) fn release(&mut self, now: Millis, token: &ClaimToken) -> bool {
        let Ok(reply) = self.renew(now, token) else {
            return false;
        };
        reply.lease_until = now;
        reply.nonce = None;
        reply.released = true;
        self.leave(&token.reply_id);
        true
    }

    /// Gives the reply a place in the queue, if there is one.
    pub(super) fn enqueue(&mut self, now: Millis, reply_id: &MessageId, places_max: u32) -> bool {
        let status = self.replies.get(reply_id).and_then(|reply| reply.status);
        if matches!(status, Some(ReplyPhase::Stored | ReplyPhase::Done)) {
            return true;
        }
        self.places.retain(|_, until| *until > now);
        let is_full = self.places.len() >= usize::try_from(places_max).unwrap_or(usize::MAX);
        if is_full && !self.places.contains_key(reply_id) {
            return false;
        }
        self.places
            .insert(reply_id.clone(), now + millis(QUEUE_SLOT_TTL));
        self.keep_until = now + millis(FINAL_STATE_TTL);
        true
    }

    /// Marks a publish that is not to be worked on.
    pub(super) fn void(&mut self, now: Millis, reply_id: &MessageId, publish_nonce: &str) {
        self.places.remove(reply_id);
        self.keep_until = now + millis(FINAL_STATE_TTL);
        self.voided
            .insert(publish_nonce.to_owned(), self.keep_until);
    }

    /// Asks that a reply stops.
    pub(super) fn cancel(&mut self, now: Millis, reply_id: &MessageId) -> bool {
        let reply = self.replies.entry(reply_id.clone()).or_default();
        if reply
            .status
            .is_some_and(|status| status != ReplyPhase::Running)
        {
            return false;
        }
        reply.cancelled = true;
        reply.keep_until = now + millis(FINAL_STATE_TTL);
        self.keep_until = reply.keep_until;
        true
    }

    /// Logged frames of a reply.
    pub(super) fn read_log(
        &mut self,
        now: Millis,
        reply_id: &MessageId,
        after_seq: u64,
    ) -> Vec<Frame> {
        self.replies
            .get_mut(reply_id)
            .map_or_else(Vec::new, |reply| reply.log.read(now, after_seq))
    }

    /// Logs a frame of a reply that nobody needs to have claimed.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn put_frame(&mut self, now: Millis, reply_id: &MessageId, frame: &Frame) {
        let reply = self.replies.entry(reply_id.clone()).or_default();
        reply.log.close(now, frame);
    }

    /// Drops the log of a reply.
    pub(super) fn forget(&mut self, reply_id: &MessageId) {
        if let Some(reply) = self.replies.get_mut(reply_id) {
            reply.log = ReplyLog::default();
        }
    }

    /// What is to outlive a crash, once the reply was claimed.
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

    /// Learns of attempts that another run of this process handed out; they are dead.
    pub(super) fn recall(&mut self, now: Millis, reply_id: &MessageId, record: AttemptRecord) {
        let reply = self.replies.entry(reply_id.clone()).or_default();
        if reply.status.is_none() {
            reply.status = Some(ReplyPhase::Running);
            reply.attempt = record.attempt;
            reply.failures = record.failures;
            reply.released = record.released;
            reply.keep_until = now + millis(FINAL_STATE_TTL);
        }
    }

    /// Whether this token holds the conversation at this moment.
    #[cfg(test)]
    pub(super) fn is_held_alive(&self, now: Millis, token: &ClaimToken) -> bool {
        self.replies.get(&token.reply_id).is_some_and(|reply| {
            let working = matches!(reply.status, Some(ReplyPhase::Running | ReplyPhase::Sealed));
            working
                && reply.attempt == token.attempt
                && reply.nonce == Some(token.nonce)
                && reply.lease_until > now
        })
    }

    /// Forgets what has expired; `false` when nothing is left.
    pub(super) fn sweep(&mut self, now: Millis) -> bool {
        self.voided.retain(|_, until| *until > now);
        self.replies.retain(|_, reply| {
            reply.log.expire(now);
            reply.keep_until > now
        });
        self.keep_until > now || !self.replies.is_empty() || !self.voided.is_empty()
    }

    fn grant(&mut self, now: Millis, request: &ClaimRequest, nonce: u64) {
        let reply = self.replies.entry(request.reply_id.clone()).or_default();
        let next = if reply.status.is_some() {
            reply.attempt + 1
        } else {
            1
        };
        if reply.status.is_some() && !reply.released {
            reply.failures += 1;
        }
        reply.take(now, next.max(request.attempt_min), nonce);
        self.keep_until = reply.keep_until;
        if *reply.status.get_or_insert(ReplyPhase::Running) != ReplyPhase::Stored {
            self.current = Some(request.reply_id.clone());
        }
    }

    fn granted(&self, reply_id: &MessageId) -> ClaimOutcome {
        let Some(reply) = self.replies.get(reply_id) else {
            return busy(0);
        };
        let (attempt, nonce) = (reply.attempt, reply.nonce.unwrap_or_default());
        let token = ClaimToken {
            reply_id: reply_id.clone(),
            attempt,
            nonce,
        };
        ClaimOutcome::Granted {
            token,
            task: reply.task(),
            message_count: self.message_count,
        }
    }

    /// Renews the lease of a valid token. A lease that ended is revived unless someone claimed since.
    fn renew(&mut self, now: Millis, token: &ClaimToken) -> Result<&mut ReplyClaim, ClaimStatus> {
        let is_current = self.current.as_ref() == Some(&token.reply_id);
        let reply = self
            .replies
            .get_mut(&token.reply_id)
            .ok_or(ClaimStatus::StateLost)?;
        let status = reply.status.ok_or(ClaimStatus::StateLost)?;
        let own = reply.attempt == token.attempt
            && reply.nonce == Some(token.nonce)
            && status != ReplyPhase::Done;
        // Whoever held the conversation after the lease ended may have settled a turn that this holder has not read.
        let overtaken = reply.lease_until <= now && status != ReplyPhase::Stored && !is_current;
        if !own || overtaken {
            return Err(ClaimStatus::Fenced);
        }
        reply.lease_until = now + millis(LEASE);
        Ok(reply)
    }

    /// How long another reply still holds the conversation.
    fn lease_of_another(&self, now: Millis, reply_id: &MessageId) -> Option<Millis> {
        let current = self
            .current
            .as_ref()
            .filter(|current| *current != reply_id)?;
        let until = self.replies.get(current)?.lease_until;
        (until > now).then(|| until - now)
    }

    fn leave(&mut self, reply_id: &MessageId) {
        if self.current.as_ref() == Some(reply_id) {
            self.current = None;
        }
    }
}

impl ReplyClaim {
    fn take(&mut self, now: Millis, attempt: u32, nonce: u64) {
        self.attempt = attempt;
        self.nonce = Some(nonce);
        self.released = false;
        self.lease_until = now + millis(LEASE);
        self.keep_until = now + millis(FINAL_STATE_TTL);
    }

    fn task(&self) -> ClaimTask {
        match (self.status, &self.end) {
            (Some(ReplyPhase::Stored | ReplyPhase::Done), _) => ClaimTask::Announce,
            (Some(ReplyPhase::Sealed), Some(end)) => ClaimTask::StoreFinalized { end: end.clone() },
            _ if self.failures >= ATTEMPTS_MAX => ClaimTask::GiveUp,
            _ => ClaimTask::Generate,
        }
    }

    fn standing(&self) -> ClaimStatus {
        let to_stop = self.cancelled && self.status == Some(ReplyPhase::Running);
        if to_stop {
            ClaimStatus::Cancelled
        } else {
            ClaimStatus::Held
        }
    }

    /// A settle that is repeated because its answer was lost is no news.
    fn is_done_by(&self, token: &ClaimToken) -> bool {
        self.status == Some(ReplyPhase::Done)
            && self.attempt == token.attempt
            && self.nonce == Some(token.nonce)
    }
}

pub(super) fn is_cancelled_end(end: &Frame) -> bool {
    matches!(&end.body, FrameBody::End(end) if end.status == ReplyStatus::Cancelled)
}

fn busy(left: Millis) -> ClaimOutcome {
    ClaimOutcome::Busy {
        retry_after: std::time::Duration::from_millis(left.max(1)),
    }
}
