//! Services of one test's own, which it may kill.

use std::{
    net::TcpStream,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use crate::support::{PATIENCE, free_port};

/// A Redis that forgets everything when it stops.
pub(super) struct OwnRedis(OwnService);

/// A Kafka of one node, which keeps its data.
pub(super) struct OwnKafka(OwnService);

struct OwnService {
    script: &'static str,
    directory: tempfile::TempDir,
    port: u16,
}

impl OwnRedis {
    /// Starts it on a free port.
    pub(super) fn start() -> Self {
        Self(OwnService::start("redis.sh", free_port()))
    }

    /// Where it answers.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.0.port)
    }

    /// SIGKILL: no goodbye to its clients.
    pub(super) fn kill(&self) {
        self.0.kill();
    }

    /// Starts it again, empty, on the same port.
    pub(super) fn restart(&self) {
        self.0.run("start");
    }

    /// From now on it answers and reads, and refuses whatever writes: it is full, or the replica of nobody.
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
    /// Starts it on two free ports that are neighbours.
    pub(super) fn start() -> Self {
        Self(OwnService::start("kafka.sh", two_free_ports()))
    }

    /// Where it answers.
    pub(super) fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.0.port)
    }

    /// SIGKILL.
    pub(super) fn kill(&self) {
        self.0.kill();
    }

    /// Starts it again, on the same port and data.
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

    fn kill(&self) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        assert!(
            Command::new("kill")
                .args(["-KILL", pid.trim()])
                .status()
                .unwrap()
                .success()
        );
        // The signal is on its way: until the process is gone its port is taken, and a restart would fail.
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

/// The first of two neighbours, out of reach of the ports that processes of the product get.
fn two_free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = (std::process::id() % 5_000) as u16;
    (0..5_000)
        .map(|_| 20_000 + 2 * ((start + NEXT.fetch_add(1, Ordering::Relaxed)) % 5_000))
        .find(|port| is_free(*port) && is_free(port + 1))
        .expect("two free ports")
}
