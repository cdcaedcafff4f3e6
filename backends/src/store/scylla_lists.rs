//! Lists of conversations on ScyllaDB or Cassandra: a partition for each day of a list, and one
//! with the days that have conversations, so that a page reads no empty days.

use futures::future::try_join_all;
use switchboard_schemas::ids::{ConversationId, OrgId};

use super::listing::{ListRange, ListRow, ListedConversation, day_of, parse_listed};
use crate::{
    error::StoreError,
    scylla_link::{ScyllaLink, statements},
};

/// Number of days read at once; a page of a busy list needs one or two.
const DAYS_AT_ONCE: i32 = 8;

statements! {
    /// Prepared statements of lists.
    pub(super) struct PreparedLists {
        prepare_write put_day =
            "INSERT INTO switchboard.conversation_days (org_id, list, day) VALUES (?, ?, ?) USING TIMESTAMP ?",
        prepare_write put_listed = "INSERT INTO switchboard.conversations_by_day
                (org_id, list, day, began_at, conversation_id) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?",
        prepare_write delete_listed =
            "DELETE FROM switchboard.conversations_by_day USING TIMESTAMP ?
                WHERE org_id = ? AND list = ? AND day = ? AND began_at = ? AND conversation_id = ?",
        prepare_read get_days = "SELECT day FROM switchboard.conversation_days
                WHERE org_id = ? AND list = ? AND day >= ? AND day <= ? LIMIT ?",
        prepare_read get_listed =
            "SELECT began_at, conversation_id FROM switchboard.conversations_by_day
                WHERE org_id = ? AND list = ? AND day = ?
                AND (began_at, conversation_id) >= (?, ?) AND (began_at, conversation_id) < (?, ?) LIMIT ?",
    }
}

impl PreparedLists {
    /// Adds a conversation to its lists.
    pub(super) async fn put(
        &self,
        link: &ScyllaLink,
        org: &OrgId,
        id: &ConversationId,
        row: &ListRow,
    ) -> Result<(), StoreError> {
        let (at, day) = (row.began_at, day_of(row.began_at));
        let days = row
            .lists
            .iter()
            .map(|list| link.write(&self.put_day, (org.as_str(), list, day, at)));
        let rows = row.lists.iter().map(|list| {
            let values = (org.as_str(), list, day, at, id.as_str(), at);
            link.write(&self.put_listed, values)
        });
        // Write the rows before their day is announced to readers, who would otherwise read an
        // empty day.
        try_join_all(rows).await?;
        try_join_all(days).await.map(|_| ())
    }

    /// Removes a conversation from its lists. The days stay, because other conversations began on
    /// them.
    pub(super) async fn remove(
        &self,
        link: &ScyllaLink,
        org: &OrgId,
        id: &ConversationId,
        row: &ListRow,
    ) -> Result<(), StoreError> {
        let (at, day) = (row.began_at, day_of(row.began_at));
        let rows = row.lists.iter().map(|list| {
            let values = (at, org.as_str(), list, day, at, id.as_str());
            link.write(&self.delete_listed, values)
        });
        try_join_all(rows).await.map(|_| ())
    }

    /// Returns the part of a list in `range`.
    pub(super) async fn get(
        &self,
        link: &ScyllaLink,
        range: &ListRange,
    ) -> Result<Vec<ListedConversation>, StoreError> {
        let (mut found, first_day) = (Vec::new(), day_of(range.since));
        let mut last_day = day_of(range.behind.0);
        loop {
            let values = (
                range.org.as_str(),
                &range.list,
                first_day,
                last_day,
                DAYS_AT_ONCE,
            );
            let days = link.query_rows::<(i64,)>(&self.get_days, values).await?;
            for (day,) in &days {
                let room = i32::try_from(range.limit as usize - found.len()).unwrap_or(i32::MAX);
                if room == 0 {
                    return Ok(found);
                }
                for row in self.rows_of_day(link, range, *day, room).await? {
                    found.push(parse_listed(row)?);
                }
            }
            match days.last() {
                Some((day,)) if days.len() == DAYS_AT_ONCE as usize => last_day = day - 1,
                _ => return Ok(found),
            }
        }
    }

    async fn rows_of_day(
        &self,
        link: &ScyllaLink,
        range: &ListRange,
        day: i64,
        room: i32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let (behind_at, behind_id) = &range.behind;
        let place = (range.org.as_str(), &range.list, day);
        let values = (
            place.0,
            place.1,
            place.2,
            range.since,
            "",
            behind_at,
            behind_id,
            room,
        );
        link.query_rows(&self.get_listed, values).await
    }
}
