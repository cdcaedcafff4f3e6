//! Statements of the conversation store on ScyllaDB or Cassandra.

use crate::{
    scylla_link::statements,
    store::{
        scylla_deletion::PreparedDeletion, scylla_erasures::PreparedErasures,
        scylla_facts::FactStatements, scylla_lists::PreparedLists,
    },
};

statements! {
    /// Prepared statements of the conversation store.
    pub(super) struct PreparedStatements {
        prepare_write put_message =
            "INSERT INTO switchboard.messages (org_id, conversation_id, bucket, position, body)
                VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_first =
            "INSERT INTO switchboard.conversations (org_id, conversation_id, origin, progress)
                VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_progress =
            "INSERT INTO switchboard.conversations (org_id, conversation_id, progress)
                VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write set_metadata = "UPDATE switchboard.conversations USING TIMESTAMP ?
                SET metadata_at = ?, metadata = metadata + ? WHERE org_id = ? AND conversation_id = ?",
        prepare_write clear_metadata = "UPDATE switchboard.conversations USING TIMESTAMP ?
                SET metadata = metadata - ? WHERE org_id = ? AND conversation_id = ?",
        prepare_write put_reply =
            "INSERT INTO switchboard.replies (org_id, reply_id, body) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_read get_reply =
            "SELECT body FROM switchboard.replies WHERE org_id = ? AND reply_id = ?",
        prepare_write settle_turn =
            "INSERT INTO switchboard.settled_turns (org_id, reply_id, body) VALUES (?, ?, ?) IF NOT EXISTS",
        prepare_read get_settled_turn =
            "SELECT body FROM switchboard.settled_turns WHERE org_id = ? AND reply_id = ?",
        prepare_read get_head =
            "SELECT origin, progress, metadata_at, metadata FROM switchboard.conversations
                WHERE org_id = ? AND conversation_id = ?",
        prepare_read get_progress =
            "SELECT progress FROM switchboard.conversations WHERE org_id = ? AND conversation_id = ?",
        prepare_read get_messages = "SELECT body FROM switchboard.messages
                WHERE org_id = ? AND conversation_id = ? AND bucket = ? AND position >= ? AND position < ?",
        prepare_write put_link = "INSERT INTO switchboard.session_links
                (org_id, agent_id, session_id, conversation_id, answered_at) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_read get_links =
            "SELECT conversation_id, answered_at FROM switchboard.session_links
                WHERE org_id = ? AND agent_id = ? AND session_id = ? LIMIT ?",
    } with {
        lists: PreparedLists,
        deletion: PreparedDeletion,
        erasures: PreparedErasures,
        facts: FactStatements,
    }
}
