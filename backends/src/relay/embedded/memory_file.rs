//! Values, routing decisions and round-robin counts of the embedded relay on disk, so that they
//! survive a restart.

use std::{path::Path, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{
    ids::{AgentId, MessageId},
    time::Timestamp,
};

use super::round_robin::RoundRobin;
use crate::{
    relay::{
        FINAL_STATE_TTL, ROUND_ROBIN_TTL, RecordedDecisions, RelayError, RoundRobinOffer,
        RoutingDecision,
    },
    sqlite::open_for_one_process,
    sqlite_residue::SqliteResidue,
};

// With synchronous off, a killed process loses nothing. A power failure may lose the last values;
// message ids derived from an idempotency key then still identify the repeated message.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    PRAGMA secure_delete = ON;
    CREATE TABLE IF NOT EXISTS memories (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL,
        written_at INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    CREATE INDEX IF NOT EXISTS memories_by_age ON memories (written_at);
    CREATE TABLE IF NOT EXISTS turns (
        team_id TEXT PRIMARY KEY,
        rotation TEXT NOT NULL,
        taken_at INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    CREATE INDEX IF NOT EXISTS turns_by_age ON turns (taken_at);
    DROP TABLE IF EXISTS rotations;";
/// Maximum number of expired rows that one write deletes, so that no write takes long.
const SWEEP_ROWS_MAX: u32 = 8;

/// The database file of values, decisions and round-robin counts.
pub(super) struct MemoryFile {
    connection: Mutex<Connection>,
    /// Remains of deleted rows in the file; none for a database in memory.
    residue: Option<SqliteResidue>,
}

impl MemoryFile {
    /// Opens or creates the file; without a path, opens a database in memory.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, RelayError> {
        let open = || {
            let connection = path.map_or_else(Connection::open_in_memory, open_for_one_process)?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        let connection = open().map_err(unavailable)?;
        let residue = path.map(SqliteResidue::open).transpose();
        Ok(Self {
            connection: Mutex::new(connection),
            residue: residue.map_err(|error| RelayError::Unavailable(error.to_string()))?,
        })
    }

    /// Returns the value of a name, after storing `value` if there was none.
    pub(super) fn get_or_insert(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.in_transaction(|connection| match read_value(connection, name)? {
            Some(known) => Ok(known),
            None => write_value(connection, name, value).map(|()| value.to_owned()),
        })
    }

    /// Records a decision unless one is recorded, and returns the recorded one.
    pub(super) fn record_decision(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        let decided = self.record_unless_decided(message, |_| Ok(Some(decision.clone())))?;
        Ok(decided.unwrap_or_else(|| decision.clone()))
    }

    /// Records the decision for the next member unless one is recorded. Returns `None` if no member
    /// is offered.
    pub(super) fn record_round_robin(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        self.record_unless_decided(message, |connection| {
            Ok(choose_next(connection, offer)?.map(|chosen| offer.decision(chosen)))
        })
    }

    /// Returns the decisions for a message and its conversation.
    pub(super) fn recorded_decisions(
        &self,
        message: &MessageId,
    ) -> Result<RecordedDecisions, RelayError> {
        let (own, last) = decision_names(message);
        self.in_transaction(|connection| {
            let (own, last) = (
                read_value(connection, &own)?,
                read_value(connection, &last)?,
            );
            let decision = |text: Option<String>| text.as_deref().and_then(RoutingDecision::decode);
            Ok(RecordedDecisions {
                own: decision(own),
                last: decision(last),
            })
        })
    }

    /// Deletes the decisions for a message and its conversation.
    pub(super) fn delete_decisions(&self, message: &MessageId) -> Result<(), RelayError> {
        let (own, last) = decision_names(message);
        self.in_transaction(|connection| {
            connection
                .prepare_cached("DELETE FROM memories WHERE name IN (?1, ?2)")?
                .execute([own, last])?;
            Ok(())
        })
    }

    /// Erases what deleted rows left in the file.
    pub(super) fn erase_residue(&self) -> Result<(), RelayError> {
        let Some(residue) = &self.residue else {
            return Ok(());
        };
        match residue.erase(&self.connection.lock()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RelayError::Unavailable("the file is busy".into())),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Returns the recorded decision, or records the one that `decide` makes.
    fn record_unless_decided(
        &self,
        message: &MessageId,
        decide: impl FnOnce(&Connection) -> rusqlite::Result<Option<RoutingDecision>>,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        let (own, _) = decision_names(message);
        self.in_transaction(|connection| {
            if let Some(known) = read_value(connection, &own)?
                .as_deref()
                .and_then(RoutingDecision::decode)
            {
                return Ok(Some(known));
            }
            let decision = decide(connection)?;
            if let Some(decision) = &decision {
                write_decision(connection, message, decision)?;
            }
            Ok(decision)
        })
    }

    fn in_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RelayError> {
        let mut connection = self.connection();
        let done = connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .and_then(|open| {
                let done = work(&open)?;
                open.commit().map(|()| done)
            });
        done.map_err(unavailable)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }
}

/// Returns the names of the decision for a message and of the last one in its conversation.
fn decision_names(message: &MessageId) -> (String, String) {
    (
        format!("route:{message}"),
        format!("route:{}", message.conversation()),
    )
}

fn oldest_kept(kept: Duration) -> i64 {
    Timestamp::now().micros() - i64::try_from(kept.as_micros()).unwrap_or(i64::MAX)
}

fn choose_next(
    connection: &Connection,
    offer: &RoundRobinOffer,
) -> rusqlite::Result<Option<AgentId>> {
    let (team, oldest) = (offer.team.as_str(), oldest_kept(ROUND_ROBIN_TTL));
    let select = "SELECT rotation FROM turns WHERE team_id = ?1 AND taken_at >= ?2";
    let kept: Option<String> = connection
        .prepare_cached(select)?
        .query_row(params![team, oldest], |row| row.get(0))
        .optional()?;
    let mut round_robin: RoundRobin = kept
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let Some(chosen) = round_robin.next(&offer.members) else {
        return Ok(None);
    };
    let sweep = "DELETE FROM turns WHERE team_id IN
        (SELECT team_id FROM turns WHERE taken_at < ?1 ORDER BY taken_at LIMIT ?2)";
    connection
        .prepare_cached(sweep)?
        .execute(params![oldest, SWEEP_ROWS_MAX])?;
    let text = serde_json::to_string(&round_robin).map_err(encoding_failure)?;
    let put = "INSERT OR REPLACE INTO turns VALUES (?1, ?2, ?3)";
    connection
        .prepare_cached(put)?
        .execute(params![team, text, Timestamp::now().micros()])?;
    Ok(Some(chosen))
}

fn encoding_failure(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn write_decision(
    connection: &Connection,
    message: &MessageId,
    decision: &RoutingDecision,
) -> rusqlite::Result<()> {
    let (own, last) = decision_names(message);
    let text = decision.encode().map_err(encoding_failure)?;
    write_value(connection, &own, &text)?;
    write_value(connection, &last, &text)
}

fn read_value(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection
        .prepare_cached("SELECT value FROM memories WHERE name = ?1 AND written_at >= ?2")?;
    select
        .query_row(params![name, oldest_kept(FINAL_STATE_TTL)], |row| {
            row.get(0)
        })
        .optional()
}

fn write_value(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    let sweep = "DELETE FROM memories WHERE name IN
        (SELECT name FROM memories WHERE written_at < ?1 ORDER BY written_at LIMIT ?2)";
    connection
        .prepare_cached(sweep)?
        .execute(params![oldest_kept(FINAL_STATE_TTL), SWEEP_ROWS_MAX])?;
    let put = "INSERT OR REPLACE INTO memories VALUES (?1, ?2, ?3)";
    connection
        .prepare_cached(put)?
        .execute(params![name, value, Timestamp::now().micros()])?;
    Ok(())
}

fn unavailable(error: rusqlite::Error) -> RelayError {
    RelayError::Unavailable(format!("memory file: {error}"))
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::ids::{OrgId, TeamId};
    use switchboard_schemas::secret::InstallationSecret;

    use super::*;

    #[test]
    fn values_and_decisions_survive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("relay.db");
        let secret = InstallationSecret::from_bytes([1; 32]);
        let org = OrgId::derive(&secret, "o");
        let (team, agents) = (
            TeamId::derive(&secret, &org, "t"),
            ["a", "b"].map(|slug| AgentId::derive(&secret, &org, slug)),
        );
        let decision = RoutingDecision {
            agent_id: agents[0].clone(),
            reason: "why".into(),
            facts: None,
        };
        let message = |digit: &str| {
            format!("msg_{}{}", "0".repeat(26), digit.repeat(26))
                .parse::<MessageId>()
                .unwrap()
        };
        let file = MemoryFile::open(Some(&path)).unwrap();
        file.get_or_insert("name", "first").unwrap();
        file.record_decision(&message("1"), &decision).unwrap();
        let offer = RoundRobinOffer {
            team,
            members: agents.to_vec(),
            reason: "in turn".into(),
            facts: None,
        };
        let turn = |file: &MemoryFile, digit| {
            file.record_round_robin(&message(digit), &offer)
                .unwrap()
                .unwrap()
                .agent_id
        };
        assert_eq!(turn(&file, "3"), agents[0]);
        drop(file);
        let file = MemoryFile::open(Some(&path)).unwrap();
        assert_eq!(file.get_or_insert("name", "second").unwrap(), "first");
        assert_eq!(
            file.recorded_decisions(&message("1")).unwrap().own,
            Some(decision)
        );
        assert_eq!(
            file.recorded_decisions(&message("2"))
                .unwrap()
                .last
                .unwrap()
                .agent_id,
            agents[0]
        );
        assert_eq!(turn(&file, "2"), agents[1]);
        assert_eq!(
            turn(&file, "3"),
            agents[0],
            "a repeat has the turn that it had"
        );
    }

    #[test]
    fn round_robin_counts_of_an_idle_team_expire_and_are_swept() {
        let file = MemoryFile::open(None).unwrap();
        let offer = |slug: &str| {
            let secret = InstallationSecret::from_bytes([1; 32]);
            let org = OrgId::derive(&secret, "o");
            let members = ["a", "b"]
                .map(|slug| AgentId::derive(&secret, &org, slug))
                .to_vec();
            RoundRobinOffer {
                team: TeamId::derive(&secret, &org, slug),
                members,
                reason: "in turn".into(),
                facts: None,
            }
        };
        let message = |digit: &str| {
            format!("msg_{}{}", "0".repeat(26), digit.repeat(26))
                .parse::<MessageId>()
                .unwrap()
        };
        let turn = |digit, slug| {
            file.record_round_robin(&message(digit), &offer(slug))
                .unwrap()
                .unwrap()
                .agent_id
        };
        let first = turn("1", "old");
        file.connection()
            .execute("UPDATE turns SET taken_at = 1", [])
            .unwrap();
        turn("2", "other");
        let rows: i64 = file
            .connection()
            .query_row("SELECT count(*) FROM turns", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        assert_eq!(turn("3", "old"), first);
    }

    #[test]
    fn expired_values_are_ignored_and_deleted() {
        let file = MemoryFile::open(None).unwrap();
        file.get_or_insert("old", "first").unwrap();
        file.connection()
            .execute("UPDATE memories SET written_at = 1", [])
            .unwrap();
        assert_eq!(file.get_or_insert("other", "x").unwrap(), "x");
        let rows: i64 = file
            .connection()
            .query_row("SELECT count(*) FROM memories", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        assert_eq!(file.get_or_insert("old", "second").unwrap(), "second");
    }
}
