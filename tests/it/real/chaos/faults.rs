//! Faults of processes and services, in an order that a seed decides.

use std::{
    fs,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::sleep;

use super::{
    super::own_services::{OwnCassandra, OwnKafka, OwnRedis, OwnService},
    cluster::ChaosCluster,
    links::{Link, LinkCondition},
};
use crate::support::{Process, STOP_PATIENCE};

/// Probability of a second fault at the same time. Fewer happen, because some pairs exclude each
/// other.
const OVERLAP_PROBABILITY: f64 = 0.4;
/// Random numbers of targets are below this and taken modulo the processes of a role. As a common
/// multiple of 1, 2 and 3 it makes each process equally likely.
const TARGET_NUMBERS: usize = 6;

/// Time for which a throttled process is suspended; it then runs for a ninth of that.
const THROTTLED_PAUSE: Duration = Duration::from_millis(180);

/// 1 Mbit/s.
const NARROW: LinkCondition = LinkCondition::Narrow(125_000);
const CUT: LinkCondition = LinkCondition::Cut;
const SLOW: LinkCondition = LinkCondition::Delayed(Duration::from_secs(2));
const LOSSY: LinkCondition = LinkCondition::Lossy(0.05);

/// Kafka, Redis and Cassandra, started for this test alone, because they have faults too.
pub(super) struct OwnServices {
    pub(super) kafka: OwnKafka,
    pub(super) redis: OwnRedis,
    pub(super) cassandra: OwnCassandra,
}

/// A fault that is injected and later reverted. Killed means SIGKILL, suspended SIGSTOP, and
/// stopped SIGTERM with a restart. Workers are the inference processes, routers the routing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    KilledWorker,
    SuspendedWorker,
    StoppedWorker,
    KilledIngress,
    SuspendedIngress,
    StoppedIngress,
    KilledRouter,
    KilledRedis,
    SuspendedRedis,
    KilledBroker,
    SuspendedBroker,
    SuspendedStore,
    KilledStore,
    /// A process that runs for a tenth of the time.
    ThrottledWorker,
    /// A process that can open no more files and connections.
    DescriptorStarvedIngress,
    /// An ingress without Redis.
    CutIngressRedis,
    /// A worker without Redis.
    CutWorkerRedis,
    /// A worker without the store.
    CutWorkerStore,
    /// An ingress with 1 Mbit/s to Redis.
    NarrowIngressRedis,
    /// A store that answers two seconds later.
    SlowStore,
    /// Redis and the store behind links on which 5 % of the chunks arrive one retransmission late.
    LossyLinks,
    /// A broker that can write no more.
    FullBroker,
}

/// A fault with its target, delay and duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedFault {
    pub(super) fault: Fault,
    /// Number of the process, taken modulo the processes of its role.
    pub(super) target: usize,
    /// Delay before it starts.
    pub(super) delay: Duration,
    pub(super) duration: Duration,
}

/// A fault that has ended.
#[derive(Debug)]
pub(super) struct PastFault {
    pub(super) fault: Fault,
    pub(super) began: Instant,
    /// Time when the subject works again.
    pub(super) ended: Instant,
}

impl Fault {
    /// Faults of random runs.
    const RANDOM: [Self; 17] = [
        Self::KilledWorker,
        Self::SuspendedWorker,
        Self::StoppedWorker,
        Self::KilledIngress,
        Self::SuspendedIngress,
        Self::StoppedIngress,
        Self::KilledRouter,
        Self::KilledRedis,
        Self::SuspendedRedis,
        Self::KilledBroker,
        Self::SuspendedBroker,
        Self::SuspendedStore,
        Self::CutIngressRedis,
        Self::CutWorkerRedis,
        Self::CutWorkerStore,
        Self::SlowStore,
        Self::LossyLinks,
    ];

