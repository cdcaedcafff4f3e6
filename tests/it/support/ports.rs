//! Free ports below the kernel's ephemeral range, so that no outgoing connection takes them.

use std::{
    net::TcpListener,
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

const FIRST_PORT: u16 = 10_000;
const BLOCKS: u16 = 9;
const PORTS_PER_BLOCK: u16 = 1_000;

/// Returns a free port of this process's block. A port that a stopped process of a test will use
/// again is not handed out to another test process, which has a block of its own.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 1..PORTS_PER_BLOCK {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS_PER_BLOCK - 1);
        let port = block() + 1 + step;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

/// Returns the first port of a block that this process holds until it ends.
fn block() -> u16 {
    static LOCK: OnceLock<TcpListener> = OnceLock::new();
    let lock = LOCK.get_or_init(|| {
        (0..BLOCKS)
            .map(|block| FIRST_PORT + block * PORTS_PER_BLOCK)
            .find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
            .expect("fewer than nine test processes run at once")
    });
    lock.local_addr().unwrap().port()
}
