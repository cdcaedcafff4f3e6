//! `switchboard healthcheck`: what a container engine asks.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::config::Config;

/// How long the local service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Succeeds when the local service is ready for traffic.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    let url = format!("http://{}/readyz", config.ops.listen);
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .context("cannot make an HTTP client")?;
    let response = client
        .get(&url)
        .send()
        .await
        .with_context(|| format!("no service answers at {url}"))?;
    if !response.status().is_success() {
        bail!("not ready: {}", response.status());
    }
    Ok(())
}