    /// Returns the role of the process, or the name of the service, that has the fault.
    const fn subject(self) -> &'static str {
        match self {
            Self::KilledWorker
            | Self::SuspendedWorker
            | Self::StoppedWorker
            | Self::ThrottledWorker
            | Self::CutWorkerRedis
            | Self::CutWorkerStore => "inference",
            Self::KilledIngress
            | Self::SuspendedIngress
            | Self::StoppedIngress
            | Self::DescriptorStarvedIngress
            | Self::CutIngressRedis
            | Self::NarrowIngressRedis => "ingress",
            Self::KilledRouter => "routing",
            Self::KilledRedis | Self::SuspendedRedis => "redis",
            Self::KilledBroker | Self::SuspendedBroker | Self::FullBroker => "kafka",
            Self::SuspendedStore | Self::KilledStore | Self::SlowStore => "cassandra",
            Self::LossyLinks => "links",
        }
    }

    /// Causes the fault and, after `duration`, makes the subject work again. A stopped process is
    /// restarted as soon as it has ended.
    async fn inject(self, cluster: &ChaosCluster, target: usize, duration: Duration) {
        let ChaosCluster {
            service,
            services,
            links,
        } = cluster;
        let processes = service.process_names(self.subject());
        let process = processes.get(target % processes.len().max(1));
        let process = process.map_or("", String::as_str);
        if !process.is_empty() {
            let ended = service.with_process(process, Process::end_status);
            assert_eq!(ended, None, "{process} has ended by itself");
        }
        match self {
            Self::KilledWorker | Self::KilledIngress | Self::KilledRouter => {
                service.with_process(process, Process::kill);
                sleep(duration).await;
                service.restart(process).await;
            }
            Self::SuspendedWorker | Self::SuspendedIngress => {
                service.with_process(process, |process| process.signal("STOP"));
                sleep(duration).await;
                service.with_process(process, |process| process.signal("CONT"));
            }
            Self::StoppedWorker | Self::StoppedIngress => {
                service.with_process(process, |process| process.signal("TERM"));
                service.wait_for_end(process, STOP_PATIENCE).await;
                service.restart(process).await;
            }
            Self::KilledRedis => kill_for(duration, &services.redis).await,
            Self::SuspendedRedis => suspend_for(duration, &services.redis).await,
            Self::KilledBroker => kill_for(duration, &services.kafka).await,
            Self::SuspendedBroker => suspend_for(duration, &services.kafka).await,
            Self::SuspendedStore => suspend_for(duration, &services.cassandra).await,
            Self::KilledStore => kill_for(duration, &services.cassandra).await,
            Self::DescriptorStarvedIngress => {
                let id = service.with_process(process, |process| process.id());
                starve_for(duration, id).await;
            }
            Self::CutIngressRedis | Self::CutWorkerRedis => {
                set_for(duration, &[&links[process].redis], CUT).await;
            }
            Self::CutWorkerStore => set_for(duration, &[&links[process].store], CUT).await,
            Self::NarrowIngressRedis => {
                set_for(duration, &[&links[process].redis], NARROW).await;
            }
            Self::SlowStore => {
                let stores: Vec<_> = links.values().map(|own| &own.store).collect();
                set_for(duration, &stores, SLOW).await;
            }
            Self::LossyLinks => {
                let all = links.values().flat_map(|own| [&own.redis, &own.store]);
                set_for(duration, &all.collect::<Vec<_>>(), LOSSY).await;
            }
            Self::FullBroker => fill_for(duration, &services.kafka).await,
            Self::ThrottledWorker => {
                let end = Instant::now() + duration;
                while Instant::now() < end {
                    service.with_process(process, |process| process.signal("STOP"));
                    sleep(THROTTLED_PAUSE).await;
                    service.with_process(process, |process| process.signal("CONT"));
                    sleep(THROTTLED_PAUSE / 9).await;
                }
            }
        }
    }

    /// Returns true if the fault changes links, which have one condition at a time.
    const fn changes_links(self) -> bool {
        matches!(
            self,
            Self::CutIngressRedis
                | Self::CutWorkerRedis
                | Self::CutWorkerStore
                | Self::NarrowIngressRedis
                | Self::SlowStore
                | Self::LossyLinks
        )
    }

    /// Returns true if both faults can happen at the same time without ending each other.
    fn can_overlap(self, other: Self) -> bool {
        self.subject() != other.subject() && !(self.changes_links() && other.changes_links())
    }
}

