//! Starts a child process for each file, so that a hostile file can end nothing but its own reader.

use std::{
    collections::HashMap,
    io,
    num::NonZero,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::process::Signal;
use switchboard_schemas::{file::FileType, ids::OrgId};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    FileReading, ReadFailure,
    frame::{self, FRAME_BYTES_MAX},
    read_document,
};

/// Longest time that a child may take, also on a busy machine; its processor time has a bound of
/// its own.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Files that are read at the same time in this process, if it has fewer processors.
const READERS_MIN: usize = 2;

/// The allocator of the program reserves 1 GiB of addresses otherwise, all that the child may have.
const ALLOCATOR_SETTING: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "0");

/// The place where files are read.
#[derive(Clone, Debug)]
pub enum ReaderPlace {
    /// A child process of `program`, which is this program or a copy of it.
    Child {
        /// Path of the program.
        program: PathBuf,
    },
    /// A thread of this process, for tests: a file can exhaust its memory.
    Thread,
}

impl ReaderPlace {
    /// Returns a child process of the running program, even if its file was replaced since.
    ///
    /// # Errors
    /// The path of the program is unknown.
    pub fn this_program() -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self::Child { program })
    }
}

/// A reader of files, with a bound on the number of files at once. One of them is free for the
/// other organizations, however many files one of them sends.
#[derive(Debug)]
pub struct FileReader {
    place: ReaderPlace,
    readers_max: usize,
    all: Arc<Semaphore>,
    /// Permits of the organizations whose files are read or wait.
    by_org: Mutex<HashMap<OrgId, Weak<Semaphore>>>,
}

/// The right to read one file. Until it is granted, the file need not be in memory.
#[derive(Debug)]
pub struct ReadPermit {
    _all: Option<OwnedSemaphorePermit>,
    _org: Option<OwnedSemaphorePermit>,
}

impl FileReader {
    /// Creates a reader.
    #[must_use]
    pub fn new(place: ReaderPlace) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let readers_max = processors.max(READERS_MIN);
        Self {
            place,
            readers_max,
            all: Arc::new(Semaphore::new(readers_max)),
            by_org: Mutex::default(),
        }
    }

    /// Waits until a file of the organization may be read.
    pub async fn permit(&self, org: &OrgId) -> ReadPermit {
        // First its own: few files of an organization are in the queue that it shares with others.
        let own = self.permits_of(org).acquire_owned().await;
        let all = self.all.clone().acquire_owned().await;
        // Nothing closes the semaphores.
        ReadPermit {
            _org: own.ok(),
            _all: all.ok(),
        }
    }

    /// Returns the content of a file. Dropping the future ends the child.
    ///
    /// # Errors
    /// The reader failed for a reason that may not be the file: another attempt can succeed.
    pub async fn read(
        &self,
        _permit: &ReadPermit,
        kind: FileType,
        bytes: Bytes,
    ) -> io::Result<FileReading> {
        match &self.place {
            ReaderPlace::Child { program } => {
                timeout(READ_TIMEOUT, read_in_child(program, kind, &bytes)).await?
            }
            ReaderPlace::Thread => {
                let read = tokio::task::spawn_blocking(move || read_document(kind, &bytes));
                read.await.map_err(io::Error::other)
            }
        }
    }

    fn permits_of(&self, org: &OrgId) -> Arc<Semaphore> {
        let mut by_org = self.by_org.lock();
        if let Some(permits) = by_org.get(org).and_then(Weak::upgrade) {
            return permits;
        }
        by_org.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(self.readers_max - 1));
        by_org.insert(org.clone(), Arc::downgrade(&permits));
        permits
    }
}

