//! Embedded backends with injected faults, for unit tests of the crates above this one.

mod faults;
mod faulty;

use std::time::Duration;

/// Slack of documented deadlines on a busy machine.
pub const SLACK: Duration = Duration::from_secs(3);

pub use crate::{
    relay::embedded::fixtures::{push_envelope, put_frame},
    store::fixtures::{put_conversation, put_message, put_reply},
};
pub(crate) use faults::with_clock_stopped;
pub use faults::{Fault, Faults, Unavailable};
pub use faulty::Faulty;
