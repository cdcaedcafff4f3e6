//! Requests to a target, alone and in crowds, and what they took.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;
use hdrhistogram::Histogram;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Organization, ScriptedModel, TestService, unique};

/// Longest time that is told apart.
const MICROS_MAX: u64 = 60_000_000;

/// Something that answers chats: the service, or the model itself.
pub(crate) struct Target {
    http: Client,
    urls: Vec<String>,
    key: String,
    body: fn(&str, &str) -> Value,
    model: String,
    next: AtomicUsize,
}

impl Target {
    /// The model without us.
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

    /// The model behind us.
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

    /// A chat in a new session.
    pub(crate) fn chat(&self) -> RequestBuilder {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let body = (self.body)(&unique("load-"), &self.model);
        self.http
            .post(&self.urls[turn % self.urls.len()])
            .bearer_auth(&self.key)
            .json(&body)
    }

    fn new(urls: Vec<String>, key: String, body: fn(&str, &str) -> Value, model: String) -> Self {
        // Connections are kept, as real clients keep them.
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

/// Microseconds to the first byte of text, of `samples` chats, `chats` at once.
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

/// Complete replies per second of `chats` chats at once, as fast as they go.
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

/// Time to the first text of one chat, which is then read to its end; none when it failed or broke off.
async fn first_byte(target: &Target) -> Option<Duration> {
    let began = Instant::now();
    let mut response = target.chat().send().await.ok()?.error_for_status().ok()?;
    let mut first = None;
    let mut direct_so_far = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if first.is_none() {
            direct_so_far.extend_from_slice(&chunk);
            // The model's own first event carries no text yet; every script's text begins with this word.
            first = contains(&direct_so_far, b"w0000").then(|| began.elapsed());
        }
    }
    first
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
