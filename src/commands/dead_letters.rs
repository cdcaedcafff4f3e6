//! `switchboard dlq`: lists, shows and replays dead letters.
//!
//! Records can contain personal data. `list` therefore prints positions and reasons only; `show`
//! prints one record in full.

use std::{io::Write, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use switchboard_backends::bus::{BusEvent, IncomingRecord, MessageBus, OutgoingRecord};
use switchboard_schemas::{ids::RequestId, topics::Topic};
use tokio::time::timeout;

use crate::{config::ServiceConfig, installation};

/// Time without a record after which the topic counts as read. The first assignment of a group
/// takes a few seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);
/// Timeout of the acknowledgment of a replayed record.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Headers with the reason of a dead letter, which are printed.
const PRINTED_HEADERS: [&str; 5] = [
    "dlq-reason",
    "dlq-class",
    "dlq-attempts",
    SOURCE_TOPIC,
    "dlq-first-seen",
];
/// Header with the original topic of a record.
const SOURCE_TOPIC: &str = "dlq-topic";

/// Subcommands of `dlq`.
#[derive(Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List dead letters: partition and offset, time, key, reason.
    #[command(after_help = "Examples:\n  switchboard dlq list")]
    List,
    /// Print one record in full.
    #[command(after_help = "Examples:\n  switchboard dlq show 3 1204")]
    Show(RecordPosition),
    /// Publish one record to its original topic again; a message answered meanwhile is not answered
    /// twice.
    #[command(after_help = "Examples:\n  switchboard dlq replay 3 1204")]
    Replay(RecordPosition),
}

/// Position of a record in the dead-letter topic.
#[derive(Args, Clone, Copy)]
pub(crate) struct RecordPosition {
    /// Partition of the dead-letter topic.
    partition: u32,
    /// Offset in that partition.
    offset: u64,
}

/// Reads the dead-letter topic from its beginning, in a consumer group of its own, and runs
/// `command`.
pub(crate) async fn run(config: &ServiceConfig, command: DeadLetterCommand) -> anyhow::Result<()> {
    let bus = installation::open_bus(config)?;
    let records = read_all(bus.as_ref()).await?;
    let mut out = std::io::stdout().lock();
    match command {
        DeadLetterCommand::List => {
            if records.is_empty() {
                writeln!(out, "no dead letters")?;
            }
            for record in &records {
                writeln!(out, "{}", format_line(record))?;
            }
            Ok(())
        }
        DeadLetterCommand::Show(position) => {
            let record = find_record(&records, position)?;
            writeln!(
                out,
                "{}\n{}",
                format_line(record),
                String::from_utf8_lossy(&record.payload)
            )?;
            Ok(())
        }
        DeadLetterCommand::Replay(position) => {
            let target = replay_record(bus.as_ref(), find_record(&records, position)?).await?;
            writeln!(out, "published to {target}")?;
            Ok(())
        }
    }
}

async fn read_all(bus: &dyn MessageBus) -> anyhow::Result<Vec<IncomingRecord>> {
    let group = format!("dlq-{}", RequestId::random());
    let mut consumer = bus.consume(&group, &[Topic::DeadLetters]).await?;
    let mut records = Vec::new();
    while let Ok(event) = timeout(IDLE_TIMEOUT, consumer.next()).await {
        if let BusEvent::Record(record) = event? {
            records.push(record);
        }
    }
    consumer.close().await?;
    records.sort_by_key(|record| (record.published_at, record.partition, record.offset));
    Ok(records)
}

fn format_line(record: &IncomingRecord) -> String {
    let reasons: Vec<String> = record
        .headers
        .iter()
        .filter(|(name, _)| PRINTED_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    let (partition, offset) = (record.partition.number, record.offset);
    format!(
        "{partition} {offset} {} key={} {}",
        record.published_at,
        record.key,
        reasons.join(" ")
    )
}

fn find_record(
    records: &[IncomingRecord],
    position: RecordPosition,
) -> anyhow::Result<&IncomingRecord> {
    records
        .iter()
        .find(|record| {
            record.partition.number == position.partition && record.offset == position.offset
        })
        .with_context(|| {
            format!(
                "no record at partition {} offset {}",
                position.partition, position.offset
            )
        })
}

async fn replay_record(bus: &dyn MessageBus, record: &IncomingRecord) -> anyhow::Result<Topic> {
    let source = record
        .headers
        .iter()
        .find(|(name, _)| name == SOURCE_TOPIC)
        .map(|(_, value)| value.as_str());
    let Some(topic) = source.and_then(Topic::from_name) else {
        bail!("the record has no header with its original topic");
    };
    let (key, payload) = (record.key.clone(), record.payload.clone());
    bus.publish(
        OutgoingRecord {
            topic,
            key,
            payload,
            headers: Vec::new(),
        },
        PUBLISH_TIMEOUT,
    )
    .await?;
    Ok(topic)
}
