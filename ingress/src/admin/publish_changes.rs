//! Tells readers of the control topic what was configured last. Best effort: the catalogue is the truth, and every
//! process looks at it again within two seconds.

use std::time::Duration;

use serde_json::json;
use switchboard_backends::{bus::OutgoingRecord, catalog::CatalogEntry};
use switchboard_schemas::{time::Timestamp, topics::Topic};

use super::apply::ApplyContext;

const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes one record for each changed entry; stops at the first failure, because the next would wait as long.
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
            tracing::warn!(%error, "change of configuration not announced");
            return;
        }
    }
}
