//! A runtime that outlives every test, for resources shared between tests.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// Returns the runtime of resources shared between tests.
pub(crate) fn background() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        // reqwest is built without its own TLS provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_name("background")
            .build()
            .unwrap()
    })
}
