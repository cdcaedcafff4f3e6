//! Load on a target, sequential and concurrent, and the measured times.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;
use hdrhistogram::Histogram;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Organization, ScriptedModel, TestService, unique};

/// Longest measured time.
const MICROS_MAX: u64 = 60_000_000;

/// A target of chats: the service, or the model without it.
pub(crate) struct Target {
    http: Client,
    urls: Vec<String>,
    key: String,
    body: fn(&str, &str) -> Value,
    model: String,
    next: AtomicUsize,
}

impl Target {
    /// Returns the model, called without the service.
    pub(crate) fn direct(organization: &Organization) -> Self {
        let urls = vec![format!(
            "{}/chat/completions",
            ScriptedModel::get().base_url()
        )];
        let body = |_: &str, model: &str| {
            let messages = json!([{"role": "system", "content": "Answer."}, {"role": "user", "content": "hello"}]);
            json!({"model": model, "stream": true, "messages": messages})
        };
        Self::new(urls, "none".into(), body, organization.model.clone())
    }

    /// Returns the service in front of the model.
    pub(crate) fn through(service: &TestService, organization: &Organization) -> Self {
        let agent = organization.shop();
        let urls = service
            .public_urls()
            .iter()
            .map(|url| format!("{url}/api/public/agents/{agent}/chat"))
            .collect();
        let body = |session: &str, _: &str| json!({"message": "hello", "sessionId": session});
        Self::new(
            urls,
            organization.key_text("load").to_owned(),
            body,
            organization.model.clone(),
        )
    }

    /// Creates a chat request in a new session.
    pub(crate) fn chat(&self) -> RequestBuilder {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let body = (self.body)(&unique("load-"), &self.model);
        self.http
            .post(&self.urls[turn % self.urls.len()])
            .bearer_auth(&self.key)
            .json(&body)
    }

    fn new(urls: Vec<String>, key: String, body: fn(&str, &str) -> Value, model: String) -> Self {
        // Connections are reused, as by real clients.
        let http = Client::builder().no_proxy().build().unwrap_or_default();
        Self {
            http,
            urls,
            key,
            body,
            model,
            next: AtomicUsize::new(0),
        }
    }
}

/// Measures the microseconds to the first text of `samples` chats, `chats` of them at once.
pub(crate) async fn first_bytes(target: &Target, chats: usize, samples: usize) -> Histogram<u64> {
    let lanes = (0..chats).map(|_| async {
        let mut times = vec![];
        for _ in 0..samples.div_ceil(chats) {
            times.push(first_byte(target).await);
        }
        times
    });
    let bounds = Histogram::new_with_bounds(1, MICROS_MAX, 3);
    let mut histogram = bounds.unwrap_or_else(|_| unreachable!("the bounds are in order"));
    for time in join_all(lanes).await.into_iter().flatten().flatten() {
        histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
    histogram
}

/// Measures the complete replies per second of `chats` concurrent chats.
pub(crate) async fn replies_per_second(target: &Target, chats: usize, duration: Duration) -> f64 {
    let began = Instant::now();
    let lanes = (0..chats).map(|_| async {
        let mut replies = 0_u32;
        while began.elapsed() < duration {
            if first_byte(target).await.is_some() {
                replies += 1;
            }
        }
        replies
    });
    let replies: u32 = join_all(lanes).await.into_iter().sum();
    f64::from(replies) / began.elapsed().as_secs_f64()
}

/// Returns the time to the first text of one chat, which is then read to its end; `None` if it
/// failed.
async fn first_byte(target: &Target) -> Option<Duration> {
    let began = Instant::now();
    let mut response = target.chat().send().await.ok()?.error_for_status().ok()?;
    let mut first = None;
    let mut received = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if first.is_none() {
            received.extend_from_slice(&chunk);
            // The first event of the model has no text yet; the text of every script begins with
            // this word.
            first = contains(&received, b"w0000").then(|| began.elapsed());
        }
    }
    first
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