/// Returns what a child process read. A child that ended itself, by a bound of its memory or time
/// or by a fault, did so because of the file.
async fn read_in_child(program: &Path, kind: FileType, bytes: &[u8]) -> io::Result<FileReading> {
    let mut child = Command::new(program)
        .args(["read-file", "--type", kind.as_str()])
        .env_clear()
        .env(ALLOCATOR_SETTING.0, ALLOCATOR_SETTING.1)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let write = async move {
        // A child that has seen enough closes its input.
        let _ = input.write_all(bytes).await;
        drop(input);
    };
    let read = async move {
        let mut frame = Vec::new();
        let mut output = output.take(FRAME_BYTES_MAX as u64 + 1);
        output.read_to_end(&mut frame).await?;
        io::Result::Ok(frame)
    };
    let ((), frame) = tokio::join!(write, read);
    let frame = frame?;
    if let Some(reading) = frame::decode(&frame) {
        return Ok(reading);
    }
    if frame.len() > FRAME_BYTES_MAX {
        return Err(io::Error::other("the output of the child does not end"));
    }
    let status = child.wait().await?;
    match status.signal() {
        // Others end it so: whoever stops the service, and a system without memory.
        None | Some(KILLED | TERMINATED) => {
            Err(io::Error::other(format!("the child failed: {status}")))
        }
        Some(signal) => {
            tracing::info!(%kind, signal, "file ended its reader");
            Ok(ReadFailure::TooComplex.into_reading())
        }
    }
}

const KILLED: i32 = Signal::KILL.as_raw();
const TERMINATED: i32 = Signal::TERM.as_raw();

#[cfg(test)]
mod tests {
    use switchboard_schemas::secret::InstallationSecret;

    use super::*;

    fn text(text: &str) -> FileReading {
        FileReading::Text {
            text: text.to_owned(),
            is_cut: false,
            pages: None,
        }
    }

    fn org(name: &str) -> OrgId {
        OrgId::derive(&InstallationSecret::from_bytes([7; 32]), name)
    }

    async fn read_with(program: &str) -> io::Result<FileReading> {
        let place = ReaderPlace::Child {
            program: program.into(),
        };
        let bytes = Bytes::from(vec![b'a'; 1 << 20]);
        let reader = FileReader::new(place);
        let permit = reader.permit(&org("shop")).await;
        reader.read(&permit, FileType::Text, bytes).await
    }

    /// Reads with a program that is a script.
    async fn read_with_script(script: &str) -> io::Result<FileReading> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("reader");
        let script = format!("#!/bin/sh\nPATH=/bin:/usr/bin {script}\n");
        std::fs::write(&program, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
        read_with(program.to_str().unwrap()).await
    }

    #[tokio::test]
    async fn thread_reads_a_file() {
        let reader = FileReader::new(ReaderPlace::Thread);
        let permit = reader.permit(&org("shop")).await;
        let bytes = Bytes::from_static(b"a\0");
        let reading = reader.read(&permit, FileType::Text, bytes).await;
        assert_eq!(reading.unwrap(), text("a"));
    }

    #[tokio::test]
    async fn failed_or_missing_program_says_nothing_of_the_file() {
        for program in ["/bin/false", "/bin/true", "/nonexistent"] {
            let read = read_with(program).await;
            assert!(read.is_err(), "{program}: {read:?}");
        }
        for script in ["exec yes", "kill -9 $$", "kill -15 $$"] {
            let read = read_with_script(script).await;
            assert!(read.is_err(), "{script}: {read:?}");
        }
    }

    #[tokio::test]
    async fn silent_program_is_ended() {
        tokio::time::pause();
        let error = read_with_script("exec sleep 100").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn file_that_ends_its_reader_is_too_complex() {
        for script in ["kill -ABRT $$", "kill -SEGV $$", "kill -XCPU $$"] {
            let reading = read_with_script(script).await.unwrap();
            assert_eq!(reading, ReadFailure::TooComplex.into_reading(), "{script}");
        }
    }

    #[tokio::test]
    async fn organization_with_many_files_leaves_a_reader_to_others() {
        let reader = FileReader::new(ReaderPlace::Thread);
        let (greedy, other) = (org("greedy"), org("other"));
        let mut held = Vec::new();
        for _ in 1..reader.readers_max {
            held.push(reader.permit(&greedy).await);
        }
        tokio::time::pause();
        let second = Duration::from_secs(1);
        assert!(timeout(second, reader.permit(&greedy)).await.is_err());
        let free = timeout(second, reader.permit(&other)).await;
        drop(free.unwrap());
        drop(held);
        drop(timeout(second, reader.permit(&greedy)).await.unwrap());
        assert!(reader.permits_of(&other).available_permits() > 0);
        assert_eq!(reader.by_org.lock().len(), 1);
    }
}
