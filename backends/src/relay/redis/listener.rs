//! One ingress's channel, listened to for ever. The client library's own subscription may stay dead after an outage
//! without a word, so this one proves itself alive: each second it sends itself a sign through a normal command, and a
//! subscription that hears none is thrown away and made anew.

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

use super::Counters;
use crate::redis_link::{LinkError, RedisLink};

const SIGN_INTERVAL: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(3);
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// No envelope begins like this.
const SIGN: &[u8] = b"\xffalive";

pub(super) struct Listener {
    link: RedisLink,
    channel: String,
    sender: mpsc::Sender<IngressEnvelope>,
    counters: Arc<Counters>,
    subscribed: watch::Sender<bool>,
    heard_at: watch::Sender<Instant>,
}

impl Listener {
    pub(super) fn new(
        link: RedisLink,
        channel: String,
        sender: mpsc::Sender<IngressEnvelope>,
        counters: Arc<Counters>,
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

    /// Turns true when the channel is listened to for the first time.
    pub(super) fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.subscribe()
    }

    /// Listens until the receiver is dropped.
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
                    tracing::info!("listening to the relay");
                    self.subscribed.send_replace(true);
                    self.session(connection).await;
                    true
                }
                Err(LinkError(_)) => false,
            };
            // One line for each change, not one for each try.
            if is_up || was_up {
                tracing::warn!("the relay's channel is silent: subscribing again");
            }
            was_up = is_up;
            sleep(RECONNECT_DELAY).await;
        }
    }

    /// One subscription, from its first message until it is dead.
    async fn session(&self, connection: PubSub) {
        self.heard_at.send_replace(Instant::now());
        tokio::select! {
            () = self.drain(connection) => {}
            () = self.send_signs() => {}
        }
    }

    /// Takes messages as fast as they come: those that wait would pile up without a bound inside the client.
    async fn drain(&self, mut connection: PubSub) {
        let mut messages = connection.on_message();
        while let Some(message) = messages.next().await {
            match message.get_payload::<Bytes>() {
                Ok(payload) if payload == SIGN => {
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
            // Powers of two: a listener that hangs must not fill the log.
            if dropped.is_power_of_two() {
                tracing::warn!(
                    dropped,
                    "a listener does not keep up: frames are dropped and repaired from the log"
                );
            }
        }
    }

    /// Returns when the subscription heard nothing of us for too long.
    async fn send_signs(&self) {
        let mut ticks = interval(SIGN_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sign = redis::cmd("PUBLISH");
        sign.arg(&self.channel).arg(SIGN);
        loop {
            ticks.tick().await;
            // Whether it was sent shows when it is heard.
            let _: Result<(), LinkError> = self.link.query(&sign).await;
            if self.heard_at.borrow().elapsed() >= SILENCE_MAX {
                return;
            }
        }
    }
}

fn count_malformed(counters: &Counters) {
    let malformed = counters.malformed.fetch_add(1, Ordering::Relaxed) + 1;
    if malformed.is_power_of_two() {
        tracing::warn!(malformed, "a message on the relay's channel is no envelope");
    }
}
