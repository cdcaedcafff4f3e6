//! Memory of an open stream, summed over all processes of the service.

use futures::future::join_all;
use reqwest::Response;

use crate::{load::Target, support::TestService};

/// Returns the resident KiB of all processes, idle and with `streams` open replies.
pub(crate) async fn measure_open_streams(
    service: &TestService,
    target: &Target,
    streams: usize,
) -> (u64, u64) {
    let idle = resident_kib(service);
    let open = open_streams(target, streams).await;
    let loaded = resident_kib(service);
    drop(open);
    (idle, loaded)
}

/// Opens replies and reads the first bytes of each; `None` if one failed.
pub(crate) async fn open_streams(target: &Target, streams: usize) -> Vec<Option<Response>> {
    join_all((0..streams).map(|_| async {
        let mut response = target.chat().send().await.ok()?.error_for_status().ok()?;
        response.chunk().await.ok()??;
        Some(response)
    }))
    .await
}

fn resident_kib(service: &TestService) -> u64 {
    let names = service.ops_urls().into_iter().map(|(name, _)| name);
    names
        .map(|name| process_kib(service.with_process(&name, |process| process.id())))
        .sum()
}

fn process_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
