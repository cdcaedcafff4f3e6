//! The connection to ScyllaDB or Apache Cassandra, shared by all stores.
//!
//! It is opened on first use, so that a process starts while the cluster is unavailable; afterwards
//! the driver keeps it alive. Every statement is prepared, idempotent, bounded in time and uses a
//! local quorum.

mod keyspace;
mod migration;
mod organization;
mod server;
mod statements;
#[cfg(test)]
#[cfg(feature = "real-services")]
pub(crate) mod testing;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use scylla::{
    client::{
        execution_profile::{ExecutionProfile, ExecutionProfileHandle},
        session::Session,
        session_builder::SessionBuilder,
    },
    deserialize::row::DeserializeRow,
    errors::{DbError, ExecutionError, RequestAttemptError},
    response::PagingState,
    serialize::{batch::BatchValues, row::SerializeRow},
    statement::{
        Consistency,
        batch::{Batch, BatchStatement, BatchType},
        prepared::PreparedStatement,
    },
};
use secrecy::ExposeSecret;
use tokio::time::{self, Instant};

use self::keyspace::KeyspaceName;
pub use self::migration::migrate;
pub(crate) use self::statements::statements;

use crate::{config::ScyllaConfig, error::StoreError};

/// Timeout of an attempt to connect; a caller waits no longer than its statement may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of opening one connection to one node.
const NODE_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time after a failed attempt to connect in which callers fail at once.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Time after which a connection to a silent node is closed.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of rows per page; a node also ends a page at about 1 MB.
const PAGE_ROWS: i32 = 500;

/// The connection of this process.
pub struct ScyllaLink {
    config: ScyllaConfig,
    keyspace: KeyspaceName,
    connection: Mutex<Option<ConnectAttempt>>,
    reads: ExecutionProfileHandle,
    writes: ExecutionProfileHandle,
    #[cfg(test)]
    pub(crate) work: std::sync::atomic::AtomicU64,
}

/// An attempt to connect that all callers share.
#[derive(Clone)]
struct ConnectAttempt {
    begun: Instant,
    outcome: Shared<BoxFuture<'static, Result<Arc<Session>, StoreError>>>,
}

impl ScyllaLink {
    /// Creates a link that connects on first use.
    pub fn new(config: ScyllaConfig, namespace: &str) -> Arc<Self> {
        Arc::new(Self {
            keyspace: KeyspaceName::of_namespace(namespace),
            connection: Mutex::default(),
            reads: execution_profile(config.read_timeout_ms),
            writes: execution_profile(config.write_timeout_ms),
            config,
            #[cfg(test)]
            work: std::sync::atomic::AtomicU64::new(0),
        })
    }

    /// Connects. Unlike a statement, it waits until the attempt ends, for 10 s at most.
    pub async fn wait_until_connected(&self) -> Result<(), StoreError> {
        let connecting = self.current_attempt().outcome;
        connecting.await.map(drop)
    }

    /// Prepares a statement that reads. `switchboard.` before a table stands for the keyspace.
    pub(crate) async fn prepare_read(&self, cql: &str) -> Result<PreparedStatement, StoreError> {
        self.prepare(cql, &self.reads).await
    }

    /// Prepares a statement that writes and may be repeated.
    pub(crate) async fn prepare_write(&self, cql: &str) -> Result<PreparedStatement, StoreError> {
        self.prepare(cql, &self.writes).await
    }

    /// Executes a statement that returns nothing.
    pub(crate) async fn write(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Send + Sync,
    ) -> Result<(), StoreError> {
        let session = self.connected_session(self.config.write_timeout_ms).await?;
        Box::pin(session.execute_unpaged(statement, &values))
            .await
            .map_err(|error| final_or_unavailable(&error, statement.get_statement()))?;
        Ok(())
    }

    /// Executes several statements atomically.
    pub(crate) async fn write_together(
        &self,
        kind: BatchType,
        statements: Vec<&PreparedStatement>,
        values: impl BatchValues + Send + Sync,
    ) -> Result<(), StoreError> {
        let session = self.connected_session(self.config.write_timeout_ms).await?;
        let first = statements.first().copied();
        let statements = statements
            .into_iter()
            .map(|statement| BatchStatement::from(statement.clone()))
            .collect();
        let mut batch = Batch::new_with_statements(kind, statements);
        batch.set_is_idempotent(true);
        batch.set_execution_profile_handle(Some(self.writes.clone()));
        Box::pin(session.batch(&batch, &values))
            .await
            .map_err(|error| {
                let cql = first.map_or("", PreparedStatement::get_statement);
                final_or_unavailable(&error, cql)
            })?;
        Ok(())
    }

    /// Returns all rows of a statement whose result is bounded by its values.
    pub(crate) async fn query_rows<R>(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Send + Sync,
    ) -> Result<Vec<R>, StoreError>
    where
        R: for<'frame> DeserializeRow<'frame, 'frame> + Send,
    {
        let (mut rows, mut page) = (Vec::new(), PagingState::start());
        loop {
            let (found, next) = self.query_page(statement, &values, page).await?;
            rows.extend(found);
            match next {
                ControlFlow::Break(()) => return Ok(rows),
                ControlFlow::Continue(next) => page = next,
            }
        }
    }

