//! The database behind a session: what it is, what it can do, and whether a keyspace fits.
//!
//! ScyllaDB names its version in `system.versions`, a table that Apache Cassandra lacks. Since 6.0
//! it creates keyspaces with tablets, in which it refuses conditional statements before 2025.4.

use scylla::{client::session::Session, deserialize::row::DeserializeRow};

use super::{final_or_unavailable, keyspace::KeyspaceName, malformed, migration::table_names};
use crate::error::StoreError;

/// A version: the first two numbers, such as 6.2 or 2025.4.
type ServerVersion = (u32, u32);

const TABLETS_SINCE: ServerVersion = (6, 0);
const CONDITIONS_WITH_TABLETS_SINCE: ServerVersion = (2025, 4);

/// A ScyllaDB or an Apache Cassandra.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreServer {
    Cassandra,
    Scylla { version: ServerVersion },
}

impl StoreServer {
    /// Asks a node what it is.
    pub(super) async fn detect(session: &Session) -> Result<Self, StoreError> {
        let cql = "SELECT version FROM system.versions";
        match query::<(String,)>(session, cql).await {
            Ok(versions) => Ok(Self::scylla(versions.first().map_or("", |(text,)| text))),
            Err(StoreError::Refused(_)) => Ok(Self::Cassandra),
            Err(error) => Err(error),
        }
    }

    /// Returns a ScyllaDB of a version such as `2025.4.0~rc1`. One that cannot be read counts as
    /// the first with tablets, which supports the least.
    fn scylla(version: &str) -> Self {
        let mut numbers = version.split(|character: char| !character.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        let version = next().zip(next()).unwrap_or(TABLETS_SINCE);
        Self::Scylla { version }
    }

    /// Returns what follows the replication in `CREATE KEYSPACE`, so that conditional statements
    /// are possible.
    pub(super) const fn keyspace_options(self) -> &'static str {
        match self {
            Self::Scylla { .. } if self.must_disable_tablets() => {
                " AND tablets = {'enabled': false}"
            }
            _ => "",
        }
    }

    /// Returns true if tablets exist and refuse conditional statements.
    const fn must_disable_tablets(self) -> bool {
        let Self::Scylla { version } = self else {
            return false;
        };
        !is_before(version, TABLETS_SINCE) && is_before(version, CONDITIONS_WITH_TABLETS_SINCE)
    }

    async fn has_tablets(
        self,
        session: &Session,
        keyspace: &KeyspaceName,
    ) -> Result<bool, StoreError> {
        if !self.must_disable_tablets() {
            return Ok(false);
        }
        // A keyspace without tablets has no row, or one without a value.
        let cql = format!(
            "SELECT keyspace_name, initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name = '{}'",
            keyspace.as_str()
        );
        let rows = query::<(String, Option<i32>)>(session, &cql).await?;
        Ok(rows.iter().any(|(_, tablets)| tablets.is_some()))
    }
}

const fn is_before(one: ServerVersion, other: ServerVersion) -> bool {
    one.0 < other.0 || one.0 == other.0 && one.1 < other.1
}

/// Fails if an existing keyspace has tablets on a server that then refuses conditional statements.
pub(super) async fn check_keyspace(
    session: &Session,
    keyspace: &KeyspaceName,
) -> Result<(), StoreError> {
    let server = StoreServer::detect(session).await?;
    if server.has_tablets(session, keyspace).await? {
        return Err(StoreError::Refused(format!(
            "the keyspace {0} has tablets, in which this ScyllaDB refuses conditional statements; create it anew with \
             tablets = {{'enabled': false}}, or upgrade ScyllaDB to 2025.4",
            keyspace.as_str()
        )));
    }
    Ok(())
}

/// Fails unless the keyspace fits the server and has all tables of this program.
pub(super) async fn check_schema(
    session: &Session,
    keyspace: &KeyspaceName,
) -> Result<(), StoreError> {
    check_keyspace(session, keyspace).await?;
    let cql = format!(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{}'",
        keyspace.as_str()
    );
    let found = query::<(String,)>(session, &cql).await?;
    let missing: Vec<_> = table_names()
        .into_iter()
        .filter(|name| found.iter().all(|(table,)| table != name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the keyspace {} has no table {}: run `switchboard migrate` of this version first",
        keyspace.as_str(),
        missing.join(", ")
    )))
}

/// Returns all rows of a statement about the cluster itself.
pub(super) async fn query<R>(session: &Session, cql: &str) -> Result<Vec<R>, StoreError>
where
    R: for<'frame> DeserializeRow<'frame, 'frame>,
{
    let response = Box::pin(session.query_unpaged(cql, ())).await;
    let rows = response
        .map_err(|error| final_or_unavailable(&error, cql))?
        .into_rows_result()
        .map_err(|error| malformed(&error))?;
    let rows = rows.rows::<R>().map_err(|error| malformed(&error))?;
    rows.map(|row| row.map_err(|error| malformed(&error)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_have_no_tablets_where_they_refuse_conditions() {
        let without = " AND tablets = {'enabled': false}";
        for (version, want) in [
            ("5.4.9-0.20240703.b5dcf5b", ""),
            ("6.0.0", without),
            ("6.2.3-0.20250119.bfa7c2a", without),
            ("2025.1.2-0.20250501", without),
            ("2025.3.4", without),
            ("2025.4.0~rc1-0.20251001", ""),
            ("2026.1.0", ""),
            ("unknown", without),
        ] {
            assert_eq!(
                StoreServer::scylla(version).keyspace_options(),
                want,
                "{version}"
            );
        }
        assert_eq!(StoreServer::Cassandra.keyspace_options(), "");
    }
}
