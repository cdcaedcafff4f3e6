//! Creation of missing topics.

use std::time::{Duration, Instant};

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    error::{KafkaError, RDKafkaErrorCode},
};
use switchboard_schemas::topics::Topic;

use super::{names::ClusterNames, properties::ClientProperties};
use crate::{
    bus::{BusError, placement},
    config::BusConfig,
};

const CREATE_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout from the creation of topics until every partition has a leader.
const LEADERS_TIMEOUT: Duration = Duration::from_secs(15);
const LEADERS_INTERVAL: Duration = Duration::from_millis(50);

type TopicAdmin = AdminClient<DefaultClientContext>;

/// Creates all missing topics and waits until they can be used.
pub(super) async fn create_missing(
    config: &BusConfig,
    properties: &ClientProperties,
    names: &ClusterNames,
) -> Result<(), BusError> {
    let admin: TopicAdmin = properties
        .admin()
        .create()
        .map_err(|error| BusError::Fatal(error.to_string()))?;
    let plans: Vec<TopicPlan> = Topic::ALL
        .into_iter()
        .map(|topic| TopicPlan::new(topic, config, names))
        .collect();
    let topics: Vec<NewTopic<'_>> = plans.iter().map(TopicPlan::topic).collect();
    let options = AdminOptions::new()
        .request_timeout(Some(CREATE_TIMEOUT))
        .operation_timeout(Some(CREATE_TIMEOUT));
    let results = admin
        .create_topics(&topics, &options)
        .await
        .map_err(|error| refused(&error))?;
    for result in results {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, code)) => {
                return Err(BusError::Fatal(format!(
                    "topic {topic} was refused: {code}"
                )));
            }
        }
    }
    let names = plans.into_iter().map(|plan| plan.name).collect();
    // Move the admin client into the task, because dropping it blocks too.
    let waiting = tokio::task::spawn_blocking(move || wait_for_leaders(&admin, names));
    waiting
        .await
        .map_err(|error| BusError::Unavailable(error.to_string()))?
}

struct TopicPlan {
    name: String,
    partitions: i32,
    replication: i32,
    settings: Vec<(&'static str, String)>,
}

impl TopicPlan {
    fn new(topic: Topic, config: &BusConfig, names: &ClusterNames) -> Self {
        let partitions = placement::partition_count(topic, config.partitions);
        let keep = match topic.retention_hours() {
            Some(hours) => ("retention.ms", (u64::from(hours) * 3_600_000).to_string()),
            None => ("cleanup.policy", "compact".to_owned()),
        };
        // With three copies an acknowledgement means two, so that one broker may be unavailable.
        let copies_acknowledged = config.replication.saturating_sub(1).max(1);
        Self {
            name: names.topic(topic),
            partitions: i32::try_from(partitions).unwrap_or(i32::MAX),
            replication: i32::from(config.replication.max(1)),
            settings: vec![
                keep,
                ("min.insync.replicas", copies_acknowledged.to_string()),
                // Brokers refuse the times of a process whose clock is an hour ahead.
                ("message.timestamp.type", "LogAppendTime".to_owned()),
            ],
        }
    }

    fn topic(&self) -> NewTopic<'_> {
        let topic = NewTopic::new(
            &self.name,
            self.partitions,
            TopicReplication::Fixed(self.replication),
        );
        self.settings
            .iter()
            .fold(topic, |topic, (name, value)| topic.set(name, value))
    }
}

/// Waits until every partition has a leader. A consumer that subscribes earlier checks again only
/// after its next metadata refresh.
fn wait_for_leaders(admin: &TopicAdmin, names: Vec<String>) -> Result<(), BusError> {
    let deadline = Instant::now() + LEADERS_TIMEOUT;
    for name in names {
        while !has_leaders(admin, &name)? {
            if Instant::now() >= deadline {
                return Err(BusError::Unavailable(format!(
                    "topic {name} has partitions without a leader"
                )));
            }
            std::thread::sleep(LEADERS_INTERVAL);
        }
    }
    Ok(())
}

fn has_leaders(admin: &TopicAdmin, name: &str) -> Result<bool, BusError> {
    let metadata = admin
        .inner()
        .fetch_metadata(Some(name), LEADERS_TIMEOUT)
        .map_err(|error| refused(&error))?;
    let led = |topic: &rdkafka::metadata::MetadataTopic| {
        topic.error().is_none()
            && !topic.partitions().is_empty()
            && topic
                .partitions()
                .iter()
                .all(|partition| partition.leader() >= 0)
    };
    Ok(metadata.topics().iter().all(led))
}

fn refused(error: &KafkaError) -> BusError {
    BusError::Unavailable(format!("topics: {error}"))
}
