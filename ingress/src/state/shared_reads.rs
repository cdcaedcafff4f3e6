//! Reads of one reply that its followers in this process share, so that many of them cost as much
//! as one.

use std::{fmt::Display, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use switchboard_schemas::reply_event::Frame;
use tokio::time::Instant;

/// Latest reads of one reply.
#[derive(Default)]
pub(crate) struct SharedReads {
    pub(crate) log_end: SharedRead,
    pub(crate) whole_log: SharedRead,
    pub(crate) store: SharedRead,
}

/// Latest read of one kind. It may be running: all that wait for it drive it, so that none of them
/// can hold up the others.
#[derive(Default)]
pub(crate) struct SharedRead(Mutex<Option<RunningRead>>);

#[derive(Clone)]
struct RunningRead {
    after_seq: u64,
    result: Shared<BoxFuture<'static, FrameRead>>,
}

/// Frames that were read, or the reason why they were not readable.
#[derive(Clone)]
pub(crate) struct FrameRead {
    pub(crate) frames: Result<Vec<Frame>, String>,
    /// End of the read.
    pub(crate) at: Instant,
}

impl SharedRead {
    /// Returns the frames after `after_seq` of the latest read, or those of `read` if the latest
    /// one began later in the log or is as old as `max_age`.
    pub(crate) async fn frames_after<E: Display>(
        &self,
        after_seq: u64,
        max_age: Duration,
        read: impl Future<Output = Result<Vec<Frame>, E>> + Send + 'static,
    ) -> FrameRead {
        let running = {
            let mut latest = self.0.lock();
            match latest.as_ref() {
                Some(latest) if latest.serves(after_seq, max_age) => latest.clone(),
                _ => latest.insert(RunningRead::new(after_seq, read)).clone(),
            }
        };
        let mut read = running.result.await;
        if let Ok(frames) = &mut read.frames {
            frames.retain(|frame| frame.seq > after_seq);
        }
        read
    }
}

impl RunningRead {
    fn new<E: Display>(
        after_seq: u64,
        read: impl Future<Output = Result<Vec<Frame>, E>> + Send + 'static,
    ) -> Self {
        let result = read.map(|frames| FrameRead {
            frames: frames.map_err(|error| error.to_string()),
            at: Instant::now(),
        });
        Self {
            after_seq,
            result: result.boxed().shared(),
        }
    }

    fn serves(&self, after_seq: u64, max_age: Duration) -> bool {
        let is_recent = |read: &FrameRead| read.at.elapsed() < max_age;
        self.after_seq <= after_seq && self.result.peek().is_none_or(is_recent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use switchboard_schemas::conversation::ReplyStatus;
    use tokio::time;

    use super::*;
    use crate::testing::reply_frames;

    const MAX_AGE: Duration = Duration::from_millis(100);

    /// A log of three frames that counts its reads.
    #[derive(Default)]
    struct CountedLog {
        shared: SharedRead,
        reads: Arc<AtomicU32>,
    }

    impl CountedLog {
        async fn seqs_after(&self, after_seq: u64) -> Vec<u64> {
            let reads = Arc::clone(&self.reads);
            let read = async move {
                reads.fetch_add(1, Ordering::Relaxed);
                time::sleep(Duration::from_millis(10)).await;
                let frames = reply_frames(&["a"], ReplyStatus::Completed).into_iter();
                Ok::<_, String>(frames.filter(|frame| frame.seq > after_seq).collect())
            };
            let read = self.shared.frames_after(after_seq, MAX_AGE, read).await;
            read.frames.unwrap().iter().map(|frame| frame.seq).collect()
        }

        fn reads(&self) -> u32 {
            self.reads.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_followers_share_one_read() {
        let log = CountedLog::default();
        let seqs = tokio::join!(log.seqs_after(1), log.seqs_after(2), log.seqs_after(1));
        assert_eq!(seqs, (vec![2, 3], vec![3], vec![2, 3]));
        assert_eq!(log.reads(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_follower_does_not_delay_another() {
        let log = CountedLog::default();
        let mut stalled = Box::pin(log.seqs_after(1));
        assert!(futures::poll!(&mut stalled).is_pending());
        let other = time::timeout(MAX_AGE, log.seqs_after(1)).await;
        assert_eq!(other, Ok(vec![2, 3]));
        assert_eq!((stalled.await, log.reads()), (vec![2, 3], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn older_or_later_read_is_not_used() {
        let log = CountedLog::default();
        assert_eq!(log.seqs_after(2).await, [3]);
        assert_eq!(log.seqs_after(0).await, [1, 2, 3], "begins earlier");
        assert_eq!(log.reads(), 2);
        time::advance(MAX_AGE).await;
        assert_eq!(log.seqs_after(2).await, [3]);
        assert_eq!(log.reads(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn failure_reaches_all_followers() {
        let shared = SharedRead::default();
        for _ in 0..2 {
            let failure = async { Err::<Vec<Frame>, _>("away") };
            let read = shared.frames_after(0, MAX_AGE, failure).await;
            assert_eq!(read.frames.unwrap_err(), "away");
        }
    }
}
