//! How long to wait for a reply: a pure account of signs, silences and outages, so that the rules can be tested alone.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::IngressConfig;

/// What silence asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on waiting.
    Wait,
    /// Give the reply to another worker.
    TakeOver,
    /// Nothing was ever heard of it.
    GiveUpUnheard,
    /// It was heard of and has fallen silent.
    GiveUpSilent,
}

/// The waiting of one client.
pub(crate) struct Patience {
    first_frame_timeout: Duration,
    takeover_after: Duration,
    takeovers_left: u32,
    silence_timeout: Duration,
    answer_timeout: Duration,
    queue_timeout: Duration,
    began: Instant,
    heard: bool,
    /// When it was last said that the message waits for its turn.
    last_waiting: Instant,
    last_sign: Instant,
    relay_away: bool,
    all_away_since: Option<Instant>,
}

impl Patience {
    /// Begins to wait.
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

    /// Begins to wait beside the ingress to which the signs of life go: silence says little here, and asking another
    /// worker is not this reader's to do.
    pub(crate) fn of_reader(config: &IngressConfig, now: Instant) -> Self {
        Self {
            first_frame_timeout: Duration::from_millis(config.queue_timeout_ms),
            takeovers_left: 0,
            silence_timeout: Duration::from_millis(config.answer_timeout_ms),
            ..Self::new(config, now)
        }
    }

    /// A worker has the message and it waits for its turn. Unlike a sign of an attempt, it lets nobody take over: what
    /// stands before it in its conversation comes first, also when their worker dies.
    pub(crate) fn waits(&mut self, now: Instant) {
        self.last_waiting = now;
        self.all_away_since = None;
    }

    /// A worker gave a sign: it works on the reply.
    pub(crate) fn sign(&mut self, now: Instant) {
        self.heard = true;
        self.last_sign = now;
        self.all_away_since = None;
    }

    /// The relay answered, or did not.
    pub(crate) fn relay(&mut self, answers: bool, now: Instant) {
        // What was silent during an outage may have spoken: its silence counts anew.
        if answers && self.relay_away {
            (self.last_sign, self.last_waiting) = (now, now);
        }
        self.relay_away = !answers;
        if answers {
            self.all_away_since = None;
        }
    }

    /// The store answered, or did not, while the relay was away.
    pub(crate) fn store(&mut self, answers: bool, now: Instant) {
        if answers {
            self.all_away_since = None;
        } else if self.relay_away {
            self.all_away_since.get_or_insert(now);
        }
    }

    /// Whether the relay did not answer when it was last asked.
    pub(crate) const fn relay_is_away(&self) -> bool {
        self.relay_away
    }

    /// Whether no further worker will be asked, so that only the store can tell how it ended.
    pub(crate) const fn is_last_hope(&self) -> bool {
        self.heard && self.takeovers_left == 0
    }

    /// Whether no worker has given a sign of it yet.
    pub(crate) const fn is_unheard(&self) -> bool {
        !self.heard
    }

    /// What to do after a look that found nothing new.
    pub(crate) fn judge(&self, now: Instant) -> Verdict {
        let waited = now - self.began;
        let silence = now - self.last_sign;
        let everything_away = self
            .all_away_since
            .is_some_and(|since| now - since >= self.silence_timeout);
        if waited >= self.queue_timeout + self.answer_timeout || everything_away {
            return self.give_up();
        }
        // Without the relay no worker can be heard, and a finished reply still appears in the store.
        if self.relay_away {
            return if waited >= self.answer_timeout && silence >= self.answer_timeout {
                self.give_up()
            } else {
                Verdict::Wait
            };
        }
        match self.heard {
            false if now - self.last_waiting >= self.first_frame_timeout => Verdict::GiveUpUnheard,
            false => Verdict::Wait,
            true if silence >= self.silence_timeout => Verdict::GiveUpSilent,
            true if silence >= self.takeover_after && self.takeovers_left > 0 => Verdict::TakeOver,
            true => Verdict::Wait,
        }
    }

    /// The reply was given to another worker, which gets as much time as the first one had.
    pub(crate) fn taken_over(&mut self, now: Instant) {
        self.takeovers_left = self.takeovers_left.saturating_sub(1);
        self.last_sign = now;
    }

    const fn give_up(&self) -> Verdict {
        if self.heard {
            Verdict::GiveUpSilent
        } else {
            Verdict::GiveUpUnheard
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(Instant, Patience);

    impl Clock {
        fn start() -> Self {
            let now = Instant::now();
            Self(now, Patience::new(&IngressConfig::default(), now))
        }

        fn after(&mut self, seconds: u64) -> Verdict {
            self.0 += Duration::from_secs(seconds);
            self.1.judge(self.0)
        }
    }

    #[tokio::test]
    async fn a_reply_that_is_never_heard_of_is_given_up_after_20_seconds_and_never_taken_over() {
        let mut clock = Clock::start();
        assert_eq!(
            (clock.after(19), clock.after(1)),
            (Verdict::Wait, Verdict::GiveUpUnheard)
        );
    }

    #[tokio::test]
    async fn a_message_that_waits_for_its_turn_is_waited_for_and_never_taken_over() {
        let mut clock = Clock::start();
        for _ in 0..20 {
            assert_eq!(clock.after(5), Verdict::Wait);
            clock.1.waits(clock.0);
        }
        assert_eq!(
            (clock.after(19), clock.after(1)),
            (Verdict::Wait, Verdict::GiveUpUnheard)
        );
    }

    #[tokio::test]
    async fn beats_keep_a_queued_reply_waiting_until_its_turn_and_its_time_are_over() {
        let mut clock = Clock::start();
        for _ in 0..360 {
            clock.1.sign(clock.0);
            assert_eq!(clock.after(2), Verdict::Wait);
        }
        clock.1.sign(clock.0);
        assert_eq!(clock.after(6), Verdict::GiveUpSilent);
    }

    #[tokio::test]
    async fn a_silent_reply_is_taken_over_twice_and_then_given_up() {
        let mut clock = Clock::start();
        clock.1.sign(clock.0);
        for _ in 0..2 {
            assert_eq!(
                (clock.after(2), clock.after(1)),
                (Verdict::Wait, Verdict::TakeOver)
            );
            clock.1.taken_over(clock.0);
        }
        assert!(clock.1.is_last_hope());
        assert_eq!(
            (clock.after(29), clock.after(1)),
            (Verdict::Wait, Verdict::GiveUpSilent)
        );
    }

    #[tokio::test]
    async fn without_the_relay_nothing_is_taken_over_and_silence_counts_anew_after_it() {
        let mut clock = Clock::start();
        clock.1.sign(clock.0);
        clock.1.relay(false, clock.0);
        assert_eq!(clock.after(60), Verdict::Wait);
        clock.1.relay(true, clock.0);
        assert_eq!(
            (clock.after(2), clock.after(1)),
            (Verdict::Wait, Verdict::TakeOver)
        );
    }

    #[tokio::test]
    async fn when_relay_and_store_are_both_away_it_is_given_up_after_30_seconds() {
        let mut clock = Clock::start();
        clock.1.relay(false, clock.0);
        clock.1.store(false, clock.0);
        assert_eq!(
            (clock.after(29), clock.after(1)),
            (Verdict::Wait, Verdict::GiveUpUnheard)
        );
    }
}
