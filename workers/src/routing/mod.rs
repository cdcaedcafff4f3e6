//! Messages to teams (step 6 of the path): chooses the agent and hands the turn on to it.
//!
//! The decision travels with the job that is published before this record is settled; a repeat makes the same decision
//! while the team is unchanged, and the claim of the reply drops whatever comes twice.

mod choice;
mod no_route;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use switchboard_backends::{
    Backends,
    bus::{BusError, IncomingRecord, OutgoingRecord},
    catalog::cache::CatalogCache,
    relay::RelayError,
    store::StoreError,
};
use switchboard_schemas::{
    agent::Agent,
    chat_job::ChatJob,
    inference_job::{AnswerJob, ConversationJob, Routed},
    team::Team,
    topics::Topic,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::choice::{Candidate, Choice};
use crate::{
    WorkerContext,
    config::WorkersConfig,
    dead_letter::Cause,
    job_loop::{
        Handler, JobEnd, Source,
        dispatcher::{LaneKey, LaneKind},
    },
    trace,
};

/// Pause before a decision is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The routing role.
pub(crate) struct Routing {
    backends: Backends,
    catalog: CatalogCache,
    config: WorkersConfig,
}

#[derive(Debug, thiserror::Error)]
enum RoutingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Relay(#[from] RelayError),
}

impl Routing {
    pub(crate) fn new(ctx: WorkerContext) -> Self {
        Self { backends: ctx.backends, catalog: ctx.catalog, config: ctx.config }
    }

    async fn route(&self, job: &ChatJob) -> Result<JobEnd, RoutingError> {
        let team = self.catalog.team(&job.team_id).await?.filter(|team| team.org_id == job.turn.org_id);
        let choice = match team {
            Some(team) => choice::choose(&self.candidates(&team).await?),
            None => None,
        };
        let Some(choice) = choice else {
            return Ok(no_route::fail(&self.backends, job).await?.unwrap_or_else(|| {
                let reason = "the team is gone or has nobody".to_owned();
                JobEnd::Dead(Cause { class: "no-route", reason, attempts: 1 })
            }));
        };
        self.hand_on(job, choice).await?;
        Ok(JobEnd::Finished)
    }

    /// The default agent first, then the members as they are listed.
    async fn candidates(&self, team: &Team) -> Result<Vec<Candidate>, StoreError> {
        let named = team.default_agent.iter().chain(team.members.iter().map(|member| &member.agent));
        let mut candidates = Vec::new();
        for (place, id) in named.enumerate() {
            let agent = self.catalog.agent(id).await?;
            let settings =
                agent.as_deref().filter(|agent: &&Agent| agent.org_id == team.org_id).map(|agent| &agent.settings);
            candidates.push(Candidate {
                agent_id: id.clone(),
                is_default: place == 0 && team.default_agent.is_some(),
                status: settings.map(|settings| settings.status),
                public: settings.is_some_and(|settings| settings.public),
            });
        }
        Ok(candidates)
    }

    async fn hand_on(&self, job: &ChatJob, choice: Choice) -> Result<(), BusError> {
        let routed = Routed { team_id: job.team_id.clone(), reason: choice.reason.to_owned() };
        let answer =
            AnswerJob { agent_id: choice.agent_id, routed: Some(routed), turn: job.turn.clone(), attempt_min: 1 };
        let answer = ConversationJob::Answer(Box::new(answer));
        let payload = versioned::encode(&answer).map_err(|error| BusError::Fatal(error.to_string()))?;
        let record = OutgoingRecord {
            topic: Topic::Jobs,
            key: job.turn.conversation_id.as_str().to_owned(),
            payload: payload.into(),
            headers: trace::headers(),
        };
        self.backends.bus.publish(record, self.config.publish_timeout()).await
    }
}

#[async_trait]
impl Handler for Routing {
    type Job = std::sync::Arc<ChatJob>;

    const SOURCES: &'static [Source] = &[(Topic::Route, "routing")];

    fn read(&self, record: &IncomingRecord) -> Result<(LaneKey, Self::Job), DecodeError> {
        let job: ChatJob = versioned::decode(&record.payload)?;
        let key = job.turn.conversation_id.as_str().to_owned();
        Ok((LaneKey { key, kind: LaneKind::Turns }, job.into()))
    }

    async fn run(&self, job: Self::Job, handover: &CancellationToken) -> JobEnd {
        let span = tracing::info_span!("route", message.id = %job.turn.message_id, team.id = %job.team_id,
            conversation.id = %job.turn.conversation_id, request.id = %job.turn.request_id);
        let routed = async {
            tokio::select! {
                biased;
                () = handover.cancelled() => JobEnd::Open(Duration::ZERO),
                end = self.route(&job) => end.unwrap_or_else(|error| {
                    tracing::warn!(%error, "could not route, trying again");
                    JobEnd::Open(RETRY_DELAY)
                }),
            }
        };
        routed.instrument(span).await
    }
}
