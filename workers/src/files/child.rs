//! The part of reading that runs in a child process: it gives up memory and time before it looks
//! at the file.

use std::io::{self, Read, Write};

use rustix::process::{Resource, Rlimit, setrlimit};
use switchboard_schemas::file::{FILE_BYTES_MAX, FileType};

use super::{ReadFailure, frame, read_checked};

/// Most memory that a child can map, in bytes.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Most processor time of a child, in seconds.
const PROCESSOR_SECONDS_MAX: u64 = 10;

/// Reads a file from `input` and writes its content to `output`, as [`super::FileReader`] expects
/// of a child process. Lowers the limits of this process for good.
///
/// # Errors
/// The limits cannot be set, or the input or the output is closed.
pub fn run(kind: FileType, input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    set_limits()?;
    let mut bytes = Vec::new();
    input
        .take(u64::from(FILE_BYTES_MAX) + 1)
        .read_to_end(&mut bytes)?;
    let result = if bytes.len() > FILE_BYTES_MAX as usize {
        Err(ReadFailure::TooLarge)
    } else {
        read_checked(kind, &bytes)
    };
    output.write_all(&frame::encode(&result))?;
    output.flush()
}

fn set_limits() -> io::Result<()> {
    let limits = [
        (Resource::As, MEMORY_BYTES_MAX),
        (Resource::Cpu, PROCESSOR_SECONDS_MAX),
        // A dump of the memory would contain the file.
        (Resource::Core, 0),
        // From here on no file or connection can be opened; and no process started, except by root.
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, limit) in limits {
        // At the maximum of its time a process is killed, as others could kill it; before that it
        // gets the signal that says why.
        let maximum = limit + u64::from(resource == Resource::Cpu);
        let limit = Rlimit {
            current: Some(limit),
            maximum: Some(maximum),
        };
        match setrlimit(resource, limit) {
            Ok(()) => {}
            // Not every system bounds the address space.
            Err(_) if resource == Resource::As && !cfg!(target_os = "linux") => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
