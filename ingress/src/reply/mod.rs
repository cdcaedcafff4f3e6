//! Step 10 of the path: frames of a reply become the bytes that its client reads.
//!
//! [`assembly`] decides, as a pure machine, which bytes may follow; [`registry`] brings frames to whoever waits for
//! them; [`follower`] waits, reads what was lost, and gives a silent reply to another worker; [`headers`], [`failure`]
//! and [`text`] make the HTTP response.

pub(crate) mod assembly;
pub(crate) mod registry;

pub(crate) mod follower;
mod patience;
pub(crate) mod recovery;

mod failure;
mod headers;
pub(crate) mod text;
