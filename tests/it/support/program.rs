//! A third-party program run beside the product: started, waited for, and never left behind.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{process::spawn_bound_to_this_process, unique};

/// A running program with its own folder.
pub(crate) struct Program {
    child: Child,
    directory: PathBuf,
}

impl Program {
    /// Starts a program with the arguments that `arguments` returns for its folder. A missing
    /// program fails the test, because a skipped test would look like a passed one.
    pub(crate) fn start(name: &str, arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        assert!(
            is_installed(name),
            "{name} is not installed: run tests/services/install.sh edge, or `make test`"
        );
        // Named like the service folders, which are removed after their test process has ended.
        let folder = format!("it-{}-{}", std::process::id(), unique(&format!("{name}-")));
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&directory).unwrap();
        let log = File::create(directory.join("log")).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", name])
            .args(arguments(&directory))
            .current_dir(&directory);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        Self {
            child: spawn_bound_to_this_process(command),
            directory,
        }
    }

    /// Returns the output of the program.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.directory.join("log")).unwrap_or_default())
            .into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.directory.display(), self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Folders of servers on Debian that are not in an ordinary user's `PATH`.
fn is_installed(name: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .any(|folder| Path::new(folder).join(name).is_file())
}
