//! The load driver of `make bench`: measures the overhead of the service over a model that is
//! called directly, in the same run on the same machine. It asserts nothing, because results of a
//! shared machine vary.

#[path = "../it/support/mod.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    dead_code,
    unused_imports,
    reason = "the benchmark uses a part of the test support"
)]
mod support;

mod isolation;
mod load;
mod memory;
mod report;

use std::time::Duration;

use support::{Organization, OrganizationDocument, Profile, Script, TestService, background};

use crate::{load::Target, report::Report};

/// Number of requests of one chat at a time.
const SAMPLES_ALONE: usize = 150;
/// Number of concurrent chats, and of their requests.
const CROWD: usize = 50;
const SAMPLES_IN_CROWD: usize = 1_500;
/// Number of concurrent chats at full speed, and their duration.
const FULL_SPEED_CHATS: usize = 64;
const FULL_SPEED: Duration = Duration::from_secs(8);
/// Number of open streams while memory is measured.
const OPEN_STREAMS: usize = 500;

fn main() {
    // `cargo test --all-targets` runs benches too, with this argument missing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    background().block_on(async {
        let mut report = Report::new();
        measure(Profile::Embedded, &mut report).await;
        if std::env::var_os("SWITCHBOARD_TEST_BROKERS").is_some() {
            measure(Profile::Cluster, &mut report).await;
        } else {
            report.note("cluster: not measured, no services in the environment (make services-up)");
        }
        report.print();
    });
}

async fn measure(profile: Profile, report: &mut Report) {
    let service = TestService::start_as(profile, &[]).await;
    let organization = organization(&service).await;
    let direct = Target::direct(&organization);
    let through = Target::through(&service, &organization);
    let name = format!("{profile:?}").to_lowercase();

    organization.script(Script::counts(10, Duration::from_millis(5)));
    load::first_bytes(&through, CROWD, CROWD).await;
    for (chats, samples) in [(1, SAMPLES_ALONE), (CROWD, SAMPLES_IN_CROWD)] {
        let base = load::first_bytes(&direct, chats, samples).await;
        let measured = load::first_bytes(&through, chats, samples).await;
        report.first_bytes(&name, chats, &base, &measured);
    }

    organization.script(Script::counts(20, Duration::ZERO));
    let base = load::replies_per_second(&direct, FULL_SPEED_CHATS, FULL_SPEED).await;
    let measured = load::replies_per_second(&through, FULL_SPEED_CHATS, FULL_SPEED).await;
    report.throughput(&name, base, measured);

    organization.script(Script::counts(60, Duration::from_secs(1)));
    let (idle, open) = memory::measure_open_streams(&service, &through, OPEN_STREAMS).await;
    report.memory(&name, OPEN_STREAMS, idle, open);

    let (alone, beside) = isolation::first_bytes(profile).await;
    report.isolation(&name, &alone, &beside);
}

async fn organization(service: &TestService) -> Organization {
    let limits = serde_json::json!({"limits": {"chatPerMinute": 1_000_000}});
    let agent =
        serde_json::json!({"limits": {"maxMessageLength": 4000, "rateLimitPerMinute": 1_000_000}});
    OrganizationDocument::new()
        .agent("shop", agent)
        .key_with("load", limits)
        .apply(service)
        .await
}
