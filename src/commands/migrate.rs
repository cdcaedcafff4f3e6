//! `switchboard migrate`: makes topics, keyspace and tables; what exists is left as it is.

use crate::{banner, config::Config, open};

/// Prints what is there afterwards.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    open::migrate(config).await?;
    banner::print("topics, keyspace and tables are there\n")
}
