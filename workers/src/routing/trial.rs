//! Says who of a team would answer, for whoever edits the team. The decision is made by the code that routes visitors'
//! messages; it is not recorded, and takes nobody's turn.

use switchboard_backends::relay::RoutingDecision;
use switchboard_schemas::{
    playground::{PlaygroundRouting, RoutedAgent, TeamPlaygroundJob, TeamPlaygroundRun},
    reply_event::IngressEnvelope,
    team::{RoutingStrategy, Team},
    time::Timestamp,
};

use super::{
    Routing, RoutingError,
    candidates::Candidates,
    chance,
    choice::{self, Choice},
    past::{Line, Past},
};
use crate::{job_loop::JobEnd, playground_history};

impl Routing {
    /// Answers once; a trial that is lost is asked for again by hand, and keeps no worker busy meanwhile.
    pub(super) async fn try_out(&self, job: &TeamPlaygroundJob) -> JobEnd {
        let verdict =
            match playground_history::load_run::<TeamPlaygroundRun>(&self.backends, &job.run_id)
                .await
            {
                Some(trial) if trial.team.org_id == job.org_id => self.verdict(job, trial).await,
                _ => Ok(PlaygroundRouting::Expired),
            };
        let told = match verdict {
            Ok(verdict) => {
                let envelope = IngressEnvelope::Playground(job.run_id.clone(), verdict);
                self.backends.relay.push(&job.reply_to, &envelope).await
            }
            Err(error) => {
                tracing::warn!(%error, "could not decide who would answer");
                return JobEnd::Finished;
            }
        };
        if let Err(error) = told {
            tracing::warn!(%error, "could not say who would answer");
        }
        JobEnd::Finished
    }

    async fn verdict(
        &self,
        job: &TeamPlaygroundJob,
        trial: TeamPlaygroundRun,
    ) -> Result<PlaygroundRouting, RoutingError> {
        let TeamPlaygroundRun {
            team,
            message,
            past,
        } = trial;
        let candidates = Candidates::of(&self.catalog, &team).await?;
        let said: Vec<Line> = playground_history::to_messages(&job.run_id.conversation(), past)
            .iter()
            .map(Line::of)
            .collect();
        let past = Past::of(&said, Timestamp::now());
        let decision = match choice::choose(team.routing, &candidates, past.last.as_ref()) {
            Choice::ByIntent(current) => {
                self.by_intent(&message, &candidates, current, &past)
                    .await?
            }
            Choice::NextInTurn | Choice::Any => {
                choice::by_number(&candidates, chance(&job.run_id), why_anybody(&team))
            }
            Choice::Made(decision) => Some(decision),
            Choice::Nobody => None,
        };
        Ok(decision.map_or(PlaygroundRouting::NoAgent, |decision| {
            PlaygroundRouting::Agent(Box::new(chosen(decision)))
        }))
    }
}

fn chosen(decision: RoutingDecision) -> RoutedAgent {
    let RoutingDecision {
        agent_id,
        reason,
        facts,
    } = decision;
    RoutedAgent {
        agent_id,
        reason,
        facts,
    }
}

fn why_anybody(team: &Team) -> &'static str {
    match team.routing {
        RoutingStrategy::RoundRobin => {
            "new conversations go to each member in turn; a trial takes no turn"
        }
        RoutingStrategy::Random | RoutingStrategy::Intent => "any member",
    }
}
