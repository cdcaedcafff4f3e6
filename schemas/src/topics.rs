//! The one table of topics: name, key, who writes, who reads, how many partitions, how long kept.

use std::fmt;

/// A topic of the bus; its name on the wire stands behind the installation's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Messages to a team. Key: conversation (team and session). Written by ingress, read by routing workers.
    Route,
    /// Work of a conversation. Key: conversation. Written by ingress and routing, read by inference workers.
    Jobs,
    /// Hints that a job's worker has gone. Key: conversation. Written by ingress, read by inference workers.
    JobsRetry,
    /// Records that cannot be handled, byte for byte, with the reason in their headers. Key: as it was.
    DeadLetters,
    /// What happened, for analytics. Key: conversation. Written by workers, read by anyone.
    Messages,
    /// Which configured thing changed last. Key: its id. Compacted. Written by the admin API, read by anyone.
    Control,
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 6] = [
        Self::Route,
        Self::Jobs,
        Self::JobsRetry,
        Self::DeadLetters,
        Self::Messages,
        Self::Control,
    ];

    /// Name without the installation's prefix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "chat.route",
            Self::Jobs => "chat.jobs",
            Self::JobsRetry => "chat.jobs.retry",
            Self::DeadLetters => "chat.dlq",
            Self::Messages => "chat.messages",
            Self::Control => "chat.control",
        }
    }

    /// The topic of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }

    /// Hours that records are kept; none where compaction keeps the last of each key for ever.
    pub const fn retention_hours(self) -> Option<u32> {
        match self {
            Self::Route | Self::Jobs | Self::JobsRetry => Some(24),
            Self::DeadLetters => Some(24 * 14),
            Self::Messages => Some(24 * 30),
            Self::Control => None,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
