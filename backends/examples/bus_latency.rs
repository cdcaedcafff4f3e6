//! Prints the latencies of a publish and of its delivery on the embedded bus or on Kafka.
//!
//! `cargo run -p switchboard-backends --example bus_latency -- <file or broker:port>`
#![expect(clippy::print_stdout, reason = "the example prints its measurements")]

use std::{
    error::Error,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_backends::{
    bus::{
        BusConsumer, BusEvent, MessageBus, OutgoingRecord, embedded::EmbeddedBus, kafka::KafkaBus,
    },
    config::{BusConfig, EventPublication},
};
use switchboard_schemas::topics::Topic;
use tokio::task::JoinSet;

const PARTITIONS: u32 = 8;
const ROUNDS: u32 = 2000;
const PUBLISHERS: u32 = 64;
const PAYLOAD_BYTES: usize = 1024;
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).ok_or("name a file or a broker")?;
    let bus: Arc<dyn MessageBus> = if target.contains(':') {
        open_kafka(target)?
    } else {
        open_embedded(target)?
    };
    bus.migrate().await?;
    bus.check().await?;
    let mut consumer = bus.consume("latency", &[Topic::Jobs]).await?;
    publish_record(&*bus, 0).await?;
    receive_record(&mut *consumer).await?;

    let (mut acknowledged, mut consumed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let publish = async { publish_record(&*bus, round).await.map(|()| begun.elapsed()) };
        let travel = async {
            receive_record(&mut *consumer)
                .await
                .map(|()| begun.elapsed())
        };
        let (publish, travel) = tokio::join!(publish, travel);
        acknowledged.push(publish?);
        consumed.push(travel?);
    }
    print_percentiles("publish, one at a time", acknowledged);
    print_percentiles("publish to consume, one at a time", consumed);
    measure_concurrent_publishes(&bus).await?;
    consumer.close().await?;
    Ok(())
}

async fn measure_concurrent_publishes(bus: &Arc<dyn MessageBus>) -> Result<(), Box<dyn Error>> {
    let (begun, mut publishers, mut times) = (Instant::now(), JoinSet::new(), Vec::new());
    for publisher in 0..PUBLISHERS {
        let bus = bus.clone();
        publishers.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..ROUNDS / 10 {
                let begun = Instant::now();
                publish_record(&*bus, publisher).await?;
                times.push(begun.elapsed());
            }
            Ok::<_, switchboard_backends::bus::BusError>(times)
        });
    }
    while let Some(done) = publishers.join_next().await {
        times.extend(done??);
    }
    println!(
        "{:.0} publishes/s with {PUBLISHERS} at a time",
        times.len() as f64 / begun.elapsed().as_secs_f64()
    );
    print_percentiles("publish, concurrent", times);
    Ok(())
}

async fn publish_record(
    bus: &dyn MessageBus,
    number: u32,
) -> Result<(), switchboard_backends::bus::BusError> {
    let (key, payload) = (format!("key {number}"), vec![b'x'; PAYLOAD_BYTES].into());
    bus.publish(
        OutgoingRecord {
            topic: Topic::Jobs,
            key,
            payload,
            headers: Vec::new(),
        },
        TIMEOUT,
    )
    .await
}

async fn receive_record(
    consumer: &mut dyn BusConsumer,
) -> Result<(), switchboard_backends::bus::BusError> {
    while !matches!(consumer.next().await?, BusEvent::Record(_)) {}
    Ok(())
}

fn print_percentiles(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!("{what}: p50 {:.3} ms, p99 {:.3} ms", at(50), at(99));
}

fn open_embedded(path: String) -> Result<Arc<dyn MessageBus>, Box<dyn Error>> {
    Ok(Arc::new(EmbeddedBus::open(
        &PathBuf::from(path),
        PARTITIONS,
    )?))
}

fn open_kafka(brokers: String) -> Result<Arc<dyn MessageBus>, Box<dyn Error>> {
    let config = BusConfig {
        brokers,
        partitions: PARTITIONS,
        replication: 1,
        group_protocol: "classic".to_owned(),
        publish_events: EventPublication::Auto,
        properties: [].into(),
    };
    let namespace = format!("latency-{:08x}", rand::random::<u32>());
    Ok(Arc::new(KafkaBus::connect(&config, &namespace, "latency")?))
}
