//! Announcements of changed configuration on the control topic. Delivery is best effort, because
//! every process reads the catalog again within two seconds.

use std::time::Duration;

use serde_json::json;
use switchboard_backends::{bus::OutgoingRecord, catalog::CatalogEntry};
use switchboard_schemas::{time::Timestamp, topics::Topic};

use crate::state::apply_context::ApplyContext;

const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes one record for each changed entry. Stops at the first failure, because the next record
/// would wait as long.
pub(super) async fn publish_changes(context: &ApplyContext, changed: &[&CatalogEntry]) {
    for entry in changed {
        let change =
            json!({ "kind": entry.kind().name(), "id": entry.id(), "updatedAt": Timestamp::now() });
        let record = OutgoingRecord {
            topic: Topic::Control,
            key: entry.id().to_owned(),
            payload: change.to_string().into(),
            headers: Vec::new(),
        };
        if let Err(error) = context.bus.publish(record, PUBLISH_TIMEOUT).await {
            tracing::warn!(%error, "configuration change not announced");
            return;
        }
    }
}
