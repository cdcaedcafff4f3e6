//! The rows of reply ids in both backends.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_schemas::time::Timestamp;

use super::{
    AcceptedReply, ReplyRecord, ReplyState, replies::DELETED_FOR, rows::StampedCell,
    stamp::ACCEPTANCE_STAMP,
};
use crate::{
    error::StoreError,
    json::{decode, encode},
};

/// The row of a reply id: an acceptance until the final state replaces it, and a mark after the
/// deletion of both.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplyRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<AcceptedReply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
}

/// Returns the cell that [`super::ReplyStateStore::record_acceptance`] writes.
pub(super) fn accepted_cell(accepted: &AcceptedReply) -> Result<StampedCell, StoreError> {
    let row = ReplyRow {
        accepted: Some(accepted.clone()),
        ..ReplyRow::default()
    };
    Ok(StampedCell {
        body: encode(&row)?,
        stamp: ACCEPTANCE_STAMP,
    })
}

/// Returns the cell that marks a deleted reply.
pub(super) fn deleted_cell(deleted_at: Timestamp, stamp: i64) -> Result<StampedCell, StoreError> {
    let row = ReplyRow {
        deleted_at: Some(deleted_at),
        ..ReplyRow::default()
    };
    Ok(StampedCell {
        body: encode(&row)?,
        stamp,
    })
}

/// Parses the row of a reply id. The mark of an old deletion counts no more.
pub(super) fn known_reply(body: &str) -> Result<Option<ReplyState>, StoreError> {
    let row = decode::<ReplyRow>(body)?;
    if let Some(accepted) = row.accepted {
        return Ok(Some(ReplyState::Accepted(accepted)));
    }
    let Some(deleted_at) = row.deleted_at else {
        let record = decode::<ReplyRecord>(body)?;
        return Ok(Some(ReplyState::Final(Box::new(record))));
    };
    let age = Duration::from_millis(Timestamp::now().millis_since(deleted_at));
    Ok((age < DELETED_FOR).then_some(ReplyState::Deleted))
}
