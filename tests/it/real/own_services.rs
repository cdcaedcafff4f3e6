//! Instances of Redis, Kafka and Cassandra of a single test, which may kill or suspend them.

use std::{
    net::TcpStream,
    ops::Deref,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{PATIENCE, free_port};

/// A Redis without persistence.
pub(super) struct OwnRedis(Arc<OwnService>);

/// A single-node Cassandra that keeps its data.
pub(super) struct OwnCassandra(Arc<OwnService>);

/// A single-node Kafka that keeps its data.
pub(super) struct OwnKafka(Arc<OwnService>);

/// A process of a service on a port of its own.
pub(super) struct OwnService {
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
        format!("redis://{}", self.address())
    }

    /// Makes Redis read-only, as when its memory is full.
    pub(super) fn refuse_writes(&self) {
        let port = self.port.to_string();
        let set = Command::new("redis-cli")
            .args(["-p", &port, "config", "set", "maxmemory", "1"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&set.stdout).trim(), "OK");
    }
}

impl OwnCassandra {
    /// Starts Cassandra on two adjacent free ports.
    pub(super) fn start() -> Self {
        Self(OwnService::start("cassandra.sh", two_free_ports()))
    }
}

impl OwnKafka {
    /// Starts Kafka on two adjacent free ports.
    pub(super) fn start() -> Self {
        Self(OwnService::start("kafka.sh", two_free_ports()))
    }

    /// Returns the address for clients.
    pub(super) fn brokers(&self) -> String {
        self.address()
    }
}

impl Deref for OwnRedis {
    type Target = Arc<OwnService>;

    fn deref(&self) -> &Arc<OwnService> {
        &self.0
    }
}

impl Deref for OwnCassandra {
    type Target = Arc<OwnService>;

    fn deref(&self) -> &Arc<OwnService> {
        &self.0
    }
}

impl Deref for OwnKafka {
    type Target = Arc<OwnService>;

    fn deref(&self) -> &Arc<OwnService> {
        &self.0
    }
}

impl OwnService {
    fn start(script: &'static str, port: u16) -> Arc<Self> {
        let service = Arc::new(Self {
            script,
            directory: tempfile::tempdir().unwrap(),
            port,
        });
        service.run("start");
        service
    }

    /// Returns host and port.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Restarts a killed process on the same port, with its data if it keeps any.
    pub(super) fn restart(&self) {
        self.run("start");
    }

    /// Stops the process if it still runs.
    pub(super) fn stop(&self) {
        self.run("stop");
    }

    /// Suspends the process: it keeps data and connections, and answers nothing.
    pub(super) fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Continues a suspended process.
    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    /// Returns the process id.
    pub(super) fn id(&self) -> u32 {
        let id = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        id.trim().parse().unwrap()
    }

    fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.unwrap().success());
    }

    /// Kills the process with SIGKILL, without closing connections.
    pub(super) fn kill(&self) {
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
        self.stop();
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
