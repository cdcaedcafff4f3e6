//! Commits of offsets, one after the other on a thread of their own.
//!
//! Only a synchronous commit reports its result: librdkafka passes the result of an asynchronous
//! one to a callback that the client crate does not register, so that a commit which failed during
//! a rebalance would never be repeated. Without a coordinator a commit blocks, for up to a minute
//! if the coordinator accepts connections and does not answer. In one order, such a late commit
//! cannot overwrite a newer one of the same consumer.

use std::{
    sync::{
        Arc, Weak,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rdkafka::{
    consumer::{BaseConsumer, CommitMode, Consumer as _},
    error::KafkaResult,
};

use super::{context::MemberContext, ownership::PartitionMark, partitions};
use crate::bus::BusError;

/// Maximum number of queued commits.
const QUEUED_COMMITS_MAX: usize = 16;
const LAST_COMMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The committer of one consumer. Its thread ends with it.
pub(super) struct OffsetCommitter {
    requests: SyncSender<(CommitRequest, PendingCommit)>,
    pending: PendingCommit,
}

/// A token that exists once for the committer and once for each commit that has not ended.
type PendingCommit = Arc<()>;

struct CommitRequest {
    marks: Vec<PartitionMark>,
    /// Set for the last commit of revoked partitions.
    last: Option<LastCommit>,
}

struct LastCommit {
    /// Time after which nothing is committed, because the next owner may have done so.
    deadline: Instant,
    result: SyncSender<KafkaResult<()>>,
}

impl OffsetCommitter {
    /// Starts the thread. It keeps no consumer alive while it has nothing to commit.
    pub(super) fn start(consumer: Weak<BaseConsumer<MemberContext>>) -> Result<Self, BusError> {
        let (requests, inbox) = sync_channel(QUEUED_COMMITS_MAX);
        let thread = thread::Builder::new()
            .name("bus-commit".to_owned())
            .spawn(move || commit_all(&consumer, &inbox));
        thread.map_err(|error| BusError::Fatal(format!("commit thread: {error}")))?;
        let pending = PendingCommit::default();
        Ok(Self { requests, pending })
    }

    /// Returns true if the next commit would have to wait for another one.
    pub(super) fn is_busy(&self) -> bool {
        Arc::strong_count(&self.pending) > 1
    }

    /// Commits marks without waiting. Those that fail become uncommitted again. Returns false if
    /// the thread takes no request.
    pub(super) fn commit(&self, marks: Vec<PartitionMark>) -> bool {
        self.send(CommitRequest { marks, last: None })
    }

    /// Commits the marks of revoked partitions and waits for a second at most.
    pub(super) fn commit_last(&self, marks: Vec<PartitionMark>) {
        if marks.is_empty() {
            return;
        }
        let (result, received) = sync_channel(1);
        let deadline = Instant::now() + LAST_COMMIT_TIMEOUT;
        let last = Some(LastCommit { deadline, result });
        let is_sent = self.send(CommitRequest { marks, last });
        let is_committed =
            is_sent && matches!(received.recv_timeout(LAST_COMMIT_TIMEOUT), Ok(Ok(())));
        if !is_committed {
            tracing::warn!("last offsets not committed; their records may be delivered again");
        }
    }

    fn send(&self, request: CommitRequest) -> bool {
        let pending = self.pending.clone();
        self.requests.try_send((request, pending)).is_ok()
    }
}

fn commit_all(
    consumer: &Weak<BaseConsumer<MemberContext>>,
    requests: &Receiver<(CommitRequest, PendingCommit)>,
) {
    for (CommitRequest { marks, last }, _pending) in requests {
        let is_late = |last: &LastCommit| last.deadline <= Instant::now();
        if last.as_ref().is_some_and(is_late) {
            continue;
        }
        let Some(consumer) = consumer.upgrade() else {
            return;
        };
        let context = consumer.context();
        let list = partitions::commit_list(&context.names, &marks);
        let result = consumer.commit(&list, CommitMode::Sync);
        if let Err(error) = &result {
            tracing::debug!(%error, "offsets not committed");
            for (partition, _) in &marks {
                context.ownership.write_again(*partition);
            }
        }
        drop(consumer);
        if let Some(last) = last {
            // The caller may have stopped waiting.
            _ = last.result.send(result);
        }
    }
}
