//! Counts of a running process, from strace, callgrind and `/proc`.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::sleep;

pub(crate) fn is_installed(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// strace on all threads of a process.
pub(crate) struct Trace {
    strace: Child,
    directory: TempDir,
}

impl Trace {
    /// Attaches strace and waits until it holds every thread.
    pub(crate) async fn attach(process: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-s", "8", "-p", &process.to_string(), "-o"]);
        command.arg(directory.path().join("calls"));
        let mut strace = command.spawn().unwrap();
        while !is_traced(process) {
            let end = strace.try_wait().unwrap();
            assert!(end.is_none(), "strace could not attach: {end:?}");
            sleep(Duration::from_millis(20)).await;
        }
        Self { strace, directory }
    }

    /// Detaches strace and returns the number of calls by name. Writes to an eventfd, which wake
    /// a thread, and the two kinds of sync are counted apart.
    pub(crate) fn stop(mut self) -> BTreeMap<String, u64> {
        let strace = self.strace.id().to_string();
        let mut interrupt = Command::new("kill");
        interrupt.args(["-INT", &strace]).status().unwrap();
        self.strace.wait().unwrap();
        let lines = std::fs::read(self.directory.path().join("calls")).unwrap();
        let mut calls = BTreeMap::new();
        for line in String::from_utf8_lossy(&lines).lines() {
            let Some(name) = call_name(line) else {
                continue;
            };
            for name in [name, "all system calls"] {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
        calls
    }
}

/// Returns the name of the call that a line of strace begins; `None` for its end and for signals.
fn call_name(line: &str) -> Option<&str> {
    let call = line.split_once(' ')?.1.trim_start();
    let (name, arguments) = call.split_once('(')?;
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    match name {
        "fsync" | "fdatasync" => Some("fsync+fdatasync"),
        "write" if arguments.contains(r#""\1\0\0\0\0\0\0\0", 8"#) => Some("eventfd write"),
        _ => name.chars().all(is_name).then_some(name),
    }
}

fn is_traced(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status"));
        !status.is_ok_and(|status| status.contains("TracerPid:\t0\n"))
    })
}

/// Returns the bytes passed to write calls, and those of them that go to a disk.
pub(crate) fn written_bytes(process: u32) -> [(&'static str, u64); 2] {
    let path = format!("/proc/{process}/io");
    ["wchar", "write_bytes"].map(|name| (name, number(&path, name)))
}

/// Returns the memory of a process, with its share of pages that others use too.
pub(crate) fn proportional_bytes(process: u32) -> u64 {
    number(&format!("/proc/{process}/smaps_rollup"), "Pss") << 10
}

/// Returns the instructions that callgrind wrote at the end of a process.
pub(crate) fn instructions(output: &Path) -> u64 {
    number(&output.to_string_lossy(), "summary")
}

/// Returns the first number of the line `name: number` of a file.
fn number(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let mut values = text.lines().filter_map(|line| line.split_once(':'));
    let value = values.find(|(key, _)| *key == name);
    let value = value.unwrap_or_else(|| panic!("{path} has no {name}")).1;
    value.split_whitespace().next().unwrap().parse().unwrap()
}
