//! Redis and Kafka instances of a single test, which may kill them.

use std::{
    net::TcpStream,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use crate::support::{PATIENCE, free_port};

/// A Redis without persistence.
pub(super) struct OwnRedis(OwnService);

/// A single-node Kafka that keeps its data.
pub(super) struct OwnKafka(OwnService);

struct OwnService {
    script: &'static str,
    directory: tempfile::TempDir,
    port: u16,
}

impl OwnRedis {
    /// Starts Redis on a free port.
    pub(super) fn start() -> Self {
        Self(OwnService::start("redis.sh", free_port()))
    }

    /// Returns the address for clients.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.0.port)
    }

    /// Kills the process with SIGKILL, without closing connections.
    pub(super) fn kill(&self) {
        self.0.kill();
    }

    /// Restarts it without data on the same port.
    pub(super) fn restart(&self) {
        self.0.run("start");
    }

    /// Suspends the process: it keeps data and connections, and answers nothing.
    pub(super) fn suspend(&self) {
        self.0.signal("-STOP");
    }

    /// Continues a suspended process.
    pub(super) fn resume(&self) {
        self.0.signal("-CONT");
    }

    /// Makes Redis read-only, as when its memory is full.
    pub(super) fn refuse_writes(&self) {
        let port = self.0.port.to_string();
        let set = Command::new("redis-cli")
            .args(["-p", &port, "config", "set", "maxmemory", "1"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&set.stdout).trim(), "OK");
    }
}

impl OwnKafka {
    /// Starts Kafka on two adjacent free ports.
    pub(super) fn start() -> Self {
        Self(OwnService::start("kafka.sh", two_free_ports()))
    }

    /// Returns the address for clients.
    pub(super) fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.0.port)
    }

    pub(super) fn kill(&self) {
        self.0.kill();
    }

    /// Suspends the process: it keeps its connections and answers nothing.
    pub(super) fn suspend(&self) {
        self.0.signal("-STOP");
    }

    /// Continues a suspended process.
    pub(super) fn resume(&self) {
        self.0.signal("-CONT");
    }

    /// Restarts it with the same port and data.
    pub(super) fn restart(&self) {
        self.0.run("start");
    }
}

impl OwnService {
    fn start(script: &'static str, port: u16) -> Self {
        let service = Self {
            script,
            directory: tempfile::tempdir().unwrap(),
            port,
        };
        service.run("start");
        service
    }

    fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        let kill = Command::new("kill").args([signal, pid.trim()]).status();
        assert!(kill.unwrap().success());
    }

    fn kill(&self) {
        self.signal("-KILL");
        // Until the process has ended, its port is taken and a restart would fail.
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            assert!(
                began.elapsed() < PATIENCE,
                "{} outlives SIGKILL",
                self.script
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn run(&self, command: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/services")
            .join(self.script);
        let mut run = Command::new(script);
        let status = run
            .arg(command)
            .arg(self.directory.path())
            .arg(self.port.to_string())
            .status()
            .unwrap();
        assert!(status.success(), "{} {command}", self.script);
    }
}

impl Drop for OwnService {
    fn drop(&mut self) {
        self.run("stop");
    }
}

/// Returns the first of two adjacent ports, outside the range of the product's processes.
fn two_free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = (std::process::id() % 5_000) as u16;
    (0..5_000)
        .map(|_| 20_000 + 2 * ((start + NEXT.fetch_add(1, Ordering::Relaxed)) % 5_000))
        .find(|port| is_free(*port) && is_free(port + 1))
        .expect("two free ports")
}