impl PlannedFault {
    fn random(random: &mut StdRng) -> Self {
        Self {
            fault: Fault::RANDOM[random.random_range(..Fault::RANDOM.len())],
            target: random.random_range(..TARGET_NUMBERS),
            delay: Duration::from_millis(random.random_range(500..4_000)),
            duration: Duration::from_millis(random.random_range(1_000..12_000)),
        }
    }

    /// Waits for the delay, injects the fault and reverts it after its duration.
    pub(super) async fn inject(self, cluster: &ChaosCluster) -> PastFault {
        sleep(self.delay).await;
        let began = Instant::now();
        self.fault.inject(cluster, self.target, self.duration).await;
        PastFault {
            fault: self.fault,
            began,
            ended: Instant::now(),
        }
    }
}

/// Injects faults until the time is over. One seed always yields the same order of faults.
pub(super) async fn inject_random_faults(
    cluster: &ChaosCluster,
    seed: u64,
    time: Duration,
) -> Vec<PastFault> {
    let (mut random, mut past) = (StdRng::seed_from_u64(seed), vec![]);
    let end = Instant::now() + time;
    while Instant::now() < end {
        let first = PlannedFault::random(&mut random);
        let second = PlannedFault::random(&mut random);
        let overlaps = random.random_bool(OVERLAP_PROBABILITY);
        let injected = first.inject(cluster);
        if overlaps && second.fault.can_overlap(first.fault) {
            let both = tokio::join!(injected, second.inject(cluster));
            past.extend([both.0, both.1]);
        } else {
            past.push(injected.await);
        }
    }
    past
}

/// Gives links a condition for some time.
async fn set_for(duration: Duration, changed: &[&Link], condition: LinkCondition) {
    changed.iter().for_each(|link| link.set(condition));
    sleep(duration).await;
    changed
        .iter()
        .for_each(|link| link.set(LinkCondition::Intact));
}

/// Prevents a process from opening descriptors; those that are open stay open.
async fn starve_for(duration: Duration, process: u32) {
    let before = prlimit(process, &["--nofile", "--output=SOFT", "--noheadings"]);
    // poll(2) fails if it is given more descriptors than the limit.
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    prlimit(process, &[&format!("--nofile={open}:")]);
    sleep(duration).await;
    prlimit(process, &[&format!("--nofile={}:", before.trim())]);
}

/// Prevents the files of a service from growing, as on a full disk. It is restarted afterwards,
/// because a broker whose only disk is full ends.
async fn fill_for(duration: Duration, service: &Arc<OwnService>) {
    prlimit(service.id(), &["--fsize=1:"]);
    sleep(duration).await;
    let program = format!("/proc/{}/exe", service.id());
    assert!(
        fs::read_link(program).is_err(),
        "a broker with a full disk keeps running"
    );
    run_blocking(service, OwnService::stop).await;
    run_blocking(service, OwnService::restart).await;
}

/// Calls `prlimit` for a process and returns its output.
fn prlimit(process: u32, arguments: &[&str]) -> String {
    let process = format!("--pid={process}");
    let output = Command::new("prlimit")
        .arg(process)
        .args(arguments)
        .output();
    let output = output.expect("prlimit (util-linux)");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn kill_for(duration: Duration, service: &Arc<OwnService>) {
    run_blocking(service, OwnService::kill).await;
    sleep(duration).await;
    run_blocking(service, OwnService::restart).await;
}

async fn suspend_for(duration: Duration, service: &OwnService) {
    service.suspend();
    sleep(duration).await;
    service.resume();
}

/// Calls `work` on a thread for blocking calls, so that the clients keep running.
async fn run_blocking(service: &Arc<OwnService>, work: fn(&OwnService)) {
    let service = service.clone();
    tokio::task::spawn_blocking(move || work(&service))
        .await
        .unwrap();
}
