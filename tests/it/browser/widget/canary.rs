//! A host that nobody has a reason to ask: it counts who does.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::Router;

use crate::support::Page;

/// The host, up until the test process ends.
pub(super) struct Canary {
    /// Its origin.
    pub(super) url: String,
    asked: Arc<AtomicUsize>,
}

impl Canary {
    /// Starts it.
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

    /// How many requests it got.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
