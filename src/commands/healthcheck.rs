//! `switchboard healthcheck`: the health check of a container.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::config::ServiceConfig;

/// Timeout of the readiness request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Succeeds when the local service is ready for traffic.
pub(crate) async fn run(config: &ServiceConfig) -> anyhow::Result<()> {
    let url = format!("http://{}/readyz", config.ops.listen);
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .build()
        .context("cannot create an HTTP client")?;
    let response = client
        .get(&url)
        .send()
        .await
        .with_context(|| format!("no response from {url}"))?;
    if !response.status().is_success() {
        bail!("not ready: {}", response.status());
    }
    Ok(())
}
