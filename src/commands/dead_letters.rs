//! `switchboard dlq`: what could not be handled, why, and a second chance for it.
//!
//! Records may hold personal data, so that `list` shows places and reasons alone; `show` prints one record whole.

use std::{io::Write, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use switchboard_backends::bus::{BusEvent, IncomingRecord, MessageBus, OutgoingRecord};
use switchboard_schemas::{ids::RequestId, topics::Topic};
use tokio::time::timeout;

use crate::{config::Config, open};

/// Silence after which everything is taken as read; the first assignment of a group takes a few seconds.
const QUIET: Duration = Duration::from_secs(6);
/// How long a replayed record may take to be acknowledged.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Headers that say why a record is here.
const SHOWN_HEADERS: [&str; 5] = [
    "dlq-reason",
    "dlq-class",
    "dlq-attempts",
    SOURCE_TOPIC,
    "dlq-first-seen",
];
/// The header that says where a record came from.
const SOURCE_TOPIC: &str = "dlq-topic";

/// What to do with dead letters.
#[derive(Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List dead letters: partition and offset, time, key, reason.
    List,
    /// Print one record in full.
    Show(Place),
    /// Publish one record to its original topic again; a message answered meanwhile is not answered twice.
    Replay(Place),
}

/// A place in the dead-letter topic.
#[derive(Args, Clone, Copy)]
pub(crate) struct Place {
    /// Partition of the dead-letter topic.
    partition: u32,
    /// Offset in that partition.
    offset: u64,
}

/// Reads the topic from its beginning, under a group of its own.
pub(crate) async fn run(config: &Config, command: DeadLetterCommand) -> anyhow::Result<()> {
    let bus = open::bus(config)?;
    let records = read_all(bus.as_ref()).await?;
    let mut out = std::io::stdout().lock();
    match command {
        DeadLetterCommand::List => {
            if records.is_empty() {
                writeln!(out, "no dead letters")?;
            }
            for record in &records {
                writeln!(out, "{}", line(record))?;
            }
            Ok(())
        }
        DeadLetterCommand::Show(place) => {
            let record = find(&records, place)?;
            writeln!(
                out,
                "{}\n{}",
                line(record),
                String::from_utf8_lossy(&record.payload)
            )?;
            Ok(())
        }
        DeadLetterCommand::Replay(place) => {
            let target = replay(bus.as_ref(), find(&records, place)?).await?;
            writeln!(out, "published to {target}")?;
            Ok(())
        }
    }
}

async fn read_all(bus: &dyn MessageBus) -> anyhow::Result<Vec<IncomingRecord>> {
    let group = format!("dlq-{}", RequestId::random());
    let mut consumer = bus.consume(&group, &[Topic::DeadLetters]).await?;
    let mut records = Vec::new();
    while let Ok(event) = timeout(QUIET, consumer.next()).await {
        if let BusEvent::Record(record) = event? {
            records.push(record);
        }
    }
    consumer.close().await?;
    records.sort_by_key(|record| (record.published_at, record.partition, record.offset));
    Ok(records)
}

fn line(record: &IncomingRecord) -> String {
    let reasons: Vec<String> = record
        .headers
        .iter()
        .filter(|(name, _)| SHOWN_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    let (place, offset) = (record.partition.number, record.offset);
    format!(
        "{place} {offset} {} key={} {}",
        record.published_at,
        record.key,
        reasons.join(" ")
    )
}

fn find(records: &[IncomingRecord], place: Place) -> anyhow::Result<&IncomingRecord> {
    records
        .iter()
        .find(|record| record.partition.number == place.partition && record.offset == place.offset)
        .with_context(|| format!("there is no record at {} {}", place.partition, place.offset))
}

async fn replay(bus: &dyn MessageBus, record: &IncomingRecord) -> anyhow::Result<Topic> {
    let source = record
        .headers
        .iter()
        .find(|(name, _)| name == SOURCE_TOPIC)
        .map(|(_, value)| value.as_str());
    let Some(topic) = source.and_then(Topic::from_name) else {
        bail!("the record does not say which topic it came from");
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
