//! Writes log lines on a separate thread, so that a blocked standard error stream does not block
//! requests.

use std::{fs::File, io, os::fd::AsFd, sync::mpsc::sync_channel, thread, time::Duration};

use prometheus::{
    IntCounter,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Maximum number of buffered lines; further lines are dropped and counted.
const BUFFERED_LINES_MAX: usize = 8_192;
/// Longest time in which the buffered lines are written when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Thread that writes the log.
pub(crate) struct LogWriter {
    guard: WorkerGuard,
    dropped: ErrorCounter,
}

impl LogWriter {
    /// Starts the thread. Returns it and the writer for log lines.
    ///
    /// # Errors
    /// If the standard error stream is closed.
    pub(crate) fn start() -> io::Result<(Self, NonBlocking)> {
        // A copy of the descriptor: others that write to the stream would wait for its lock.
        let output = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(BUFFERED_LINES_MAX)
            .thread_name("log-writer")
            .finish(output);
        let dropped = writer.error_counter();
        Ok((Self { guard, dropped }, writer))
    }

    /// Returns the collector of the metric of dropped lines.
    pub(crate) fn dropped_lines_collector(&self) -> prometheus::Result<DroppedLinesCollector> {
        DroppedLinesCollector::new(self.dropped.clone())
    }

    /// Writes the buffered lines, for at most [`FLUSH_TIMEOUT`].
    pub(crate) fn flush(self) {
        let (done, written) = sync_channel(1);
        // The guard waits without a limit for a stream that is not read.
        thread::spawn(move || {
            drop(self.guard);
            let _ = done.send(());
        });
        let _ = written.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// Collector of the metric of dropped lines.
pub(crate) struct DroppedLinesCollector {
    dropped: ErrorCounter,
    description: IntCounter,
}

impl DroppedLinesCollector {
    fn new(dropped: ErrorCounter) -> prometheus::Result<Self> {
        let description = new_counter()?;
        Ok(Self {
            dropped,
            description,
        })
    }
}

impl Collector for DroppedLinesCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.description.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // A counter of its own for each collection, which may run beside another one.
        let Ok(counter) = new_counter() else {
            return vec![];
        };
        counter.inc_by(u64::try_from(self.dropped.dropped_lines()).unwrap_or(u64::MAX));
        counter.collect()
    }
}

fn new_counter() -> prometheus::Result<IntCounter> {
    IntCounter::new(
        "switchboard_log_lines_dropped_total",
        "Log lines dropped because the standard error stream was read too slowly or not at all",
    )
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::mpsc::{Receiver, sync_channel},
    };

    use super::*;

    /// An output that blocks until the sender of its channel is dropped.
    struct BlockedOutput(Receiver<()>);

    impl Write for BlockedOutput {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_beyond_the_bound_are_dropped_and_counted() {
        const LINES_MAX: usize = 10;
        let (sender, receiver) = sync_channel(1);
        let (mut writer, _guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES_MAX)
            .finish(BlockedOutput(receiver));
        let collector = DroppedLinesCollector::new(writer.error_counter()).unwrap();
        for _ in 0..5 * LINES_MAX {
            writer.write_all(b"a line\n").unwrap();
        }
        for _ in 0..2 {
            let dropped = collector.collect()[0].get_metric()[0]
                .get_counter()
                .get_value();
            // The thread may already have taken one line.
            assert!((39.0..=40.0).contains(&dropped), "{dropped}");
        }
        drop(sender);
    }
}
