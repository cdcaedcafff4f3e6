//! The topics of the bus: name, key, writers, readers, partitions and retention.

use std::fmt;

/// A topic of the bus. Its full name starts with the prefix of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Messages to a team. Key: conversation (team and session). Written by ingress, read by
    /// routing workers.
    Route,
    /// Jobs of conversations. Key: conversation. Written by ingress and routing workers, read by
    /// inference workers.
    Jobs,
    /// Hints that the worker of a job is gone. Key: conversation. Written by ingress, read by
    /// inference workers.
    JobsRetry,
    /// Records that cannot be processed, byte for byte, with the reason in their headers. Key: that
    /// of the record.
    DeadLetters,
    /// Events of conversations for analytics. Key: conversation. Written by workers, read by
    /// anyone.
    Messages,
    /// Last change of each configured resource. Key: resource id. Compacted. Written by the admin
    /// API, read by anyone.
    Control,
}

impl Topic {
    /// All topics in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::Route,
        Self::Jobs,
        Self::JobsRetry,
        Self::DeadLetters,
        Self::Messages,
        Self::Control,
    ];

    /// Returns the name without the prefix of the installation.
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

    /// Returns the topic with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }

    /// Returns the retention in hours; `None` for a compacted topic, which keeps the last record of
    /// each key.
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
