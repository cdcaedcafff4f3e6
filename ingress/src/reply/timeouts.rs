//! Pure rules for waiting: when to wait, to hand a reply to another worker, or to give up.

use std::time::Duration;

use switchboard_backends::relay::LEASE;
use tokio::time::Instant;

use crate::config::IngressConfig;

/// Delay of a poll from which on this process counts as having been stopped.
const LATENESS_MAX: Duration = Duration::from_secs(1);

/// Action to take after a silence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TimeoutDecision {
    /// Keep waiting for frames.
    Wait,
    /// Give the reply to another worker.
    RequestTakeover,
    /// Give up: no worker started the reply.
    NeverStarted,
    /// Give up: the reply started and then went silent.
    WentSilent,
}

/// Signs of life and outages as one waiting client saw them.
pub(crate) struct ReplyTimeouts {
    first_frame_timeout: Duration,
    takeover_after: Duration,
    takeovers_left: u32,
    silence_timeout: Duration,
    answer_timeout: Duration,
    queue_timeout: Duration,
    began: Instant,
    heard: bool,
    /// Time of the last report that the message waits behind another one.
    last_waiting: Instant,
    last_sign: Instant,
    relay_away: bool,
    all_away_since: Option<Instant>,
}

impl ReplyTimeouts {
    /// Starts the timeouts of the client whose request started the reply.
    pub(crate) fn new(config: &IngressConfig, now: Instant) -> Self {
        Self {
            first_frame_timeout: Duration::from_millis(config.first_frame_timeout_ms),
            takeover_after: Duration::from_millis(config.takeover_after_ms),
            takeovers_left: config.takeovers_max,
            silence_timeout: Duration::from_millis(config.silence_timeout_ms),
            answer_timeout: Duration::from_millis(config.answer_timeout_ms),
            queue_timeout: Duration::from_millis(config.queue_timeout_ms),
            began: now,
            heard: false,
            last_waiting: now,
            last_sign: now,
            relay_away: false,
            all_away_since: None,
        }
    }

    /// Starts the timeouts of a further reader. Pushed frames go to another ingress, so that
    /// silence means little, and the reader never hands the reply to another worker.
    pub(crate) fn for_reader(config: &IngressConfig, now: Instant) -> Self {
        Self {
            first_frame_timeout: Duration::from_millis(config.queue_timeout_ms),
            takeovers_left: 0,
            silence_timeout: Duration::from_millis(config.answer_timeout_ms),
            ..Self::new(config, now)
        }
    }

    /// Records that the message is queued behind another one. This does not allow a takeover:
    /// earlier messages of the conversation come first, even if their worker dies.
    pub(crate) fn record_waiting(&mut self, now: Instant) {
        self.last_waiting = now;
        self.all_away_since = None;
    }

    /// Records a sign of life: a worker is working on the reply.
    pub(crate) fn record_sign_of_life(&mut self, now: Instant) {
        self.heard = true;
        self.last_sign = now;
        self.all_away_since = None;
    }

    /// Records that the claim stays valid for `left`, which shows when its worker renewed it last.
    pub(crate) fn record_lease(&mut self, left: Duration, now: Instant) {
        let renewed = now.checked_sub(LEASE.saturating_sub(left)).unwrap_or(now);
        self.record_sign_of_life(renewed.max(self.last_sign));
    }

    /// Records that a poll begins at `now` instead of `due`. If it is late the silence starts
    /// again: this process did not run, and signs of life wait unread.
    pub(crate) fn record_lateness(&mut self, due: Instant, now: Instant) {
        if now - due > LATENESS_MAX {
            (self.last_sign, self.last_waiting) = (now, now);
        }
    }

    /// Records the result of reading from Redis.
    pub(crate) fn record_relay(&mut self, answers: bool, now: Instant) {
        // Frames may have been lost in the outage, so that the silence starts again.
        if answers && self.relay_away {
            (self.last_sign, self.last_waiting) = (now, now);
        }
        self.relay_away = !answers;
        if answers {
            self.all_away_since = None;
        }
    }

