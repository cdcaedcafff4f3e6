//! `switchboard migrate`: makes topics, keyspace and tables; what exists is left as it is.

use switchboard_backends::config::BackendProfile;

use crate::{banner, config::Config, open};

/// Prints what is there afterwards.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    open::migrate(config).await?;
    banner::print(match config.backends.profile {
        BackendProfile::Embedded => "nothing to do: the embedded profile makes its files itself\n",
        BackendProfile::Cluster => "topics, keyspace and tables are there\n",
    })
}
