//! Subcommands other than `serve`.

pub(crate) mod admin_link;
pub(crate) mod apply;
pub(crate) mod completions;
pub(crate) mod dead_letters;
pub(crate) mod healthcheck;
pub(crate) mod migrate;
pub(crate) mod read_file;
pub(crate) mod route;
