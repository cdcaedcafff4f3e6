//! The check of `make perf-budget`: counts what a chat costs the embedded service and compares it
//! with `tests/bench/budget.tsv`. It counts instead of timing, so that a busy machine can run it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement stops where it fails and prints its figures"
)]

#[path = "../../it/support/mod.rs"]
#[expect(
    clippy::expect_used,
    clippy::print_stderr,
    dead_code,
    unused_imports,
    reason = "the benchmark uses a part of the test support"
)]
mod support;

mod counters;
#[path = "../load.rs"]
#[expect(dead_code, reason = "times are for `make bench`")]
mod load;
#[path = "../memory.rs"]
#[expect(dead_code, reason = "resident memory is for `make bench`")]
mod memory;
mod table;

use std::{process::ExitCode, time::Duration};

use support::{Organization, OrganizationDocument, Profile, Script, TestService, background};

use crate::{load::Target, table::ChatCosts};

/// Words of each reply.
const TOKENS: usize = 20;
/// Chats before the first count, so that caches are filled and connections open.
const WARM_UP: usize = 128;
/// Number of open streams while memory is measured.
const OPEN_STREAMS: usize = 200;
/// Chats of the two runs under callgrind. Their difference is free of the costs of start and end.
const FEW_CHATS: usize = 30;
const MANY_CHATS: usize = 130;
/// Time to end under callgrind.
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// A way in which chats arrive.
struct Load {
    name: &'static str,
    at_once: usize,
    chats: usize,
    token_delay: Duration,
}

const LOADS: [Load; 2] = [
    Load {
        name: "burst",
        at_once: 64,
        chats: 640,
        token_delay: Duration::ZERO,
    },
    Load {
        name: "paced",
        at_once: 1,
        chats: 100,
        token_delay: Duration::from_millis(2),
    },
];

fn main() -> ExitCode {
    // `cargo test --all-targets` runs benches too, with this argument missing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    for tool in ["strace", "valgrind"] {
        if !counters::is_installed(tool) {
            println!("not measured: {tool} is not installed");
            return ExitCode::FAILURE;
        }
    }
    let costs = background().block_on(async {
        let mut costs = ChatCosts::default();
        for load in &LOADS {
            count_calls(load, &mut costs).await;
        }
        measure_memory(&mut costs).await;
        count_instructions(&mut costs).await;
        costs
    });
    table::check(&costs)
}

async fn count_calls(load: &Load, costs: &mut ChatCosts) {
    let (service, organization) = start(&[]).await;
    let target = Target::through(&service, &organization);
    organization.script(Script::counts(TOKENS, load.token_delay));
    let warm_up = WARM_UP.min(load.chats);
    chat(&target, load.at_once, warm_up).await;
    let process = process_id(&service);

    let bytes = counters::written_bytes(process);
    let trace = counters::Trace::attach(process).await;
    chat(&target, load.at_once, load.chats).await;
    let calls = trace.stop();
    for (name, count) in calls {
        costs.add(load.name, &name, per_chat(count, load.chats));
    }
    for ((name, before), (_, after)) in bytes.iter().zip(counters::written_bytes(process)) {
        costs.add(load.name, name, per_chat(after - before, load.chats));
    }
}

async fn measure_memory(costs: &mut ChatCosts) {
    let (service, organization) = start(&[]).await;
    let target = Target::through(&service, &organization);
    organization.script(Script::counts(TOKENS, Duration::ZERO));
    chat(&target, 1, WARM_UP).await;
    let process = process_id(&service);

    organization.script(Script::counts(60, Duration::from_secs(1)));
    let idle = counters::proportional_bytes(process);
    let open = memory::open_streams(&target, OPEN_STREAMS).await;
    let loaded = counters::proportional_bytes(process);
    assert!(open.iter().all(Option::is_some), "a stream did not open");
    costs.add("streams", "idle PSS bytes", per_chat(idle, 1));
    let growth = loaded.saturating_sub(idle);
    costs.add(
        "streams",
        "PSS bytes per stream",
        per_chat(growth, OPEN_STREAMS),
    );
}

async fn count_instructions(costs: &mut ChatCosts) {
    let few = instructions(FEW_CHATS).await;
    let many = instructions(MANY_CHATS).await;
    let chats = MANY_CHATS - FEW_CHATS;
    costs.add("alone", "instructions", per_chat(many - few, chats));
}

/// Returns the instructions of a service from its start to its end, with `chats` chats one by one.
async fn instructions(chats: usize) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("callgrind.out");
    let wrapper = format!(
        "valgrind -q --tool=callgrind --callgrind-out-file={}",
        output.display()
    );
    let (service, organization) = start(&[("TESTED_WRAPPER", &wrapper)]).await;
    organization.script(Script::counts(TOKENS, Duration::ZERO));
    chat(&Target::through(&service, &organization), 1, chats).await;
    service.with_process("all", |process| {
        process.signal("TERM");
        process.wait(STOP_PATIENCE)
    });
    counters::instructions(&output)
}

async fn start(extra: &[(&str, &str)]) -> (TestService, Organization) {
    let service = TestService::start_as(Profile::Embedded, extra).await;
    let key = serde_json::json!({"limits": {"chatPerMinute": 1_000_000}});
    let agent = serde_json::json!({"limits": {"rateLimitPerMinute": 1_000_000}});
    let document = OrganizationDocument::new().agent("shop", agent);
    let organization = document.key_with("load", key).apply(&service).await;
    (service, organization)
}

async fn chat(target: &Target, at_once: usize, chats: usize) {
    let replies = load::first_bytes(target, at_once, chats).await.len();
    assert_eq!(
        replies,
        (chats.div_ceil(at_once) * at_once) as u64,
        "complete replies"
    );
}

fn process_id(service: &TestService) -> u32 {
    service.with_process("all", |process| process.id())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts are far below the precision"
)]
fn per_chat(count: u64, chats: usize) -> f64 {
    count as f64 / chats as f64
}
