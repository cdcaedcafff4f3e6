//! Idle timeouts of connections. Connections are limited, and a client that sends no request or
//! never reads would hold one forever. TCP cannot detect this: an HTTP/2 client can answer pings
//! without reading.

use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, Sleep, sleep};

use crate::config::IngressConfig;

/// Action when a connection's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerExpiry {
    /// Accept no further requests; open ones may finish.
    Leave,
    /// Drop the connection.
    Cut,
}

/// Timer that starts with the connection and restarts with each request.
pub(crate) struct ConnectionTimer {
    phase: ConnectionPhase,
    timer: Pin<Box<Sleep>>,
    idle: Duration,
    longest_reply: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    Silent,
    Serving,
    Leaving,
}

impl ConnectionTimer {
    /// Starts the timer of a new connection.
    pub(crate) fn start(config: &IngressConfig) -> Self {
        Self {
            phase: ConnectionPhase::Silent,
            // Hyper's header timeout starts when the protocol is known, which a silent client
            // prevents.
            timer: Box::pin(sleep(Duration::from_millis(config.header_timeout_ms))),
            idle: Duration::from_millis(config.idle_timeout_ms),
            longest_reply: Duration::from_millis(
                config
                    .queue_timeout_ms
                    .saturating_add(config.answer_timeout_ms),
            ),
        }
    }

    /// Restarts the timer for a new request.
    pub(crate) fn restart(&mut self) {
        if self.phase != ConnectionPhase::Leaving {
            self.phase = ConnectionPhase::Serving;
            self.timer.as_mut().reset(Instant::now() + self.idle);
        }
    }

    /// Waits until the connection's time is over; may be called again.
    pub(crate) async fn wait_for_expiry(&mut self) -> TimerExpiry {
        self.timer.as_mut().await;
        match self.phase {
            ConnectionPhase::Silent | ConnectionPhase::Leaving => TimerExpiry::Cut,
            ConnectionPhase::Serving => {
                self.phase = ConnectionPhase::Leaving;
                self.timer
                    .as_mut()
                    .reset(Instant::now() + self.longest_reply);
                TimerExpiry::Leave
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
    async fn silent_connection_is_dropped() {
        let began = Instant::now();
        assert_eq!(
            ConnectionTimer::start(&config()).wait_for_expiry().await,
            TimerExpiry::Cut
        );
        assert_eq!(began.elapsed().as_millis(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_closes_and_an_overlong_one_is_cut() {
        let (began, mut timer) = (Instant::now(), ConnectionTimer::start(&config()));
        for _ in 0..3 {
            timer.restart();
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        assert_eq!(
            (timer.wait_for_expiry().await, began.elapsed().as_millis()),
            (TimerExpiry::Leave, 160)
        );
        timer.restart();
        assert_eq!(
            (timer.wait_for_expiry().await, began.elapsed().as_millis()),
            (TimerExpiry::Cut, 880)
        );
    }
}
