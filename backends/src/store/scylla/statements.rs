//! Statements of the conversation store on ScyllaDB or Cassandra.

use scylla::statement::prepared::PreparedStatement;

use crate::{
    error::StoreError,
    scylla_link::ScyllaLink,
    store::{
        scylla_deletion::PreparedDeletion, scylla_erasures::PreparedErasures,
        scylla_facts::FactStatements, scylla_lists::PreparedLists,
    },
};

const PUT_MESSAGE: &str =
    "INSERT INTO switchboard.messages (org_id, conversation_id, bucket, position, body)
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
const PUT_FIRST: &str =
    "INSERT INTO switchboard.conversations (org_id, conversation_id, origin, progress)
    VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
const PUT_PROGRESS: &str =
    "INSERT INTO switchboard.conversations (org_id, conversation_id, progress)
    VALUES (?, ?, ?) USING TIMESTAMP ?";
const SET_METADATA: &str = "UPDATE switchboard.conversations USING TIMESTAMP ?
    SET metadata_at = ?, metadata = metadata + ? WHERE org_id = ? AND conversation_id = ?";
const CLEAR_METADATA: &str = "UPDATE switchboard.conversations USING TIMESTAMP ?
    SET metadata = metadata - ? WHERE org_id = ? AND conversation_id = ?";
const PUT_REPLY: &str =
    "INSERT INTO switchboard.replies (org_id, reply_id, body) VALUES (?, ?, ?) USING TIMESTAMP ?";
const GET_REPLY: &str = "SELECT body FROM switchboard.replies WHERE org_id = ? AND reply_id = ?";
const GET_HEAD: &str =
    "SELECT origin, progress, metadata_at, metadata FROM switchboard.conversations
    WHERE org_id = ? AND conversation_id = ?";
const GET_PROGRESS: &str =
    "SELECT progress FROM switchboard.conversations WHERE org_id = ? AND conversation_id = ?";
const GET_MESSAGES: &str = "SELECT body FROM switchboard.messages
    WHERE org_id = ? AND conversation_id = ? AND bucket = ? AND position >= ? AND position < ?";
const PUT_LINK: &str = "INSERT INTO switchboard.session_links
    (org_id, agent_id, session_id, conversation_id, answered_at) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
const GET_LINKS: &str = "SELECT conversation_id, answered_at FROM switchboard.session_links
    WHERE org_id = ? AND agent_id = ? AND session_id = ? LIMIT ?";

/// Prepared statements of the conversation store.
pub(super) struct PreparedStatements {
    pub(super) put_message: PreparedStatement,
    pub(super) put_first: PreparedStatement,
    pub(super) put_progress: PreparedStatement,
    pub(super) set_metadata: PreparedStatement,
    pub(super) clear_metadata: PreparedStatement,
    pub(super) put_reply: PreparedStatement,
    pub(super) get_reply: PreparedStatement,
    pub(super) get_head: PreparedStatement,
    pub(super) get_progress: PreparedStatement,
    pub(super) get_messages: PreparedStatement,
    pub(super) put_link: PreparedStatement,
    pub(super) get_links: PreparedStatement,
    pub(super) lists: PreparedLists,
    pub(super) deletion: PreparedDeletion,
    pub(super) erasures: PreparedErasures,
    pub(super) facts: FactStatements,
}

impl PreparedStatements {
    /// Prepares the statements on first use.
    pub(super) async fn new(link: &ScyllaLink) -> Result<Self, StoreError> {
        Ok(Self {
            put_message: link.prepare_write(PUT_MESSAGE).await?,
            put_first: link.prepare_write(PUT_FIRST).await?,
            put_progress: link.prepare_write(PUT_PROGRESS).await?,
            set_metadata: link.prepare_write(SET_METADATA).await?,
            clear_metadata: link.prepare_write(CLEAR_METADATA).await?,
            put_reply: link.prepare_write(PUT_REPLY).await?,
            get_reply: link.prepare_read(GET_REPLY).await?,
            get_head: link.prepare_read(GET_HEAD).await?,
            get_progress: link.prepare_read(GET_PROGRESS).await?,
            get_messages: link.prepare_read(GET_MESSAGES).await?,
            put_link: link.prepare_write(PUT_LINK).await?,
            get_links: link.prepare_read(GET_LINKS).await?,
            lists: PreparedLists::new(link).await?,
            deletion: PreparedDeletion::new(link).await?,
            erasures: PreparedErasures::new(link).await?,
            facts: FactStatements::new(link).await?,
        })
    }
}
