//! `switchboard apply`: creates or updates organizations, agents, teams and keys from a YAML or
//! JSON file.

use std::{io::Read, path::PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::{config::ServiceConfig, terminal};

/// Largest number of characters of a value that is shown.
const VALUE_CHARS_MAX: usize = 60;

/// Arguments of `apply`: the document and the service.
#[derive(Args)]
pub(crate) struct ApplyArguments {
    /// YAML or JSON file; `-` reads standard input.
    #[arg(short, long)]
    file: PathBuf,
    /// Base URL of the service; defaults to the local one.
    #[arg(long)]
    url: Option<String>,
    /// Check the document and show what it would change, without changing anything.
    #[arg(long)]
    dry_run: bool,
}

/// Sends the document and prints the response: the document with ids, and the value of each new
/// key; or the changes that it would make.
pub(crate) async fn run(config: &ServiceConfig, arguments: &ApplyArguments) -> anyhow::Result<()> {
    let token = config
        .admin
        .token
        .as_ref()
        .context("SWITCHBOARD__ADMIN__TOKEN is not set")?;
    let document = read_document(&arguments.file)?;
    let base = arguments.url.clone().unwrap_or_else(|| config.admin_url());
    let path = if arguments.dry_run {
        "/api/admin/apply/plan"
    } else {
        "/api/admin/apply"
    };
    let response = reqwest::Client::new()
        .post(format!("{}{path}", base.trim_end_matches('/')))
        .bearer_auth(token.expose_secret())
        .json(&document)
        .send()
        .await
        .with_context(|| {
            format!("no response from {base}; is the service running there? (--url)")
        })?;
    let status = response.status();
    let answer: Value = response.json().await.context("the response is not JSON")?;
    if !status.is_success() {
        bail!(
            "the service refused the document with {status}:\n{}",
            mistakes_text(&answer)?
        );
    }
    let text = if arguments.dry_run {
        plan_text(&answer)
    } else {
        format!("{}\n", serde_json::to_string_pretty(&answer)?)
    };
    terminal::print_output(&text)
}

/// Returns a line per mistake of the document, or the whole error if it is another one.
fn mistakes_text(problem: &Value) -> anyhow::Result<String> {
    let errors = problem["details"]["errors"].as_array();
    let Some(errors) = errors.filter(|errors| !errors.is_empty()) else {
        return Ok(serde_json::to_string_pretty(problem)?);
    };
    let lines = errors.iter().map(|error| {
        let path = text_of(&error["param"]);
        let separator = if path.is_empty() { "" } else { ": " };
        format!("  {path}{separator}{}", text_of(&error["detail"]))
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the changes as a list: `+` for a new resource, `~` for a changed one.
fn plan_text(plan: &Value) -> String {
    let mut text = String::new();
    let changes = plan["changes"].as_array().map_or(&[][..], Vec::as_slice);
    for change in changes {
        let is_new = change["action"] == "create";
        text.push_str(&format!(
            "{} {} {} of {} ({})\n",
            if is_new { '+' } else { '~' },
            text_of(&change["kind"]),
            text_of(&change["name"]),
            text_of(&change["organization"]),
            if is_new { "new" } else { "changed" },
        ));
        for field in change["fields"].as_array().into_iter().flatten() {
            text.push_str(&field_line(field, is_new));
        }
    }
    let unchanged = plan["unchanged"].as_u64().unwrap_or_default();
    text.push_str(&format!(
        "{} to change, {unchanged} unchanged, none deleted. Nothing was written.\n",
        changes.len()
    ));
    text
}

fn field_line(change: &Value, is_new: bool) -> String {
    let name = text_of(&change["field"]);
    match (change.get("before"), change.get("after")) {
        // The service names secrets without their values.
        (None, None) => format!("    {name}: (hidden)\n"),
        (None, Some(after)) if is_new => format!("    {name}: {}\n", shown(after)),
        (before, after) => {
            let shown = |value: Option<&Value>| value.map_or_else(|| "(none)".to_owned(), shown);
            format!("    {name}: {} → {}\n", shown(before), shown(after))
        }
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_CHARS_MAX {
        return text;
    }
    let start: String = text.chars().take(VALUE_CHARS_MAX).collect();
    format!("{start}…")
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
    let document: Value =
        serde_yaml_ng::from_str(&text).context("the document is neither YAML nor JSON")?;
    if document.is_object() {
        Ok(document)
    } else if document.is_null() {
        bail!("the document is empty")
    } else {
        bail!("the document must be an object with the list `organizations`")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plan_lists_fields_with_old_and_new_values() {
        let plan = json!({
            "changes": [
                { "organization": "acme", "kind": "agent", "name": "shop", "action": "create",
                  "fields": [{ "field": "name", "after": "Shop" }] },
                { "organization": "acme", "kind": "provider", "name": "main", "action": "update",
                  "fields": [
                    { "field": "apiKey" },
                    { "field": "model", "before": "a", "after": "b" },
                    { "field": "embeddingModel", "before": "e".repeat(90) },
                  ] },
            ],
            "unchanged": 3,
        });
        let expected = format!(
            "+ agent shop of acme (new)\n    name: \"Shop\"\n~ provider main of acme (changed)\n    \
             apiKey: (hidden)\n    model: \"a\" → \"b\"\n    embeddingModel: \"{}… → (none)\n\
             2 to change, 3 unchanged, none deleted. Nothing was written.\n",
            "e".repeat(VALUE_CHARS_MAX - 1)
        );
        assert_eq!(plan_text(&plan), expected);
    }

    #[test]
    fn mistakes_are_listed_one_a_line() {
        let problem = json!({ "details": { "errors": [
            { "param": "organizations[0].name", "detail": "is missing" },
            { "param": "", "detail": "unknown field" },
        ] } });
        let text = mistakes_text(&problem).unwrap();
        assert_eq!(text, "  organizations[0].name: is missing\n  unknown field");
        let other = mistakes_text(&json!({ "code": "INVALID_API_KEY" })).unwrap();
        assert!(other.contains("INVALID_API_KEY"));
    }
}
