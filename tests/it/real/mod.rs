//! Tests that need real services and separate processes.

mod broker_outage;
mod chaos;
mod clock_skew;
mod compose_file;
mod ingress_pause;
mod kafka;
mod key_revocation;
mod malformed_records;
mod message_events;
mod own_services;
mod quiet;
mod redelivery;
mod redis_freeze;
mod redis_outage;
mod rolling_stop;
mod rollout;
mod rotation;
mod worker_kill;

use crate::support::{Profile, SharedService, TestService};

/// Starts separate processes over real services whatever the profile of the run, so that no test
/// here passes without them.
async fn start_cluster(extra: &[(&str, &str)]) -> TestService {
    TestService::start_as(Profile::Cluster, extra).await
}

/// Returns the service that tests share, which must run over real services.
async fn shared_cluster() -> SharedService {
    let service = SharedService::get().await;
    assert_eq!(
        service.profile,
        Profile::Cluster,
        "set SWITCHBOARD_TEST_PROFILE=cluster"
    );
    service
}
