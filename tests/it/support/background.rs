//! One runtime that outlives every test: what tests share must not die with the first one that used it.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// The runtime of everything that is shared between tests.
pub(crate) fn background() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        // reqwest is built without a provider of its own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_name("background")
            .build()
            .unwrap()
    })
}
