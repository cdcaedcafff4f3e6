//! A cluster with services of its own, under the load of two organizations.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        kafka::{UncommittedRecords, Witness},
        own_services::{OwnCassandra, OwnKafka, OwnRedis},
        start_cluster,
    },
    checker::{CheckReport, settled_conversations},
    clients::{SentMessage, chat_until},
    faults::{OwnServices, PastFault},
    links::{Links, insert_links},
    side_load::SideLoad,
};
use crate::{
    analytics::assert_figures_equal_a_recount,
    support::{Organization, OrganizationDocument, Script, TestService},
};

const WORDS: usize = 30;
const WORD_INTERVAL: Duration = Duration::from_millis(60);
/// Time within which every record is committed once the last reply has ended.
const COMMITTED_WITHIN: Duration = Duration::from_secs(60);

/// Two ingresses, two routers and three inference workers, and what they need.
pub(super) struct ChaosCluster {
    // Dropped first, so that the logs of a failed test do not end with services that are gone.
    pub(super) service: TestService,
    pub(super) services: OwnServices,
    pub(super) links: Links,
}

/// An organization with the messages of its clients.
pub(super) struct ObservedOrganization {
    pub(super) organization: Organization,
    pub(super) sent: Vec<SentMessage>,
}

/// Load with faults, once the clients have ended.
pub(super) struct Observation {
    /// The model of the first organization continues a given text, that of the second does not.
    pub(super) organizations: [ObservedOrganization; 2],
    side_load: SideLoad,
    pub(super) faults: Vec<PastFault>,
    /// Time for which the clients went on after the last fault.
    pub(super) time_after: Duration,
    /// Growth of the process whose memory grew most, in bytes. `None` if all were restarted.
    pub(super) memory_growth: Option<u64>,
}

impl ChaosCluster {
    pub(super) async fn start() -> Self {
        let services = OwnServices {
            kafka: OwnKafka::start(),
            redis: OwnRedis::start(),
            cassandra: OwnCassandra::start(),
        };
        let mut service = start_cluster(&[
            ("SWITCHBOARD__BUS__BROKERS", &services.kafka.brokers()),
            ("SWITCHBOARD__REDIS__URL", &services.redis.url()),
            ("SWITCHBOARD__SCYLLA__NODES", &services.cassandra.address()),
            (
                "RUST_LOG",
                "info,switchboard_backends=debug,switchboard_workers::job_loop=debug",
            ),
        ])
        .await;
        service.add("routing-2", "routing").await;
        service.add("inference-3", "inference").await;
        let links = insert_links(&service, &services).await;
        Self {
            service,
            services,
            links,
        }
    }

    /// Lets new organizations chat while `faults` are injected, and for some time after them.
    pub(super) async fn observe(
        &self,
        faults: impl Future<Output = Vec<PastFault>>,
        time_after: Duration,
    ) -> Observation {
        let first = apply(OrganizationDocument::new().continuing(), &self.service).await;
        first.script(script().continues_prefix());
        let second = apply(OrganizationDocument::new(), &self.service).await;
        second.script(script());
        let third = apply(OrganizationDocument::new().continuing(), &self.service).await;
        third.script(script().continues_prefix());
        let memory_before = self.memory_by_process();
        let (urls, stop) = (self.service.public_urls(), CancellationToken::new());
        let faults = async {
            let past = faults.await;
            tokio::time::sleep(time_after).await;
            stop.cancel();
            past
        };
        let (faults, sent_by_first, sent_by_second, side_load) = tokio::join!(
            faults,
            chat_until(&stop, &first, &urls),
            chat_until(&stop, &second, &urls),
            SideLoad::run(&stop, third, &urls),
        );
        // A restarted process has another id.
        let growth = self
            .memory_by_process()
            .into_iter()
            .filter_map(|(id, after)| {
                let before = memory_before.get(&id)?;
                Some(after.saturating_sub(*before))
            });
        Observation {
            organizations: [
                ObservedOrganization::new(first, sent_by_first),
                ObservedOrganization::new(second, sent_by_second),
            ],
            side_load,
            faults,
            time_after,
            memory_growth: growth.max(),
        }
    }

    /// Returns the resident bytes of each process of the product by its process id.
    fn memory_by_process(&self) -> BTreeMap<u32, u64> {
        let names = self.service.process_names("");
        let memory = |name: &String| {
            self.service
                .with_process(name, |process| (process.id(), process.resident_bytes()))
        };
        names.iter().map(memory).collect()
    }

    /// Checks all invariants once everything is quiet.
    pub(super) async fn check<'a>(&self, observation: &'a Observation) -> CheckReport<'a> {
        let admin = self.service.admin();
        let mut stored = vec![];
        for observed in &observation.organizations {
            stored.push(settled_conversations(&admin, &observed.organization).await);
        }
        let mut checks = CheckReport::new(&observation.faults);
        let witness = Witness::at(&self.services.kafka.brokers());
        self.check_commits(&mut checks, &witness).await;
        let events = self.announced_events(&witness);
        let side_load = &observation.side_load;
        side_load.check(&mut checks, &admin, &events).await;
        for (observed, stored) in observation.organizations.iter().zip(&stored) {
            let requests = observed.organization.requests();
            checks.check_organization(stored, &observed.sent, &requests, &events, &script());
        }
        checks
    }

    /// Panics if the totals of the dashboard differ from a recount.
    pub(super) async fn assert_totals_equal_a_recount(&self, observation: &Observation) {
        let admin = self.service.admin();
        for observed in &observation.organizations {
            assert_figures_equal_a_recount(&admin, &observed.organization).await;
        }
    }

    async fn check_commits(&self, checks: &mut CheckReport<'_>, witness: &Witness) {
        let open = witness
            .uncommitted_after(&self.service, COMMITTED_WITHIN)
            .await;
        let metrics = self.service.metrics().await;
        let owners: Vec<String> = open
            .iter()
            .flat_map(|records| owner_lines(&metrics, records))
            .collect();
        checks.check("every record is committed", open.is_empty(), || {
            format!("{open:?}, owners: {owners:#?}")
        });
    }

    /// Returns the records of the topic for analytics, in the order of their partitions.
    fn announced_events(&self, witness: &Witness) -> Vec<Value> {
        let records = witness.read_all(&witness.topic(&self.service, "chat.messages"));
        let parsed = records
            .iter()
            .map(|record| serde_json::from_slice(&record.payload).unwrap());
        parsed.collect()
    }
}

impl ObservedOrganization {
    const fn new(organization: Organization, sent: Vec<SentMessage>) -> Self {
        Self { organization, sent }
    }
}

/// Returns the script of the models: each call has a text of its own.
fn script() -> Script {
    Script::counts_by_call(WORDS, WORD_INTERVAL)
}

async fn apply(document: OrganizationDocument, service: &TestService) -> Organization {
    let members = json!([{"agent": "shop"}, {"agent": "desk"}]);
    document
        .shop(json!({}))
        .agent("desk", json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": members}),
        )
        .apply(service)
        .await
}

/// Returns the metrics of a partition, each behind the name of its process.
fn owner_lines(metrics: &[(String, String)], records: &UncommittedRecords) -> Vec<String> {
    let UncommittedRecords {
        topic, partition, ..
    } = records;
    let labels = format!("{{partition=\"{partition}\",topic=\"{topic}\"}}");
    let lines = metrics.iter().flat_map(|(name, text)| {
        let lines = text.lines().filter(|line| line.contains(&labels));
        lines.map(move |line| format!("{name}: {line}"))
    });
    lines.collect()
}