    /// Returns a page of the rows of a statement, and the state of the next one.
    async fn query_page<R>(
        &self,
        statement: &PreparedStatement,
        values: &(impl SerializeRow + Sync),
        page: PagingState,
    ) -> Result<(Vec<R>, ControlFlow<(), PagingState>), StoreError>
    where
        R: for<'frame> DeserializeRow<'frame, 'frame> + Send,
    {
        let session = self.connected_session(self.config.read_timeout_ms).await?;
        let reading = Box::pin(session.execute_single_page(statement, values, page));
        let (response, next) = reading
            .await
            .map_err(|error| final_or_unavailable(&error, statement.get_statement()))?;
        let response = response
            .into_rows_result()
            .map_err(|error| malformed(&error))?;
        #[cfg(test)]
        self.work.fetch_add(
            1 + response.rows_num() as u64,
            std::sync::atomic::Ordering::Relaxed,
        );
        let rows = response.rows::<R>().map_err(|error| malformed(&error))?;
        let rows = rows.map(|row| row.map_err(|error| malformed(&error)));
        Ok((
            rows.collect::<Result<_, _>>()?,
            next.into_paging_control_flow(),
        ))
    }

    async fn prepare(
        &self,
        cql: &str,
        profile: &ExecutionProfileHandle,
    ) -> Result<PreparedStatement, StoreError> {
        let session = self.connected_session(self.config.read_timeout_ms).await?;
        let preparing = Box::pin(session.prepare(self.keyspace.qualify(cql)));
        let mut statement = preparing.await.map_err(|error| unavailable(&error))?;
        statement.set_is_idempotent(true);
        statement.set_page_size(PAGE_ROWS);
        statement.set_execution_profile_handle(Some(profile.clone()));
        Ok(statement)
    }

    async fn connected_session(&self, timeout_ms: u64) -> Result<Arc<Session>, StoreError> {
        let connecting = self.current_attempt().outcome;
        let session = time::timeout(Duration::from_millis(timeout_ms), connecting).await;
        session.map_err(|_| unavailable(&"still connecting"))?
    }

    /// Returns the current attempt, or starts a new one if the last has failed and the pause is
    /// over.
    fn current_attempt(&self) -> ConnectAttempt {
        let mut connection = self.connection.lock();
        if let Some(attempt) = connection.as_ref().filter(|attempt| !attempt.is_spent()) {
            return attempt.clone();
        }
        let config = self.config.clone();
        let keyspace = self.keyspace.clone();
        let outcome = async move {
            let session = connect(&config, &keyspace).await?;
            server::check_schema(&session, &keyspace).await?;
            Ok(Arc::new(session))
        };
        let attempt = ConnectAttempt {
            begun: Instant::now(),
            outcome: outcome.boxed().shared(),
        };
        *connection = Some(attempt.clone());
        attempt
    }
}

impl ConnectAttempt {
    fn is_spent(&self) -> bool {
        matches!(self.outcome.peek(), Some(Err(_))) && self.begun.elapsed() >= CONNECT_PAUSE
    }
}

async fn connect(config: &ScyllaConfig, keyspace: &KeyspaceName) -> Result<Session, StoreError> {
    let nodes = config
        .nodes
        .split(',')
        .map(str::trim)
        .filter(|node| !node.is_empty());
    let mut builder = SessionBuilder::new()
        .known_nodes(nodes)
        .connection_timeout(NODE_CONNECT_TIMEOUT)
        .keepalive_interval(KEEPALIVE_INTERVAL)
        .keepalive_timeout(KEEPALIVE_TIMEOUT)
        .keyspaces_to_fetch([keyspace.as_str()])
        // Without traffic every single statement would pay the default delay.
        .write_coalescing(false);
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        builder = builder.user(user, password.expose_secret());
    }
    let building = Box::pin(builder.build());
    let session = time::timeout(CONNECT_TIMEOUT, building).await;
    session
        .map_err(|_| unavailable(&"the cluster does not answer"))?
        .map_err(|error| unavailable(&error))
}

fn execution_profile(timeout_ms: u64) -> ExecutionProfileHandle {
    ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .request_timeout(Some(Duration::from_millis(timeout_ms)))
        .build()
        .into_handle()
}

/// Returns an error that names the statement if it was refused as it is.
fn final_or_unavailable(error: &ExecutionError, cql: &str) -> StoreError {
    if is_final(error) {
        StoreError::Refused(format!("`{cql}`: {error}"))
    } else {
        unavailable(error)
    }
}

/// Returns `true` for errors of the statement itself, which retrying cannot fix.
const fn is_final(error: &ExecutionError) -> bool {
    if matches!(error, ExecutionError::BadQuery(_)) {
        return true;
    }
    let ExecutionError::LastAttemptError(RequestAttemptError::DbError(refusal, _)) = error else {
        return false;
    };
    matches!(
        refusal,
        DbError::SyntaxError | DbError::Invalid | DbError::Unauthorized | DbError::ConfigError
    )
}

fn unavailable(error: &impl ToString) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn malformed(error: &impl ToString) -> StoreError {
    StoreError::Malformed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn absent_cluster_is_an_error_in_time_but_no_failed_start() {
        // A listener that never answers, so that the connection hangs instead of being refused.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = ScyllaConfig {
            nodes: silent.local_addr().unwrap().to_string(),
            user: None,
            password: None,
            replication: 1,
            read_timeout_ms: 200,
            write_timeout_ms: 200,
        };
        let link = ScyllaLink::new(config, "");
        let begun = Instant::now();
        let outcome = link
            .prepare_read("SELECT body FROM switchboard.replies")
            .await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))));
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
