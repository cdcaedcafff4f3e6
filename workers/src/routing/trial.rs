//! Says who of a team would answer, for whoever edits the team. The decision is made by the code that routes visitors'
//! messages; it is not recorded, and takes nobody's turn.

use switchboard_backends::relay::Decision;
use switchboard_schemas::{
    team::{RoutingStrategy, Team},
    time::Timestamp,
    trial::{Chosen, TeamTrial, TeamTrialJob, TeamVerdict},
};

use super::{
    Routing, RoutingError,
    candidates::Candidates,
    chance,
    choice::{self, Choice},
    past::{Line, Past},
};
use crate::{job_loop::JobEnd, trial};

impl Routing {
    /// Answers once; a trial that is lost is asked for again by hand, and keeps no worker busy meanwhile.
    pub(super) async fn try_out(&self, job: &TeamTrialJob) -> JobEnd {
        let verdict = match trial::kept::<TeamTrial>(&self.backends, &job.trial_id).await {
            Some(trial) if trial.team.org_id == job.org_id => self.verdict(job, trial).await,
            _ => Ok(TeamVerdict::Forgotten),
        };
        let told = match verdict {
            Ok(verdict) => {
                self.backends
                    .relay
                    .answer_trial(&job.reply_to, &job.trial_id, verdict)
                    .await
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
        job: &TeamTrialJob,
        trial: TeamTrial,
    ) -> Result<TeamVerdict, RoutingError> {
        let TeamTrial {
            team,
            message,
            past,
        } = trial;
        let candidates = Candidates::of(&self.catalog, &team).await?;
        let said: Vec<Line> = trial::messages(&job.trial_id.conversation(), past)
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
                choice::by_number(&candidates, chance(&job.trial_id), why_anybody(&team))
            }
            Choice::Made(decision) => Some(decision),
            Choice::Nobody => None,
        };
        Ok(decision.map_or(TeamVerdict::Nobody, |decision| {
            TeamVerdict::Chosen(Box::new(chosen(decision)))
        }))
    }
}

fn chosen(decision: Decision) -> Chosen {
    let Decision {
        agent_id,
        reason,
        facts,
    } = decision;
    Chosen {
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
