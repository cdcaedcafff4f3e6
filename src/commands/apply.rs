//! `switchboard apply`: creates or updates organizations, agents, teams and keys from a YAML or
//! JSON file.

use std::{io::Read, path::PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use secrecy::ExposeSecret;

use crate::{config::ServiceConfig, terminal};

/// Arguments of `apply`: the document and the service.
#[derive(Args)]
pub(crate) struct ApplyArguments {
    /// YAML or JSON file; `-` reads standard input.
    #[arg(short, long)]
    file: PathBuf,
    /// Base URL of the service; defaults to the local one.
    #[arg(long)]
    url: Option<String>,
}

/// Sends the document and prints the response: the document with ids, and the value of each new
/// key.
pub(crate) async fn run(config: &ServiceConfig, arguments: &ApplyArguments) -> anyhow::Result<()> {
    let token = config
        .admin
        .token
        .as_ref()
        .context("SWITCHBOARD__ADMIN__TOKEN is not set")?;
    let document = read_document(&arguments.file)?;
    let base = arguments.url.clone().unwrap_or_else(|| config.admin_url());
    let response = reqwest::Client::new()
        .post(format!("{}/api/admin/apply", base.trim_end_matches('/')))
        .bearer_auth(token.expose_secret())
        .json(&document)
        .send()
        .await
        .with_context(|| {
            format!("no response from {base}; is the service running there? (--url)")
        })?;
    let status = response.status();
    let answer: serde_json::Value = response.json().await.context("the response is not JSON")?;
    let text = serde_json::to_string_pretty(&answer)?;
    if !status.is_success() {
        bail!("the service refused the document with {status}:\n{text}");
    }
    terminal::print_output(&format!("{text}\n"))
}

/// Reads a YAML document. JSON is valid YAML, so that one parser reads both.
pub(crate) fn read_document(file: &PathBuf) -> anyhow::Result<serde_json::Value> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        text
    } else {
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    serde_yaml_ng::from_str(&text).context("the document is neither YAML nor JSON")
}
