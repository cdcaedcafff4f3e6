//! What the embedded relay remembers on disk: repeated requests, routing decisions and rotations survive a restart.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_schemas::{
    ids::{AgentId, MessageId},
    time::Timestamp,
};

use super::{
    FINAL_STATE_TTL, ROUND_ROBIN_TTL, RecordedDecisions, RelayError, RoundRobinOffer,
    RoutingDecision, decode_decision, encode_decision, round_robin::Rotation,
};

// As for attempts: a killed process loses nothing with synchronous off. What a power cut takes is one set-if-absent; ids
// that follow from the key still make the repeat the same message.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
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
/// Expired memories that one write removes, so that none of them has to stop for all.
const SWEEP_ROWS_MAX: u32 = 8;

/// The file of memories.
pub(super) struct KeyValueStore {
    connection: Mutex<Connection>,
}

impl KeyValueStore {
    /// Opens or makes the file; without a path, a book that is forgotten with its process.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, RelayError> {
        let open = || {
            let connection = path.map_or_else(Connection::open_in_memory, Connection::open)?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        open()
            .map(|connection| Self {
                connection: Mutex::new(connection),
            })
            .map_err(unavailable)
    }

    /// Keeps `value` unless something is kept; gives what is kept.
    pub(super) fn remember(&self, name: &str, value: &str) -> Result<String, RelayError> {
        self.together(|connection| match read(connection, name)? {
            Some(known) => Ok(known),
            None => write(connection, name, value).map(|()| value.to_owned()),
        })
    }

    /// Records a decision unless one stands.
    pub(super) fn decide(
        &self,
        message: &MessageId,
        decision: &RoutingDecision,
    ) -> Result<RoutingDecision, RelayError> {
        let decided = self.unless_decided(message, |_| Ok(Some(decision.clone())))?;
        Ok(decided.unwrap_or_else(|| decision.clone()))
    }

    /// Records the decision for the member whose turn it is unless one stands; none of nobody.
    pub(super) fn decide_in_turn(
        &self,
        message: &MessageId,
        offer: &RoundRobinOffer,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        self.unless_decided(message, |connection| {
            Ok(next_in_turn(connection, offer)?.map(|chosen| offer.decision(chosen)))
        })
    }

    /// What was decided.
    pub(super) fn decisions(&self, message: &MessageId) -> Result<RecordedDecisions, RelayError> {
        let (own, last) = names(message);
        self.together(|connection| {
            let (own, last) = (read(connection, &own)?, read(connection, &last)?);
            let decision = |text: Option<String>| text.as_deref().and_then(decode_decision);
            Ok(RecordedDecisions {
                own: decision(own),
                last: decision(last),
            })
        })
    }

    /// Forgets what was decided.
    pub(super) fn forget_decisions(&self, message: &MessageId) -> Result<(), RelayError> {
        let (own, last) = names(message);
        self.together(|connection| {
            connection
                .prepare_cached("DELETE FROM memories WHERE name IN (?1, ?2)")?
                .execute([own, last])?;
            Ok(())
        })
    }

    /// The decision that stands, or the one that is made now and recorded.
    fn unless_decided(
        &self,
        message: &MessageId,
        decide: impl FnOnce(&Connection) -> rusqlite::Result<Option<RoutingDecision>>,
    ) -> Result<Option<RoutingDecision>, RelayError> {
        let (own, _) = names(message);
        self.together(|connection| {
            if let Some(known) = read(connection, &own)?.as_deref().and_then(decode_decision) {
                return Ok(Some(known));
            }
            let decision = decide(connection)?;
            if let Some(decision) = &decision {
                write_decision(connection, message, decision)?;
            }
            Ok(decision)
        })
    }

