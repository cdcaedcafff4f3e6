//! `switchboard route --team … --replay`: decides recorded messages of a team again and prints the
//! differences.
//!
//! All data is read through the admin API, with the access of the admin token, from a running
//! service of either profile. Rows identify messages by id; message text is printed only with
//! `--show-text`.

mod admin_client;
mod proposed_team;

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use anyhow::Context;
use clap::Args;
use switchboard_schemas::{ids::AgentId, routing::RoutingStage};
use switchboard_workers::replay::{RecordedMessage, ReplayedDecision, RoutingReplay};

use self::admin_client::AdminClient;
use crate::{commands::apply, config::ServiceConfig};

/// Arguments of `route`: the team, the changes and the conversations.
#[derive(Args)]
pub(crate) struct RouteReplayArguments {
    /// Slug or id of the organization; optional if only one has a team of that name.
    #[arg(long)]
    organization: Option<String>,
    /// Slug or id of the team.
    #[arg(long)]
    team: String,
    /// Decide recorded messages again and print differences; changes nothing.
    #[arg(long, required = true)]
    replay: bool,
    /// Document with the changed team or agents (`-`: standard input); defaults to the current
    /// state.
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// Only conversations that began at or after this time, for example 2026-01-31T00:00:00Z.
    #[arg(long)]
    since: Option<String>,
    /// Maximum number of conversations, latest first.
    #[arg(long, default_value_t = 200)]
    limit: usize,
    /// Print the message text beside each row.
    #[arg(long)]
    show_text: bool,
    /// Base URL of the service; defaults to the local one.
    #[arg(long)]
    url: Option<String>,
}

#[derive(Default)]
struct ReplayTotals {
    messages: usize,
    changed: usize,
    asked: usize,
    /// Decisions per stage, without those of a model.
    stages: BTreeMap<&'static str, usize>,
    /// Changed decisions per pair of agents.
    pairs: BTreeMap<(String, String), usize>,
}

/// Prints a row for each message that another agent would answer or that needs a model, and the
/// totals.
pub(crate) async fn run(
    config: &ServiceConfig,
    arguments: &RouteReplayArguments,
) -> anyhow::Result<()> {
    let (url, organization) = (arguments.url.as_deref(), arguments.organization.as_deref());
    let client = AdminClient::connect(config, url, organization, &arguments.team).await?;
    let document = arguments
        .file
        .as_ref()
        .map(apply::read_document)
        .transpose()?;
    let (team_id, team) =
        proposed_team::read_team(&client, &arguments.team, document.as_ref()).await?;
    let agents = client.list_agents().await?;
    let name = |id: &AgentId| {
        agents
            .iter()
            .find(|agent| agent.id == *id)
            .map_or_else(|| id.to_string(), |agent| agent.slug.clone())
    };
    let replay = RoutingReplay::new(&config.workers).context("cannot create the router")?;
    let (mut totals, mut out) = (ReplayTotals::default(), std::io::stdout().lock());
    for conversation in client
        .list_conversations(&team_id, arguments.since.as_deref(), arguments.limit)
        .await?
    {
        let messages = client.list_messages(&conversation).await?;
        for replayed in replay.conversation(&team, &messages).await {
            let (from, to) = (
                name(&replayed.from),
                replayed
                    .to
                    .as_ref()
                    .map_or_else(|| "no agent".to_owned(), &name),
            );
            if replayed.differs() {
                writeln!(out, "{}", format_row(&replayed, &from, &to))?;
                if arguments.show_text {
                    writeln!(
                        out,
                        "    {}",
                        printable_text(&messages, &replayed.message_id)
                    )?;
                }
            }
            totals.add(&replayed, from, to);
        }
    }
    write!(out, "{totals}")?;
    Ok(())
}

fn format_row(replayed: &ReplayedDecision, from: &str, to: &str) -> String {
    let ReplayedDecision {
        message_id, reason, ..
    } = replayed;
    if replayed.asks_model {
        return format!(
            "{message_id} {from}: a model would be asked; the guess without one is {to}: {reason}"
        );
    }
    format!("{message_id} {from} -> {to}: {reason}")
}

/// Returns the text of a message on one line, without control characters: visitors wrote it.
fn printable_text(messages: &[RecordedMessage], id: &str) -> String {
    let message = messages.iter().find(|message| message.id == id);
    let text = message.map_or("", |message| message.text.as_str());
    text.chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect()
}

impl ReplayTotals {
    fn add(&mut self, replayed: &ReplayedDecision, from: String, to: String) {
        self.messages += 1;
        if replayed.asks_model {
            self.asked += 1;
            return;
        }
        *self.stages.entry(replayed.stage.name()).or_default() += 1;
        if replayed.changes() {
            self.changed += 1;
            *self.pairs.entry((from, to)).or_default() += 1;
        }
    }
}

impl std::fmt::Display for ReplayTotals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "messages: {}, would change: {}, a model would be asked: {}",
            self.messages, self.changed, self.asked
        )?;
        let decided_by =
            |stage: RoutingStage| self.stages.get(stage.name()).copied().unwrap_or_default();
        let [words, meaning, continuity] = [
            RoutingStage::Words,
            RoutingStage::Meaning,
            RoutingStage::Continuity,
        ]
        .map(decided_by);
        write!(
            f,
            "decided by words: {words}, by meaning: {meaning}, by continuity: {continuity}"
        )?;
        match decided_by(RoutingStage::Strategy) {
            0 => writeln!(f)?,
            unanswered => writeln!(f, ", without an available member: {unanswered}")?,
        }
        for ((from, to), count) in &self.pairs {
            writeln!(f, "  {from} -> {to}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::time::Timestamp;

    use super::*;

    fn replayed(from: &str, to: &str, stage: RoutingStage, asks_model: bool) -> ReplayedDecision {
        let agent = |digit: &str| format!("agt_{}", digit.repeat(26)).parse().unwrap();
        let (from, to) = (agent(from), Some(agent(to)));
        ReplayedDecision {
            message_id: "msg".into(),
            from,
            to,
            reason: "why".into(),
            stage,
            asks_model,
        }
    }

    #[test]
    fn decisions_of_a_model_are_counted_separately() {
        let mut totals = ReplayTotals::default();
        for (from, to, stage, asks_model) in [
            ("1", "1", RoutingStage::Continuity, false),
            ("1", "2", RoutingStage::Words, true),
            ("1", "2", RoutingStage::Words, false),
            ("2", "2", RoutingStage::Meaning, false),
            ("2", "2", RoutingStage::Meaning, false),
        ] {
            totals.add(
                &replayed(from, to, stage, asks_model),
                from.into(),
                to.into(),
            );
        }
        let said = "messages: 5, would change: 1, a model would be asked: 1\n\
            decided by words: 1, by meaning: 2, by continuity: 1\n  1 -> 2: 1\n";
        assert_eq!(totals.to_string(), said);
        totals.add(
            &replayed("1", "1", RoutingStage::Strategy, false),
            "1".into(),
            "1".into(),
        );
        assert!(
            totals
                .to_string()
                .contains("by continuity: 1, without an available member: 1\n"),
            "{totals}"
        );
        let guess = format_row(&replayed("1", "2", RoutingStage::Words, true), "one", "two");
        assert_eq!(
            guess,
            "msg one: a model would be asked; the guess without one is two: why"
        );
    }

    #[test]
    fn printed_text_has_no_control_characters() {
        let message = RecordedMessage {
            id: "m".into(),
            by: None,
            text: "red\u{1b}[31m\nline".into(),
            at: Timestamp::now(),
        };
        assert_eq!(printable_text(&[message], "m"), "red [31m line");
    }
}
