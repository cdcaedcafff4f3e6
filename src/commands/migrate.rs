//! `switchboard migrate`: makes topics, keyspace and tables; what exists is left as it is.

use switchboard_backends::config::Profile;

use crate::{banner, config::Config, open};

/// Prints what is there afterwards.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    open::migrate(config).await?;
    banner::print(match config.backends.profile {
        Profile::Embedded => "nothing to do: the embedded profile makes its files itself\n",
        Profile::Cluster => "topics, keyspace and tables are there\n",
    })
}
