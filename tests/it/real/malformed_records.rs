//! Malformed records on Kafka and Redis: dead-lettered or ignored, without harm to others.

use super::{kafka::Witness, shared_cluster};
use crate::support::{
    Organization, PATIENCE, Script, TestService, eventually, service_address, unique,
};

/// Malformed records: no JSON, no object, an outdated version, half a record, no text, nothing.
fn malformed(marker: &str) -> Vec<Vec<u8>> {
    vec![
        format!("no json {marker}").into_bytes(),
        format!("[\"{marker}\"]").into_bytes(),
        format!("{{\"version\":1,\"marker\":\"{marker}\"}}").into_bytes(),
        format!("{{\"version\":0,\"marker\":\"{marker}\"}}").into_bytes(),
        [b"\xff\xfe\x00", marker.as_bytes()].concat(),
    ]
}

async fn still_answers(service: &TestService) {
    let organization = Organization::with_agent(service, Script::says("still here")).await;
    for session in 0..8 {
        // Enough conversations to reach every partition with malformed records.
        let reply = organization.chat(&format!("s{session}"), "hi").await;
        assert_eq!(reply.complete(), "still here");
    }
    service.complain();
}

#[tokio::test]
async fn malformed_job_records_are_dead_lettered_byte_for_byte() {
    let service = shared_cluster().await;
    let kafka = Witness::at_shared();
    for name in ["chat.route", "chat.jobs", "chat.jobs.retry"] {
        let marker = unique("marker");
        let topic = kafka.topic(&service, name);
        for (number, payload) in malformed(&marker).iter().enumerate() {
            kafka
                .write(&topic, &format!("{marker}{number}"), payload)
                .await;
        }
        kafka.write(&topic, "", b"").await;
        let dead_letters = kafka.topic(&service, "chat.dlq");
        eventually("all are dead letters", PATIENCE, async || {
            let found = kafka.read_all(&dead_letters);
            let whole = malformed(&marker)
                .iter()
                .all(|sent| found.iter().any(|record| &record.payload == sent));
            whole.then_some(())
        })
        .await;
    }
    still_answers(&service).await;
}

#[tokio::test]
async fn malformed_control_and_message_records_are_harmless() {
    let service = shared_cluster().await;
    let kafka = Witness::at_shared();
    for name in ["chat.control", "chat.messages"] {
        let topic = kafka.topic(&service, name);
        for (number, payload) in malformed("x").iter().enumerate() {
            kafka.write(&topic, &number.to_string(), payload).await;
        }
    }
    still_answers(&service).await;
}

#[tokio::test]
async fn malformed_frames_on_redis_channels_are_harmless() {
    let service = shared_cluster().await;
    let url = service_address("SWITCHBOARD_TEST_REDIS");
    let mut redis = redis::Client::open(url).unwrap().get_connection().unwrap();
    let pattern = format!("*{}*", service.namespace);
    let channels: Vec<String> = redis::cmd("PUBSUB")
        .arg("CHANNELS")
        .arg(pattern)
        .query(&mut redis)
        .unwrap();
    assert!(!channels.is_empty(), "each ingress listens on a channel");
    let mut frames: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 255],
        vec![1, 3, b'a'],
        b"{\"text\":1}".to_vec(),
    ];
    // A valid channel without a subscriber, and a frame with an unknown layout.
    let address = format!("msg_{}", "0".repeat(52));
    frames.push([&[0, 56], address.as_bytes(), &[99; 40]].concat());
    frames.push(vec![0xff; 100_000]);
    for channel in &channels {
        for frame in &frames {
            let heard: i64 = redis::cmd("PUBLISH")
                .arg(channel)
                .arg(&frame[..])
                .query(&mut redis)
                .unwrap();
            assert!(heard >= 1, "{channel} is listened on");
        }
    }
    still_answers(&service).await;
}
