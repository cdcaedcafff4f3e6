//! Creation of the keyspace and its tables. It may be repeated and may run twice at once.
//!
//! Two nodes that create one table at the same moment can give it two identities, which Cassandra
//! does not survive well. Every run therefore sends its statements through the node with the
//! smallest id, which executes them one after another.

use std::time::Duration;

use scylla::{
    client::session::Session,
    errors::ExecutionError,
    policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
    statement::unprepared::Statement,
};
use tokio::time::{self, Instant};

use super::{
    connect, final_or_unavailable, is_final,
    keyspace::KeyspaceName,
    server::{self, StoreServer},
};
use crate::{config::ScyllaConfig, error::StoreError};

const KEYSPACE_CQL: &str = include_str!("../../../deploy/cql/keyspace.cql");
const TABLES_CQL: &str = include_str!("../../../deploy/cql/tables.cql");
/// The part of `keyspace.cql` that holds the keyspace name.
const KEYSPACE_NAME: &str = "EXISTS switchboard";
const KEYSPACE_COPIES: &str = "'replication_factor': 3";
/// Timeout of one schema change.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which a rejected schema change is retried.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between retries of a schema change.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Creates the keyspace and the tables of `namespace` if missing, and waits until all nodes that
/// are up agree.
///
/// # Errors
/// [`StoreError::Unavailable`] if the cluster is unavailable or rejects a statement.
pub async fn migrate(config: &ScyllaConfig, namespace: &str) -> Result<(), StoreError> {
    let keyspace = KeyspaceName::of_namespace(namespace);
    let session = connect(config, &keyspace).await?;
    let deadline = Instant::now() + MIGRATION_TIMEOUT;
    if keyspace_exists(&session, &keyspace).await? {
        server::check_keyspace(&session, &keyspace).await?;
    } else {
        let server = StoreServer::detect(&session).await?;
        let cql = keyspace_cql(&keyspace, config.replication, server);
        apply_change(&session, &cql, deadline).await?;
    }
    for statement in table_statements(&keyspace) {
        apply_change(&session, &statement, deadline).await?;
    }
    Ok(())
}

/// Returns `true` if the keyspace exists. One that an operator created is kept and needs no
/// permission to create it.
async fn keyspace_exists(session: &Session, keyspace: &KeyspaceName) -> Result<bool, StoreError> {
    let cql = format!(
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{}'",
        keyspace.as_str()
    );
    let found = server::query::<(String,)>(session, &cql).await?;
    Ok(!found.is_empty())
}