    fn together<T>(
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
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the decision for a message stands, and where the last one of its conversation.
fn names(message: &MessageId) -> (String, String) {
    (
        format!("route:{message}"),
        format!("route:{}", message.conversation()),
    )
}

fn oldest_kept(kept: Duration) -> i64 {
    Timestamp::now().micros() - i64::try_from(kept.as_micros()).unwrap_or(i64::MAX)
}

fn next_in_turn(
    connection: &Connection,
    offer: &RoundRobinOffer,
) -> rusqlite::Result<Option<AgentId>> {
    let (team, oldest) = (offer.team.as_str(), oldest_kept(ROUND_ROBIN_TTL));
    let select = "SELECT rotation FROM turns WHERE team_id = ?1 AND taken_at >= ?2";
    let kept: Option<String> = connection
        .prepare_cached(select)?
        .query_row(params![team, oldest], |row| row.get(0))
        .optional()?;
    let mut rotation: Rotation = kept
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let Some(chosen) = rotation.next(&offer.members) else {
        return Ok(None);
    };
    let sweep = "DELETE FROM turns WHERE team_id IN
        (SELECT team_id FROM turns WHERE taken_at < ?1 ORDER BY taken_at LIMIT ?2)";
    connection
        .prepare_cached(sweep)?
        .execute(params![oldest, SWEEP_ROWS_MAX])?;
    let text = serde_json::to_string(&rotation).unwrap_or_default();
    let put = "INSERT OR REPLACE INTO turns VALUES (?1, ?2, ?3)";
    connection
        .prepare_cached(put)?
        .execute(params![team, text, Timestamp::now().micros()])?;
    Ok(Some(chosen))
}

fn write_decision(
    connection: &Connection,
    message: &MessageId,
    decision: &RoutingDecision,
) -> rusqlite::Result<()> {
    let ((own, last), text) = (names(message), encode_decision(decision));
    write(connection, &own, &text)?;
    write(connection, &last, &text)
}

fn read(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection
        .prepare_cached("SELECT value FROM memories WHERE name = ?1 AND written_at >= ?2")?;
    select
        .query_row(params![name, oldest_kept(FINAL_STATE_TTL)], |row| {
            row.get(0)
        })
        .optional()
}

fn write(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
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
    fn what_is_remembered_survives_a_restart() {
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
        let book = KeyValueStore::open(Some(&path)).unwrap();
        book.remember("name", "first").unwrap();
        book.decide(&message("1"), &decision).unwrap();
        let offer = RoundRobinOffer {
            team,
            members: agents.to_vec(),
            reason: "in turn".into(),
            facts: None,
        };
        let turn = |book: &KeyValueStore, digit| {
            book.decide_in_turn(&message(digit), &offer)
                .unwrap()
                .unwrap()
                .agent_id
        };
        assert_eq!(turn(&book, "3"), agents[0]);
        drop(book);
        let book = KeyValueStore::open(Some(&path)).unwrap();
        assert_eq!(book.remember("name", "second").unwrap(), "first");
        assert_eq!(book.decisions(&message("1")).unwrap().own, Some(decision));
        assert_eq!(
            book.decisions(&message("2"))
                .unwrap()
                .last
                .unwrap()
                .agent_id,
            agents[0]
        );
        assert_eq!(turn(&book, "2"), agents[1]);
        assert_eq!(
            turn(&book, "3"),
            agents[0],
            "a repeat has the turn that it had"
        );
    }

    #[test]
    fn round_robin_counts_of_an_idle_team_expire_and_are_swept() {
        let book = KeyValueStore::open(None).unwrap();
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
            book.decide_in_turn(&message(digit), &offer(slug))
                .unwrap()
                .unwrap()
                .agent_id
        };
        let first = turn("1", "old");
        book.connection()
            .execute("UPDATE turns SET taken_at = 1", [])
            .unwrap();
        turn("2", "other");
        let rows: i64 = book
            .connection()
            .query_row("SELECT count(*) FROM turns", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        assert_eq!(turn("3", "old"), first);
    }

    #[test]
    fn what_has_expired_is_not_read_and_is_swept_by_later_writes() {
        let book = KeyValueStore::open(None).unwrap();
        book.remember("old", "first").unwrap();
        book.connection()
            .execute("UPDATE memories SET written_at = 1", [])
            .unwrap();
        assert_eq!(book.remember("other", "x").unwrap(), "x");
        let rows: i64 = book
            .connection()
            .query_row("SELECT count(*) FROM memories", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        assert_eq!(book.remember("old", "second").unwrap(), "second");
    }
}
