//! The subscription of one ingress process to its channel.
//!
//! The subscription of the client library may stay dead after an outage without an error. This one
//! verifies itself: each second it publishes a probe through a normal command, and a subscription
//! that does not receive it is closed and opened again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt;
use redis::aio::PubSub;
use switchboard_schemas::reply_event::IngressEnvelope;
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        watch,
    },
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::EnvelopeCounters;
use crate::redis_link::{RedisLink, RedisLinkError};

const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(3);
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// Payload of the probe; no envelope starts like this.
const PROBE: &[u8] = b"\xffalive";

pub(super) struct ChannelListener {
    link: RedisLink,
    channel: String,
    sender: mpsc::Sender<IngressEnvelope>,
    counters: Arc<EnvelopeCounters>,
    subscribed: watch::Sender<bool>,
    heard_at: watch::Sender<Instant>,
}

impl ChannelListener {
    pub(super) fn new(
        link: RedisLink,
        channel: String,
        sender: mpsc::Sender<IngressEnvelope>,
        counters: Arc<EnvelopeCounters>,
    ) -> Self {
        let (subscribed, heard_at) = (
            watch::Sender::new(false),
            watch::Sender::new(Instant::now()),
        );
        Self {
            link,
            channel,
            sender,
            counters,
            subscribed,
            heard_at,
        }
    }

    /// Returns a watch that turns `true` when the channel is subscribed for the first time.
    pub(super) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.subscribe()
    }

    /// Keeps the subscription open until the receiver is dropped.
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.sender.closed() => {}
            () = self.supervise() => {}
        }
    }

    async fn supervise(&self) {
        let mut was_up = true;
        loop {
            let is_up = match self.link.subscribe(&self.channel).await {
                Ok(connection) => {
                    tracing::info!("relay channel subscribed");
                    self.subscribed.send_replace(true);
                    self.run_subscription(connection).await;
                    true
                }
                Err(RedisLinkError(_)) => false,
            };
            // Log one line for each change, not for each attempt.
            if is_up || was_up {
                tracing::warn!("relay channel silent, subscribing again");
            }
            was_up = is_up;
            sleep(RECONNECT_DELAY).await;
        }
    }

    /// Runs one subscription until no probe arrives any more.
    async fn run_subscription(&self, connection: PubSub) {
        self.heard_at.send_replace(Instant::now());
        tokio::select! {
            () = self.receive_messages(connection) => {}
            () = self.send_probes() => {}
        }
    }

    /// Takes messages as fast as they arrive; otherwise they would pile up inside the client
    /// without a bound.
    async fn receive_messages(&self, mut connection: PubSub) {
        let mut messages = connection.on_message();
        while let Some(message) = messages.next().await {
            match message.get_payload::<Bytes>() {
                Ok(payload) if payload == PROBE => {
                    self.heard_at.send_replace(Instant::now());
                }
                Ok(payload) => self.deliver(payload),
                Err(_) => count_malformed(&self.counters),
            }
        }
    }

    fn deliver(&self, payload: Bytes) {
        let Ok(envelope) = IngressEnvelope::decode(payload) else {
            return count_malformed(&self.counters);
        };
        if let Err(TrySendError::Full(_)) = self.sender.try_send(envelope) {
            let dropped = self.counters.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // Log at powers of two, so that a slow listener does not flood the log.
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "listener too slow, frames dropped");
            }
        }
    }

    /// Publishes probes and returns when none was received for too long.
    async fn send_probes(&self) {
        let mut ticks = interval(PROBE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut probe = redis::cmd("PUBLISH");
        probe.arg(&self.channel).arg(PROBE);
        loop {
            ticks.tick().await;
            // A lost probe is noticed when it is not received.
            let _: Result<(), RedisLinkError> = self.link.query(&probe).await;
            if self.heard_at.borrow().elapsed() >= SILENCE_MAX {
                return;
            }
        }
    }
}

fn count_malformed(counters: &EnvelopeCounters) {
    let malformed = counters.malformed.fetch_add(1, Ordering::Relaxed) + 1;
    if malformed.is_power_of_two() {
        tracing::warn!(malformed, "malformed envelope on the relay channel");
    }
}
