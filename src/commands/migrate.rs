//! `switchboard migrate`: creates missing topics, keyspace and tables.

use switchboard_backends::config::BackendProfile;

use crate::{config::ServiceConfig, installation, terminal};

/// Creates what is missing and prints the outcome.
pub(crate) async fn run(config: &ServiceConfig) -> anyhow::Result<()> {
    installation::migrate_backends(config).await?;
    terminal::print_output(match config.backends.profile {
        BackendProfile::Embedded => {
            "nothing to do: the embedded profile creates its files at start\n"
        }
        BackendProfile::Cluster => "topics, keyspace and tables exist\n",
    })
}
