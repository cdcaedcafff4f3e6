//! Routing of playground runs: decides which member of an edited team would answer, with the code
//! that routes visitors' messages. The decision is not recorded, and the rotation does not advance.

use switchboard_backends::relay::RoutingDecision;
use switchboard_schemas::{
    playground::{PlaygroundRouting, RoutedAgent, TeamPlaygroundJob, TeamPlaygroundRun},
    reply_event::IngressEnvelope,
    team::{RoutingStrategy, Team},
    time::Timestamp,
};

use super::{
    RoutingError, RoutingHandler,
    candidates::RoutingCandidates,
    choice::{self, RoutingStep},
    message_hash,
    past::{ConversationPast, PastMessage},
};
use crate::{job_loop::JobEnd, playground_history};

impl RoutingHandler {
    /// Answers a playground run once. A lost run is not retried; its editor starts it again.
    pub(super) async fn answer_playground_run(&self, job: &TeamPlaygroundJob) -> JobEnd {
        let verdict =
            match playground_history::load_run::<TeamPlaygroundRun>(&self.backends, &job.run_id)
                .await
            {
                Some(run) if run.team.org_id == job.org_id => self.verdict(job, run).await,
                _ => Ok(PlaygroundRouting::Expired),
            };
        let told = match verdict {
            Ok(verdict) => {
                let envelope = IngressEnvelope::Playground(job.run_id.clone(), verdict);
                self.backends.relay.push(&job.reply_to, &envelope).await
            }
            Err(error) => {
                tracing::warn!(%error, "playground routing failed");
                return JobEnd::Finished;
            }
        };
        if let Err(error) = told {
            tracing::warn!(%error, "playground answer not delivered");
        }
        JobEnd::Finished
    }

    async fn verdict(
        &self,
        job: &TeamPlaygroundJob,
        run: TeamPlaygroundRun,
    ) -> Result<PlaygroundRouting, RoutingError> {
        let TeamPlaygroundRun {
            team,
            message,
            past,
        } = run;
        let candidates = RoutingCandidates::load(&self.catalog, &team).await?;
        let said: Vec<PastMessage> =
            playground_history::to_messages(&job.run_id.conversation(), past)
                .iter()
                .map(PastMessage::from_message)
                .collect();
        let past = ConversationPast::from_messages(&said, Timestamp::now());
        let decision = match choice::choose_agent(team.routing, &candidates, past.last.as_ref()) {
            RoutingStep::ByIntent(current) => {
                self.decide_by_intent(&message, &candidates, current, &past)
                    .await?
            }
            RoutingStep::RoundRobin | RoutingStep::Random => choice::member_by_number(
                &candidates,
                message_hash(&job.run_id),
                reason_without_turn(&team),
            ),
            RoutingStep::Decided(decision) => Some(decision),
            RoutingStep::NoAgent => None,
        };
        Ok(decision.map_or(PlaygroundRouting::NoAgent, |decision| {
            PlaygroundRouting::Agent(Box::new(routed_agent(decision)))
        }))
    }
}

fn routed_agent(decision: RoutingDecision) -> RoutedAgent {
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

fn reason_without_turn(team: &Team) -> &'static str {
    match team.routing {
        RoutingStrategy::RoundRobin => {
            "new conversations go to each member in turn; playground runs do not count"
        }
        RoutingStrategy::Random | RoutingStrategy::Intent => "any member",
    }
}