    /// Records the result of reading from the store while Redis is unavailable.
    pub(crate) fn record_store(&mut self, answers: bool, now: Instant) {
        if answers {
            self.all_away_since = None;
        } else if self.relay_away {
            self.all_away_since.get_or_insert(now);
        }
    }

    /// Returns true if the last read from Redis failed.
    pub(crate) const fn is_relay_unavailable(&self) -> bool {
        self.relay_away
    }

    /// Returns true if no takeover is left, so that only the store can show the end of the reply.
    pub(crate) const fn has_no_takeover_left(&self) -> bool {
        self.heard && self.takeovers_left == 0
    }

    /// Returns true if no sign of life has arrived.
    pub(crate) const fn has_not_started(&self) -> bool {
        !self.heard
    }

    /// Returns the time from which a silent reply is handed to another worker, if it can be.
    pub(crate) fn takeover_due(&self) -> Option<Instant> {
        let can_be_taken_over = self.heard && self.takeovers_left > 0 && !self.relay_away;
        can_be_taken_over.then(|| self.last_sign + self.takeover_after)
    }

    /// Returns the action to take after a poll that found nothing new.
    pub(crate) fn decide(&self, now: Instant) -> TimeoutDecision {
        let waited = now - self.began;
        let silence = now - self.last_sign;
        let everything_away = self
            .all_away_since
            .is_some_and(|since| now - since >= self.silence_timeout);
        if waited >= self.queue_timeout + self.answer_timeout || everything_away {
            return self.give_up();
        }
        // Without Redis no worker can be heard, but a final reply still appears in the store.
        if self.relay_away {
            return if waited >= self.answer_timeout && silence >= self.answer_timeout {
                self.give_up()
            } else {
                TimeoutDecision::Wait
            };
        }
        match self.heard {
            false if now - self.last_waiting >= self.first_frame_timeout => {
                TimeoutDecision::NeverStarted
            }
            false => TimeoutDecision::Wait,
            true if silence >= self.silence_timeout => TimeoutDecision::WentSilent,
            true if self.takeover_due().is_some_and(|due| due <= now) => {
                TimeoutDecision::RequestTakeover
            }
            true => TimeoutDecision::Wait,
        }
    }

    /// Records that the reply was handed to another worker, which gets the same time as the first
    /// one.
    pub(crate) fn record_takeover(&mut self, now: Instant) {
        self.takeovers_left = self.takeovers_left.saturating_sub(1);
        self.last_sign = now;
    }

