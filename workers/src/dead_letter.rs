//! Buries a record that cannot be handled: byte for byte, with what an operator needs to judge and replay it.

use switchboard_backends::bus::{BusError, IncomingRecord, MessageBus, OutgoingRecord};
use switchboard_schemas::topics::Topic;

/// Why a record is buried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// What kind of fault, for counting.
    pub(crate) class: &'static str,
    /// In words, without content.
    pub(crate) reason: String,
    /// How often it was tried.
    pub(crate) attempts: u32,
}

/// Publishes the record to the dead letters; `Ok` means that the original may be settled.
pub(crate) async fn bury(
    bus: &dyn MessageBus,
    record: &IncomingRecord,
    cause: &Cause,
    timeout: std::time::Duration,
) -> Result<(), BusError> {
    bus.publish(letter(record, cause), timeout).await
}

fn letter(record: &IncomingRecord, cause: &Cause) -> OutgoingRecord {
    let mut headers = record.headers.clone();
    // A record that was replayed and failed again keeps only its newest story.
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
    fn a_letter_holds_the_bytes_as_they_were_and_where_they_lay() {
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
        };
        let cause = Cause {
            class: "malformed",
            reason: "newer".into(),
            attempts: 0,
        };
        let letter = letter(&record, &cause);
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
