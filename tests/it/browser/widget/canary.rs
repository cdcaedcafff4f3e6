//! A host that counts requests which no page should send.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::Router;

use crate::support::Page;

/// A host that runs until the test process ends.
pub(super) struct Canary {
    pub(super) url: String,
    asked: Arc<AtomicUsize>,
}

impl Canary {
    pub(super) fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let page = Page::answer(Router::new().fallback(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            async { "tweet" }
        }));
        Self {
            url: page.origin(),
            asked,
        }
    }

    /// Returns the number of requests received.
    pub(super) fn request_count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
