//! Sends records that cannot be handled to the dead letter topic, unchanged and with headers for
//! the operator.

use switchboard_backends::bus::{BusError, IncomingRecord, MessageBus, OutgoingRecord};
use switchboard_schemas::topics::Topic;

/// The reason for a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadLetterCause {
    /// Class of the failure, for metrics.
    pub(crate) class: &'static str,
    /// Description without message content.
    pub(crate) reason: String,
    /// Number of attempts at the job so far.
    pub(crate) attempts: u32,
}

/// Publishes the record to the dead letter topic. On success the original may be finished.
pub(crate) async fn publish_dead_letter(
    bus: &dyn MessageBus,
    record: &IncomingRecord,
    cause: &DeadLetterCause,
    timeout: std::time::Duration,
) -> Result<(), BusError> {
    bus.publish(dead_letter_record(record, cause), timeout)
        .await
}

fn dead_letter_record(record: &IncomingRecord, cause: &DeadLetterCause) -> OutgoingRecord {
    let mut headers = record.headers.clone();
    // A record that was replayed and failed again keeps only its latest failure.
    headers.retain(|(name, _)| !name.starts_with("dlq-"));
    headers.extend([
        ("dlq-reason".to_owned(), cause.reason.clone()),
        ("dlq-class".to_owned(), cause.class.to_owned()),
        ("dlq-attempts".to_owned(), cause.attempts.to_string()),
        (
            "dlq-topic".to_owned(),
            record.partition.topic.name().to_owned(),
        ),
        (
            "dlq-partition".to_owned(),
            record.partition.number.to_string(),
        ),
        ("dlq-offset".to_owned(), record.offset.to_string()),
        ("dlq-first-seen".to_owned(), record.published_at.to_string()),
    ]);
    OutgoingRecord {
        topic: Topic::DeadLetters,
        key: record.key.clone(),
        payload: record.payload.clone(),
        headers,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_backends::bus::PartitionId;
    use switchboard_schemas::time::Timestamp;

    use super::*;

    #[test]
    fn dead_letter_keeps_payload_and_origin() {
        let record = IncomingRecord {
            partition: PartitionId {
                topic: Topic::Jobs,
                number: 3,
            },
            epoch: 1,
            offset: 9,
            key: "k".into(),
            payload: vec![0xff, 0x00].into(),
            headers: vec![
                ("traceparent".into(), "t".into()),
                ("dlq-reason".into(), "older".into()),
            ],
            published_at: Timestamp::from_micros(0),
            maybe_repeated: false,
        };
        let cause = DeadLetterCause {
            class: "malformed",
            reason: "newer".into(),
            attempts: 0,
        };
        let letter = dead_letter_record(&record, &cause);
        assert_eq!(
            (letter.key.as_str(), &letter.payload[..]),
            ("k", &[0xff, 0x00][..])
        );
        let header = |name: &str| {
            let found: Vec<_> = letter
                .headers
                .iter()
                .filter(|(key, _)| key == name)
                .map(|(_, v)| v.as_str())
                .collect();
            found.join("|")
        };
        assert_eq!(header("traceparent"), "t");
        assert_eq!(header("dlq-reason"), "newer");
        assert_eq!(
            (
                header("dlq-topic"),
                header("dlq-partition"),
                header("dlq-offset")
            ),
            ("chat.jobs".into(), "3".into(), "9".into())
        );
    }
}
