//! The conversation store: conversations, their messages and the state of replies.
//!
//! Six traits cover it, and one type per backend implements them all: [`embedded::EmbeddedStore`]
//! in a local file, [`scylla::ScyllaStore`] in a cluster. Code takes the smallest trait that it
//! needs; [`ConversationStore`] stands for all of them where they are opened and handed around.
//!
//! - [`TurnWriter`]: the writes that start and end turns.
//! - [`ReplyStateStore`]: the accepted or final state of each reply.
//! - [`ConversationReader`]: conversations, their messages and lists of them.
//! - [`ConversationWriter`]: changes of metadata, and deletion.
//! - [`SessionLinkStore`]: conversations that cannot be derived from their session.
//! - [`ErasureStore`]: records of erasures.
//!
//! # Contract
//! - **Idempotence**: every write may be repeated.
//! - **Durability**: a write that returned `Ok` survives a crash of this process (with ScyllaDB,
//!   also the loss of any nodes less than a quorum).
//! - **Visibility**: a read that begins after a write has returned sees the write.
//! - **Tenancy**: a read with another organization finds nothing.

#[cfg(test)]
mod conformance;
mod conversation_reader;
mod conversation_writer;
pub mod deletion;
pub mod embedded;
mod embedded_deletion;
mod embedded_erasures;
mod embedded_facts;
mod erasures;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fixtures;
pub mod listing;
mod replies;
mod reply_rows;
pub(crate) mod rows;
pub mod scylla;
mod scylla_deletion;
mod scylla_erasures;
mod scylla_facts;
mod scylla_lists;
mod session_links;
mod stamp;
mod turns;

pub use self::{
    conversation_reader::{ConversationReader, TurnOpening},
    conversation_writer::ConversationWriter,
    erasures::ErasureStore,
    replies::{AcceptedReply, ReplyRecord, ReplyState, ReplyStateStore},
    rows::message_metadata,
    session_links::{SESSION_LINKS_MAX, SessionLink, SessionLinkStore},
    turns::{TurnEnd, TurnStart, TurnWriter},
};

/// All parts of the store.
pub trait ConversationStore:
    TurnWriter
    + ReplyStateStore
    + ConversationReader
    + ConversationWriter
    + SessionLinkStore
    + ErasureStore
{
}

impl<T> ConversationStore for T where
    T: TurnWriter
        + ReplyStateStore
        + ConversationReader
        + ConversationWriter
        + SessionLinkStore
        + ErasureStore
{
}
