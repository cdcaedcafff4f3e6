//! The admin API of the real product: one thing at a time, on the public port or on its own.

mod admin_port;
mod api_keys;
mod conversations;
mod deletion;
mod erasures;
mod export;
mod live_conversations;
mod playground;
mod resources;

use std::time::Duration;

use crate::support::Organization;

/// How soon a change is live everywhere: half a second more than promised, for a machine that is busy with other tests.
const PROMISED: Duration = Duration::from_millis(2_500);

/// The path of something of this organization.
pub(crate) fn of(organization: &Organization, path: &str) -> String {
    format!("/api/admin/organizations/{}{path}", organization.id)
}
