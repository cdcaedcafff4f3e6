//! Changes of conversations outside of their turns: metadata and deletion.

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_schemas::{
    ids::{ConversationId, OrgId},
    time::Timestamp,
};

use super::deletion::ConversationDeletion;
use crate::error::StoreError;

/// Changes of conversations outside of their turns.
///
/// # Contract
/// - **Metadata**: of two changes of one key the later `at` wins, in any order of arrival.
/// - **Deletion**: deleted data is found by no read, and no late write of earlier turns restores
///   any of it. The same session may start anew. A deletion may be repeated, even after it stopped
///   halfway.
#[async_trait]
pub trait ConversationWriter: Send + Sync {
    /// Sets and clears (`null`) keys of the metadata. Returns `false` if the conversation does not
    /// exist.
    async fn update_metadata(
        &self,
        org: &OrgId,
        id: &ConversationId,
        changes: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes a conversation with its messages, reply records, session links and list entries. It
    /// is called by the worker that writes its turns, between two of them. Returns `false` if there
    /// is none or another deletion was faster; a repeat of the same deletion returns `true`.
    async fn delete_conversation(
        &self,
        deletion: &ConversationDeletion,
    ) -> Result<bool, StoreError>;
}
