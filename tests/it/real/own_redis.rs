//! A Redis of one test's own, which it may kill.

use std::{path::PathBuf, process::Command};

use crate::support::free_port;

/// A running, or killed, Redis.
pub(super) struct OwnRedis {
    directory: tempfile::TempDir,
    port: u16,
}

impl OwnRedis {
    /// Starts one on a free port.
    pub(super) fn start() -> Self {
        let redis = Self { directory: tempfile::tempdir().unwrap(), port: free_port() };
        redis.run("start");
        redis
    }

    /// SIGKILL: no goodbye to its clients.
    pub(super) fn kill(&self) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
    }

    /// Starts it again where it was, empty.
    pub(super) fn start_again(&self) {
        self.run("start");
    }

    /// Where it answers.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn run(&self, command: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/services/redis.sh");
        let mut run = Command::new(script);
        let status = run.arg(command).arg(self.directory.path()).arg(self.port.to_string()).status().unwrap();
        assert!(status.success(), "redis.sh {command}");
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        self.run("stop");
    }
}
