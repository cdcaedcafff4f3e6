//! Free ports below the kernel's ephemeral range, so that no outgoing connection takes them.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST_PORT: u16 = 10_000;
const PORTS: u16 = 9_000;

/// Returns a free port that this process hands out only once.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test processes start at different ports.
    // Adjacent process ids start far from each other.
    let start = (u64::from(std::process::id()) * 7_919 % u64::from(PORTS)) as u16;
    for _ in 0..PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + ((u32::from(start) + u32::from(step)) % u32::from(PORTS)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}
