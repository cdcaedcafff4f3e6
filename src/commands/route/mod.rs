//! `switchboard route --team … --replay`: what a changed team would have done with the messages that it had.
//!
//! Everything is read through the admin API, so that it works beside a running service of either profile and reads what the
//! token may read. Rows name messages by id: what visitors wrote is printed only where that is asked for.

mod service;
mod tried_team;

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use anyhow::Context;
use clap::Args;
use switchboard_schemas::{ids::AgentId, routing::RoutingStage};
use switchboard_workers::replay::{Recorded, Replay, Replayed};

use self::service::Service;
use crate::{commands::apply, config::Config};

/// Which team, and what is tried on it.
#[derive(Args)]
pub(crate) struct RouteArguments {
    /// Slug or id of the organization; optional if only one has a team of that name.
    #[arg(long)]
    organization: Option<String>,
    /// Slug or id of the team.
    #[arg(long)]
    team: String,
    /// Decide recorded messages again and print differences; changes nothing.
    #[arg(long, required = true)]
    replay: bool,
    /// Document with the changed team or agents (`-`: standard input); defaults to the current state.
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

/// Counts of a replay.
#[derive(Default)]
struct Counts {
    messages: usize,
    changed: usize,
    asked: usize,
    /// What decided the others.
    stages: BTreeMap<&'static str, usize>,
    pairs: BTreeMap<(String, String), usize>,
}

/// Prints a row for each message that somebody else would answer, or that only a model would decide so, and counts.
pub(crate) async fn run(config: &Config, arguments: &RouteArguments) -> anyhow::Result<()> {
    let (url, organization) = (arguments.url.as_deref(), arguments.organization.as_deref());
    let service = Service::connect(config, url, organization, &arguments.team).await?;
    let document = arguments
        .file
        .as_ref()
        .map(apply::read_document)
        .transpose()?;
    let (team_id, team) = tried_team::read(&service, &arguments.team, document.as_ref()).await?;
    let agents = service.agents().await?;
    let name = |id: &AgentId| {
        agents
            .iter()
            .find(|agent| agent.id == *id)
            .map_or_else(|| id.to_string(), |agent| agent.slug.clone())
    };
    let replay = Replay::new(&config.workers).context("the router cannot start")?;
    let (mut counts, mut out) = (Counts::default(), std::io::stdout().lock());
    for conversation in service
        .conversations(&team_id, arguments.since.as_deref(), arguments.limit)
        .await?
    {
        let messages = service.messages(&conversation).await?;
        for replayed in replay.conversation(&team, &messages).await {
            let (from, to) = (
                name(&replayed.from),
                replayed
                    .to
                    .as_ref()
                    .map_or_else(|| "nobody".to_owned(), &name),
            );
            if replayed.differs() {
                writeln!(out, "{}", row(&replayed, &from, &to))?;
                if arguments.show_text {
                    writeln!(out, "    {}", text(&messages, &replayed.message_id))?;
                }
            }
            counts.add(&replayed, from, to);
        }
    }
    write!(out, "{counts}")?;
    Ok(())
}

fn row(replayed: &Replayed, from: &str, to: &str) -> String {
    let Replayed {
        message_id, reason, ..
    } = replayed;
    if replayed.asks_model {
        return format!(
            "{message_id} {from}: a model would be asked; the guess without one is {to}: {reason}"
        );
    }
    format!("{message_id} {from} -> {to}: {reason}")
}

/// On one line, and without what a terminal would obey: it is a stranger's.
fn text(messages: &[Recorded], id: &str) -> String {
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

impl Counts {
    fn add(&mut self, replayed: &Replayed, from: String, to: String) {
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

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "messages: {}, would change: {}, a model would be asked: {}",
            self.messages, self.changed, self.asked
        )?;
        let by = |stage: RoutingStage| self.stages.get(stage.name()).copied().unwrap_or_default();
        let [words, meaning, continuity] = [
            RoutingStage::Words,
            RoutingStage::Meaning,
            RoutingStage::Continuity,
        ]
        .map(by);
        write!(
            f,
            "decided by words: {words}, by meaning: {meaning}, by continuity: {continuity}"
        )?;
        match by(RoutingStage::Strategy) {
            0 => writeln!(f)?,
            nobody => writeln!(f, ", without a member that can answer: {nobody}")?,
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

    fn replayed(from: &str, to: &str, stage: RoutingStage, asks_model: bool) -> Replayed {
        let agent = |digit: &str| format!("agt_{}", digit.repeat(26)).parse().unwrap();
        let (from, to) = (agent(from), Some(agent(to)));
        Replayed {
            message_id: "msg".into(),
            from,
            to,
            reason: "why".into(),
            stage,
            asks_model,
        }
    }

    #[test]
    fn what_only_a_model_would_decide_is_counted_apart_and_is_no_change() {
        let mut counts = Counts::default();
        for (from, to, stage, asks_model) in [
            ("1", "1", RoutingStage::Continuity, false),
            ("1", "2", RoutingStage::Words, true),
            ("1", "2", RoutingStage::Words, false),
            ("2", "2", RoutingStage::Meaning, false),
            ("2", "2", RoutingStage::Meaning, false),
        ] {
            counts.add(
                &replayed(from, to, stage, asks_model),
                from.into(),
                to.into(),
            );
        }
        let said = "messages: 5, would change: 1, a model would be asked: 1\n\
            decided by words: 1, by meaning: 2, by continuity: 1\n  1 -> 2: 1\n";
        assert_eq!(counts.to_string(), said);
        counts.add(
            &replayed("1", "1", RoutingStage::Strategy, false),
            "1".into(),
            "1".into(),
        );
        assert!(
            counts
                .to_string()
                .contains("by continuity: 1, without a member that can answer: 1\n"),
            "{counts}"
        );
        let guess = row(&replayed("1", "2", RoutingStage::Words, true), "one", "two");
        assert_eq!(
            guess,
            "msg one: a model would be asked; the guess without one is two: why"
        );
    }

    #[test]
    fn what_a_visitor_wrote_is_one_line_that_no_terminal_obeys() {
        let message = Recorded {
            id: "m".into(),
            by: None,
            text: "red\u{1b}[31m\nline".into(),
            at: Timestamp::now(),
        };
        assert_eq!(text(&[message], "m"), "red [31m line");
    }
}
