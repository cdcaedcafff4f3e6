//! The admin API, on the public port and on its own port.

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

/// Time until a change is live on every ingress: the promised two seconds and half a second of
/// slack for a busy machine.
const PROMISED: Duration = Duration::from_millis(2_500);

/// Returns the admin path of a resource of this organization.
pub(crate) fn of(organization: &Organization, path: &str) -> String {
    format!("/api/admin/organizations/{}{path}", organization.id)
}
