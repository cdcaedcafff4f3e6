//! Starts a child process for each file, so that a hostile file can end nothing but its own reader.

use std::{io, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use switchboard_schemas::file::FileType;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::Semaphore,
    time::timeout,
};

use super::{
    FileReading, ReadFailure,
    frame::{self, FRAME_BYTES_MAX},
    read_document,
};

/// Longest time that a child may take.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Files that are read at the same time in this process.
const READERS_MAX: usize = 2;

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

/// A reader of files, with a bound on the number of files at once.
#[derive(Clone, Debug)]
pub struct FileReader {
    place: ReaderPlace,
    permits: Arc<Semaphore>,
}

impl FileReader {
    /// Creates a reader.
    #[must_use]
    pub fn new(place: ReaderPlace) -> Self {
        Self {
            place,
            permits: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }

    /// Returns the content of a file. Waits for other files first. Dropping the future ends the
    /// child.
    pub async fn read(&self, kind: FileType, bytes: Bytes) -> FileReading {
        let Ok(_permit) = self.permits.acquire().await else {
            return ReadFailure::TooComplex.into_reading();
        };
        let reading = match &self.place {
            ReaderPlace::Child { program } => {
                match timeout(READ_TIMEOUT, read_in_child(program, kind, &bytes)).await {
                    Ok(Ok(frame)) => frame::decode(&frame),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, %kind, "file reader failed");
                        None
                    }
                    Err(_) => None,
                }
            }
            ReaderPlace::Thread => {
                let read = tokio::task::spawn_blocking(move || read_document(kind, &bytes));
                read.await.ok()
            }
        };
        reading.unwrap_or_else(|| {
            tracing::info!(%kind, "file ended its reader");
            ReadFailure::TooComplex.into_reading()
        })
    }
}

/// Returns the output of a child process, of which at most one byte is above the bound. The output
/// of a child that failed is incomplete.
async fn read_in_child(program: &PathBuf, kind: FileType, bytes: &[u8]) -> io::Result<Vec<u8>> {
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
        Ok(frame)
    };
    let ((), frame) = tokio::join!(write, read);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> FileReading {
        FileReading::Text {
            text: text.to_owned(),
            is_cut: false,
            pages: None,
        }
    }

    async fn read_with(program: &str) -> FileReading {
        let place = ReaderPlace::Child {
            program: program.into(),
        };
        let bytes = Bytes::from(vec![b'a'; 1 << 20]);
        FileReader::new(place).read(FileType::Text, bytes).await
    }

    #[tokio::test]
    async fn thread_reads_a_file() {
        let reader = FileReader::new(ReaderPlace::Thread);
        let reading = reader
            .read(FileType::Text, Bytes::from_static(b"a\0"))
            .await;
        assert_eq!(reading, text("a"));
    }

    #[tokio::test]
    async fn failed_or_missing_program_is_a_reading() {
        let failed = ReadFailure::TooComplex.into_reading();
        for program in ["/bin/false", "/bin/true", "/nonexistent"] {
            assert_eq!(read_with(program).await, failed, "{program}");
        }
    }

    #[tokio::test]
    async fn endless_or_silent_program_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("reader");
        let failed = ReadFailure::TooComplex.into_reading();
        for script in ["exec yes", "exec sleep 100"] {
            std::fs::write(
                &program,
                format!("#!/bin/sh\nPATH=/bin:/usr/bin {script}\n"),
            )
            .unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&program, mode).unwrap();
            if script.contains("sleep") {
                tokio::time::pause();
            }
            assert_eq!(
                read_with(program.to_str().unwrap()).await,
                failed,
                "{script}"
            );
        }
    }
}
