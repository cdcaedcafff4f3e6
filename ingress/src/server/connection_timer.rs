//! How long a connection may stay: places are few, and a client that keeps one without a request, or asks and never reads,
//! keeps it from somebody else. TCP alone ends neither: an HTTP/2 client can answer pings for ever and take no byte.

use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, Sleep, sleep};

use crate::config::IngressConfig;

/// What is to happen to a connection whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It takes no further request; what is open may finish.
    Leave,
    /// It is dropped.
    Cut,
}

/// Measures from a connection's begin, and from each request on it.
pub(crate) struct ConnectionTimer {
    phase: Phase,
    timer: Pin<Box<Sleep>>,
    idle: Duration,
    longest_reply: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Silent,
    Serving,
    Leaving,
}

impl ConnectionTimer {
    /// Of a connection that begins now.
    pub(crate) fn start(config: &IngressConfig) -> Self {
        Self {
            phase: Phase::Silent,
            // Hyper's header timeout begins with a protocol, which a silent client never chooses.
            timer: Box::pin(sleep(Duration::from_millis(config.header_timeout_ms))),
            idle: Duration::from_millis(config.idle_timeout_ms),
            longest_reply: Duration::from_millis(
                config
                    .queue_timeout_ms
                    .saturating_add(config.answer_timeout_ms),
            ),
        }
    }

    /// A request came.
    pub(crate) fn request(&mut self) {
        if self.phase != Phase::Leaving {
            self.phase = Phase::Serving;
            self.timer.as_mut().reset(Instant::now() + self.idle);
        }
    }

    /// Waits until the connection's time is over; may be asked again.
    pub(crate) async fn expired(&mut self) -> Expiry {
        self.timer.as_mut().await;
        match self.phase {
            Phase::Silent | Phase::Leaving => Expiry::Cut,
            Phase::Serving => {
                self.phase = Phase::Leaving;
                self.timer
                    .as_mut()
                    .reset(Instant::now() + self.longest_reply);
                Expiry::Leave
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> IngressConfig {
        IngressConfig {
            header_timeout_ms: 10,
            idle_timeout_ms: 60,
            queue_timeout_ms: 600,
            answer_timeout_ms: 120,
            ..IngressConfig::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_cut() {
        let began = Instant::now();
        assert_eq!(
            ConnectionTimer::start(&config()).expired().await,
            Expiry::Cut
        );
        assert_eq!(began.elapsed().as_millis(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_leaves_when_it_is_idle_and_is_cut_when_no_reply_can_be_open() {
        let (began, mut timer) = (Instant::now(), ConnectionTimer::start(&config()));
        for _ in 0..3 {
            timer.request();
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        assert_eq!(
            (timer.expired().await, began.elapsed().as_millis()),
            (Expiry::Leave, 160)
        );
        timer.request();
        assert_eq!(
            (timer.expired().await, began.elapsed().as_millis()),
            (Expiry::Cut, 880)
        );
    }
}
