//! A migrated keyspace for the conformance tests of this test run.

use std::sync::Arc;

use scylla::client::session::Session;
use tokio::sync::OnceCell;

use super::{ScyllaLink, connect, keyspace::KeyspaceName, migrate};
use crate::config::ScyllaConfig;
use switchboard_schemas::time::Timestamp;

/// Variable with the address of a test cluster, as `host:port`.
const NODES_VARIABLE: &str = "SWITCHBOARD_TEST_SCYLLA";
const NAMESPACE_PREFIX: &str = "conformance_";
/// Age at which the keyspaces of earlier test runs are dropped.
const RUN_SECONDS_MAX: i64 = 3600;

/// Keyspace of this test run. Schema changes are slow, so all tests share it and use different
/// organizations.
static NAMESPACE: OnceCell<String> = OnceCell::const_new();

/// Returns a new link, because the tasks of the driver end with the runtime of the test that
/// started them.
pub(crate) async fn link() -> Arc<ScyllaLink> {
    let namespace = NAMESPACE.get_or_init(migrated_namespace).await;
    ScyllaLink::new(config(), namespace)
}

pub(crate) fn config() -> ScyllaConfig {
    let nodes = std::env::var(NODES_VARIABLE);
    ScyllaConfig {
        nodes: nodes.expect("SWITCHBOARD_TEST_SCYLLA must name a cluster as host:port"),
        user: None,
        password: None,
        replication: 1,
        read_timeout_ms: 10_000,
        write_timeout_ms: 10_000,
    }
}

pub(crate) fn new_namespace(name: &str) -> String {
    format!(
        "{NAMESPACE_PREFIX}{}_{name}{}",
        Timestamp::now().micros() / 1_000_000,
        std::process::id()
    )
}

pub(crate) async fn session() -> Session {
    connect(&config(), &KeyspaceName::of_namespace(""))
        .await
        .unwrap()
}

async fn migrated_namespace() -> String {
    sweep().await;
    let namespace = new_namespace("");
    migrate(&config(), &namespace).await.unwrap();
    namespace
}

async fn sweep() {
    let session = session().await;
    let answer = session
        .query_unpaged("SELECT keyspace_name FROM system_schema.keyspaces", ())
        .await
        .unwrap();
    let answer = answer.into_rows_result().unwrap();
    let oldest = Timestamp::now().micros() / 1_000_000 - RUN_SECONDS_MAX;
    for row in answer.rows::<(String,)>().unwrap() {
        let (keyspace,) = row.unwrap();
        let began = keyspace
            .strip_prefix(NAMESPACE_PREFIX)
            .and_then(|rest| rest.split('_').next()?.parse::<i64>().ok());
        if began.is_some_and(|began| began < oldest) {
            session
                .query_unpaged(format!("DROP KEYSPACE IF EXISTS {keyspace}"), ())
                .await
                .unwrap();
        }
    }
}
