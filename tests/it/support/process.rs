//! A process of the product: started with an environment, watched, killed, and never left behind.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        OnceLock,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

/// Number of log lines shown when a test fails.
const LOG_LINES_SHOWN: usize = 40;

/// Command line and environment of a process, kept to restart it unchanged.
#[derive(Clone, Debug)]
pub(crate) struct ProcessCommand {
    /// Name in messages and in the name of the log file.
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// Environment variables besides the inherited ones.
    pub(crate) environment: Vec<(String, String)>,
    /// Path of the log file.
    pub(crate) directory: PathBuf,
}

/// A running or ended process.
pub(crate) struct Process {
    command: ProcessCommand,
    child: Child,
    end_expected: bool,
}

impl ProcessCommand {
    pub(crate) fn start(self) -> Process {
        let command = self.prepare();
        self.spawn(command)
    }

    /// Starts the process with a standard error stream that nobody reads.
    pub(crate) fn start_with_unread_log(self) -> Process {
        let mut command = self.prepare();
        command.stderr(Stdio::piped());
        self.spawn(command)
    }

    fn spawn(self, command: Command) -> Process {
        Process {
            command: self,
            child: spawn_bound_to_this_process(command),
            end_expected: false,
        }
    }

    /// Runs a command to its end.
    pub(crate) fn run(self, patience: Duration) -> (ExitStatus, String) {
        let log = self.log_path();
        let status = self.start().wait(patience);
        (status, std::fs::read_to_string(log).unwrap_or_default())
    }

    /// Opens the log file for standard output and error.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.name))
    }

    /// Returns the words of `TESTED_WRAPPER`, the command that runs the program, such as valgrind.
    fn wrapper(&self) -> impl Iterator<Item = &str> {
        let variables = self.environment.iter();
        let wrapper = variables.filter(|(name, _)| name == "TESTED_WRAPPER");
        wrapper.flat_map(|(_, words)| words.split_whitespace())
    }

    /// Returns standard output: the log file, through a terminal if `TESTED_TERMINAL` is set.
    fn output(&self, log: File) -> Stdio {
        let mut variables = self.environment.iter();
        match variables.any(|(name, _)| name == "TESTED_TERMINAL") {
            true => open_terminal(log).into(),
            false => log.into(),
        }
    }

    fn prepare(&self) -> Command {
        // setpriv replaces itself with the program, which dies with us even if we are killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .args(self.wrapper())
            .arg(binary())
            .args(&self.arguments);
        for (name, _) in std::env::vars() {
            if name.starts_with("SWITCHBOARD_") || name.starts_with("OPENAI_") {
                command.env_remove(name);
            }
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(self.output(log.try_clone().unwrap()))
            .stderr(log);
        command
    }
}

impl Process {
    pub(crate) fn name(&self) -> &str {
        &self.command.name
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let mut lines = status.lines();
        let kilobytes = lines.find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix(" kB"));
        kilobytes.unwrap().trim().parse::<u64>().unwrap() << 10
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.end_expected = true;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name, such as `TERM`.
    pub(crate) fn signal(&mut self, signal: &str) {
        self.end_expected |= signal != "STOP" && signal != "CONT";
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.id().to_string()])
            .status();
        assert!(
            status.unwrap().success(),
            "could not signal {}",
            self.name()
        );
    }

    /// Returns the status of an ended process.
    pub(crate) fn end_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self, patience: Duration) -> ExitStatus {
        self.end_expected = true;
        let began = Instant::now();
        loop {
            if let Some(status) = self.end_status() {
                return status;
            }
            assert!(
                began.elapsed() < patience,
                "{} did not end within {patience:?}\n{}",
                self.name(),
                self.log_tail()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sets environment variables of the next start.
    #[cfg(feature = "real-services")]
    pub(crate) fn set_variables(&mut self, variables: &[(&str, String)]) {
        for (name, value) in variables {
            let environment = &mut self.command.environment;
            environment.retain(|(existing, _)| existing != name);
            environment.push(((*name).to_owned(), value.clone()));
        }
    }

    /// Restarts the process with the same ports and data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        *self = self.command.clone().start();
    }

    /// Returns a description of a crash or panic, if there is one.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        let log = read(&self.command.log_path());
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            return Some(format!("{} panicked: {line}\n{}", self.name(), tail(&log)));
        }
        match self.child.try_wait() {
            Ok(Some(status)) if !self.end_expected => Some(format!(
                "{} ended by itself: {status}\n{}",
                self.name(),
                tail(&log)
            )),
            _ => None,
        }
    }

    /// Returns the last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        tail(&read(&self.command.log_path()))
    }

    /// Returns the complete log.
    pub(crate) fn log(&self) -> String {
        read(&self.command.log_path())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a child on one thread that never ends: the kernel sends the death signal when the
/// *thread* that started a child ends, and threads of tests end early.
pub(super) fn spawn_bound_to_this_process(command: Command) -> Child {
    type Order = (Command, SyncSender<io::Result<Child>>);
    static SPAWNER: OnceLock<SyncSender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = sync_channel::<Order>(1);
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, result) = sync_channel(1);
    spawner.send((command, answer)).unwrap();
    result
        .recv()
        .unwrap()
        .expect("setpriv (util-linux) starts a program")
}

/// Opens a pseudo-terminal whose output is copied to `log` until its last process ends.
fn open_terminal(mut log: File) -> OwnedFd {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = openpt(flags).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let terminal = ioctl_tiocgptpeer(&controller, flags).unwrap();
    thread::spawn(move || io::copy(&mut File::from(controller), &mut log));
    terminal
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

/// Returns the program that was built with the tests, or the one in `TESTED_BINARY`. It is linked
/// to a second name at once, because a later build replaces the file under the first.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let built = std::env::var("TESTED_BINARY")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_switchboard").to_owned());
        // Named like the service folders, which are removed after their test process has ended.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("it-{}-program", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let kept = folder.join("switchboard");
        match std::fs::hard_link(&built, &kept) {
            Ok(()) => kept,
            // On another file system only this protection is lost.
            Err(_) => built.into(),
        }
    })
}