    const fn give_up(&self) -> TimeoutDecision {
        if self.heard {
            TimeoutDecision::WentSilent
        } else {
            TimeoutDecision::NeverStarted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(Instant, ReplyTimeouts);

    impl Clock {
        fn start() -> Self {
            let now = Instant::now();
            Self(now, ReplyTimeouts::new(&IngressConfig::default(), now))
        }

        fn after(&mut self, seconds: u64) -> TimeoutDecision {
            self.0 += Duration::from_secs(seconds);
            self.1.decide(self.0)
        }
    }

    #[tokio::test]
    async fn silent_reply_is_given_up_after_20_seconds_without_takeover() {
        let mut clock = Clock::start();
        assert_eq!(
            (clock.after(19), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::NeverStarted)
        );
    }

    #[tokio::test]
    async fn queued_message_is_awaited_and_never_taken_over() {
        let mut clock = Clock::start();
        for _ in 0..20 {
            assert_eq!(clock.after(5), TimeoutDecision::Wait);
            clock.1.record_waiting(clock.0);
        }
        assert_eq!(
            (clock.after(19), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::NeverStarted)
        );
    }

    #[tokio::test]
    async fn heartbeats_extend_the_wait_of_a_queued_reply() {
        let mut clock = Clock::start();
        for _ in 0..360 {
            clock.1.record_sign_of_life(clock.0);
            assert_eq!(clock.after(2), TimeoutDecision::Wait);
        }
        clock.1.record_sign_of_life(clock.0);
        assert_eq!(clock.after(6), TimeoutDecision::WentSilent);
    }

    #[tokio::test]
    async fn silent_reply_is_given_up_after_two_takeovers() {
        let mut clock = Clock::start();
        clock.1.record_sign_of_life(clock.0);
        for _ in 0..2 {
            assert_eq!(
                (clock.after(2), clock.after(1)),
                (TimeoutDecision::Wait, TimeoutDecision::RequestTakeover)
            );
            clock.1.record_takeover(clock.0);
        }
        assert!(clock.1.has_no_takeover_left());
        assert_eq!(
            (clock.after(29), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::WentSilent)
        );
    }

    #[tokio::test]
    async fn takeover_is_due_only_while_it_is_possible() {
        let mut clock = Clock::start();
        assert_eq!(clock.1.takeover_due(), None, "no worker has started");
        clock.1.record_sign_of_life(clock.0);
        let due = clock.0 + Duration::from_secs(3);
        assert_eq!(clock.1.takeover_due(), Some(due));
        clock.1.record_relay(false, clock.0);
        assert_eq!(clock.1.takeover_due(), None, "no worker can be heard");
        clock.1.record_relay(true, clock.0);
        (0..2).for_each(|_| clock.1.record_takeover(clock.0));
        assert_eq!(clock.1.takeover_due(), None, "no takeover is left");
    }

    #[tokio::test]
    async fn valid_claim_is_a_sign_of_life_of_its_last_renewal() {
        let mut clock = Clock::start();
        clock.1.record_sign_of_life(clock.0);
        assert_eq!(clock.after(10), TimeoutDecision::RequestTakeover);
        let left = Duration::from_millis(1_200);
        clock.1.record_lease(left, clock.0);
        assert_eq!(clock.1.takeover_due(), Some(clock.0 + left));
        clock.1.record_sign_of_life(clock.0);
        clock.1.record_lease(left, clock.0);
        let due = clock.0 + Duration::from_secs(3);
        assert_eq!(clock.1.takeover_due(), Some(due), "a later sign counts");
    }

    #[tokio::test]
    async fn late_poll_starts_the_silence_again() {
        for (late_s, decision) in [
            (1, TimeoutDecision::RequestTakeover),
            (2, TimeoutDecision::Wait),
        ] {
            let mut clock = Clock::start();
            clock.1.record_sign_of_life(clock.0);
            let due = clock.0 + Duration::from_secs(2);
            clock.0 = due + Duration::from_secs(late_s);
            clock.1.record_lateness(due, clock.0);
            assert_eq!(clock.after(0), decision, "{late_s} s late");
        }
    }

    #[tokio::test]
    async fn late_poll_does_not_end_the_wait_for_a_worker() {
        let mut clock = Clock::start();
        let due = clock.0 + Duration::from_secs(1);
        clock.0 += Duration::from_secs(30);
        clock.1.record_lateness(due, clock.0);
        assert_eq!(
            (clock.after(19), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::NeverStarted)
        );
    }

    #[tokio::test]
    async fn relay_outage_pauses_takeover_and_restarts_the_wait() {
        let mut clock = Clock::start();
        clock.1.record_sign_of_life(clock.0);
        clock.1.record_relay(false, clock.0);
        assert_eq!(clock.after(60), TimeoutDecision::Wait);
        clock.1.record_relay(true, clock.0);
        assert_eq!(
            (clock.after(2), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::RequestTakeover)
        );
    }

    #[tokio::test]
    async fn reply_is_given_up_after_30_seconds_without_relay_and_store() {
        let mut clock = Clock::start();
        clock.1.record_relay(false, clock.0);
        clock.1.record_store(false, clock.0);
        assert_eq!(
            (clock.after(29), clock.after(1)),
            (TimeoutDecision::Wait, TimeoutDecision::NeverStarted)
        );
    }
}
