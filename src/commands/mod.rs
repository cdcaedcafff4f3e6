//! The sub-commands that are not the service itself.

pub mod apply;
pub mod dead_letters;
pub mod healthcheck;
pub mod migrate;