async fn apply_change(session: &Session, cql: &str, deadline: Instant) -> Result<(), StoreError> {
    loop {
        match change_once(session, cql).await {
            Ok(()) => return Ok(()),
            Err(error) if is_final(&error) || Instant::now() + RETRY_PAUSE >= deadline => {
                return Err(final_or_unavailable(&error, cql));
            }
            Err(error) => {
                tracing::warn!(%error, "schema change failed, trying again");
                time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

async fn change_once(session: &Session, cql: &str) -> Result<(), ExecutionError> {
    let mut statement = Statement::new(cql);
    statement.set_request_timeout(Some(STATEMENT_TIMEOUT));
    statement.set_is_idempotent(true);
    let state = session.get_cluster_state();
    if let Some(node) = state
        .get_nodes_info()
        .iter()
        .filter(|node| node.is_connected())
        .min_by_key(|node| node.host_id)
    {
        let one_node =
            SingleTargetLoadBalancingPolicy::new(NodeIdentifier::HostId(node.host_id), None);
        statement.set_load_balancing_policy(Some(one_node));
    }
    // The driver waits for schema agreement only after a change; an unchanged schema may still
    // meet a change by another run.
    Box::pin(session.query_unpaged(statement, ())).await?;
    Box::pin(session.await_schema_agreement()).await?;
    Ok(())
}

fn keyspace_cql(keyspace: &KeyspaceName, copies: u16, server: StoreServer) -> String {
    let options = server.keyspace_options();
    KEYSPACE_CQL
        .replace(KEYSPACE_NAME, &format!("EXISTS {}", keyspace.as_str()))
        .replace(KEYSPACE_COPIES, &format!("'replication_factor': {copies}"))
        .replace(';', &format!("{options};"))
}

/// Returns the names of all tables.
pub(super) fn table_names() -> Vec<String> {
    let names = TABLES_CQL.lines().filter_map(|line| {
        let name = line.strip_prefix("CREATE TABLE IF NOT EXISTS switchboard.")?;
        Some(name.trim_end_matches([' ', '(']).to_owned())
    });
    names.collect()
}

fn table_statements(keyspace: &KeyspaceName) -> Vec<String> {
    let lines = TABLES_CQL
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    let cql = lines.collect::<Vec<_>>().join("\n");
    cql.split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .map(|it| keyspace.qualify(it))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: usize = 22;

    #[test]
    fn cql_files_are_qualified_with_the_keyspace() {
        let keyspace = KeyspaceName::of_namespace("blue");
        let cql = keyspace_cql(&keyspace, 1, StoreServer::Cassandra);
        assert!(cql.contains("EXISTS blue\n") && cql.contains("'replication_factor': 1}"));
        let tables = table_statements(&keyspace);
        assert_eq!((tables.len(), table_names().len()), (TABLES, TABLES));
        assert!(table_names().contains(&"settled_turns".to_owned()));
        assert!(
            tables
                .iter()
                .all(|table| table.starts_with("CREATE TABLE IF NOT EXISTS blue."))
        );
    }

    #[cfg(feature = "real-services")]
    mod real_services {
        use super::{
            super::super::{
                ScyllaLink,
                testing::{config, link, new_namespace, session},
            },
            *,
        };

        #[tokio::test]
        async fn concurrent_and_repeated_migrations_make_one_schema() {
            let (config, namespace) = (config(), new_namespace("twice"));
            let (left, right) =
                futures::future::join(migrate(&config, &namespace), migrate(&config, &namespace))
                    .await;
            left.and(right).unwrap();
            migrate(&config, &namespace).await.unwrap();

            let session = session().await;
            let cql = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
            let tables = session
                .query_unpaged(cql, (&namespace,))
                .await
                .unwrap()
                .into_rows_result()
                .unwrap();
            assert_eq!(tables.rows_num(), TABLES);
            session
                .query_unpaged(format!("DROP KEYSPACE {namespace}"), ())
                .await
                .unwrap();
        }

        #[tokio::test]
        async fn older_schema_is_refused_until_it_is_migrated() {
            let (config, namespace) = (config(), new_namespace("older"));
            migrate(&config, &namespace).await.unwrap();
            let session = session().await;
            let older = format!("DROP TABLE {namespace}.settled_turns");
            session.query_unpaged(older, ()).await.unwrap();
            let link = ScyllaLink::new(config.clone(), &namespace);
            let refused = link.wait_until_connected().await.unwrap_err().to_string();
            assert!(
                refused.contains("no table settled_turns")
                    && refused.contains("switchboard migrate"),
                "{refused}"
            );
            migrate(&config, &namespace).await.unwrap();
            let link = ScyllaLink::new(config, &namespace);
            link.wait_until_connected().await.unwrap();
            session
                .query_unpaged(format!("DROP KEYSPACE {namespace}"), ())
                .await
                .unwrap();
        }

        #[tokio::test]
        async fn refused_statement_is_named_and_final() {
            let link = link().await;
            let statement = link
                .prepare_write(
                    "INSERT INTO switchboard.replies (org_id, reply_id, body) VALUES (?, ?, ?)",
                )
                .await
                .unwrap();
            // No key may have more than 64 KiB.
            let key = "x".repeat(70_000);
            let refused = link.write(&statement, (&key, "", "x")).await.unwrap_err();
            assert!(
                matches!(&refused, StoreError::Refused(reason) if reason.contains("INSERT INTO")),
                "{refused}"
            );
        }
    }
}
