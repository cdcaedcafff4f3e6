//! Messages to teams (step 6 of the path): chooses the agent and hands the turn on to it.
//!
//! Messages of a conversation share a lane, so that each is routed after the one before it, whose decision it may have to
//! continue. A decision is recorded before it is acted upon; [`choice`] makes it, from [`lexical`] scores of [`words`].

mod choice;
mod lexical;
mod no_route;
#[cfg(test)]
mod tests;
mod words;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use switchboard_backends::{
    Backends,
    bus::{BusError, IncomingRecord, OutgoingRecord},
    catalog::cache::CatalogCache,
    relay::{Decision, Decisions, RelayError},
    store::StoreError,
};
use switchboard_schemas::{
    agent::{Agent, Status},
    chat_job::ChatJob,
    conversation::Author,
    ids::AgentId,
    inference_job::{AnswerJob, ConversationJob, Routed},
    team::Team,
    topics::Topic,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::choice::{Candidate, Candidates, Choice};
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
/// Messages in which the last answer is looked for; turns that failed have none.
const LOOK_BACK_MESSAGES: u32 = 20;

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
        let message = &job.turn.message_id;
        let known = self.backends.relay.decisions(message).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "routing does not know what was decided before");
            Decisions::default()
        });
        let decision = match known.own {
            Some(decision) => Some(decision),
            None => self.decide(job, known.last).await?,
        };
        let Some(decision) = decision else {
            return Ok(no_route::fail(&self.backends, job).await?.unwrap_or_else(|| {
                let reason = "the team is gone or has nobody".to_owned();
                JobEnd::Dead(Cause { class: "no-route", reason, attempts: 1 })
            }));
        };
        self.hand_on(job, decision).await?;
        Ok(JobEnd::Finished)
    }

    /// Decides, and records it: a repeat reads it back. Without the relay a repeat decides the same again while the team is
    /// unchanged, and the claim of the reply drops whatever comes twice.
    async fn decide(&self, job: &ChatJob, last: Option<Decision>) -> Result<Option<Decision>, RoutingError> {
        let team = self.catalog.team(&job.team_id).await?.filter(|team| team.org_id == job.turn.org_id);
        let Some(team) = team else { return Ok(None) };
        let candidates = self.candidates(&team).await?;
        let last = match last {
            Some(decision) => Some(decision.agent_id),
            None => self.last_agent(job).await?,
        };
        let made = match choice::choose(team.routing, &candidates, last.as_ref(), &job.turn.content) {
            Choice::Made(decision) => Some(decision),
            Choice::NextInTurn => choice::by_number(&candidates, self.turn_number(job).await, "next in turn"),
            Choice::Any => choice::by_number(&candidates, chance(job), "any member"),
            Choice::Nobody => None,
        };
        let Some(made) = made else { return Ok(None) };
        Ok(Some(self.backends.relay.decide(&job.turn.message_id, &made).await.unwrap_or(made)))
    }

    /// Who answered last, where the relay does not remember it any more.
    async fn last_agent(&self, job: &ChatJob) -> Result<Option<AgentId>, StoreError> {
        let (store, turn) = (&self.backends.store, &job.turn);
        let conversation = store.conversation(&turn.org_id, &turn.conversation_id).await?;
        let count = conversation.map_or(0, |conversation| conversation.message_count);
        let from = count.saturating_sub(u64::from(LOOK_BACK_MESSAGES));
        let messages = store.messages(&turn.org_id, &turn.conversation_id, from, LOOK_BACK_MESSAGES).await?;
        Ok(messages.into_iter().rev().find_map(|message| match message.author {
            Author::Assistant(facts) => Some(facts.agent_id),
            Author::User => None,
        }))
    }

    async fn turn_number(&self, job: &ChatJob) -> u64 {
        let taken = self.backends.relay.take_turn(&job.team_id, &job.turn.message_id).await;
        taken.unwrap_or_else(|error| {
            tracing::warn!(%error, "the rotation is away, any member answers");
            chance(job)
        })
    }

    /// Members and default agent as far as they can answer. The default agent need not be public: the team is.
    async fn candidates(&self, team: &Team) -> Result<Candidates, StoreError> {
        let mut candidates = Candidates::default();
        for member in &team.members {
            let agent = self.active_agent(team, &member.agent).await?.filter(|agent| agent.settings.public);
            candidates.members.extend(agent.map(|agent| Candidate {
                agent_id: agent.id.clone(),
                name: agent.name.clone(),
                description: agent.settings.description.clone(),
                specialization: member.specialization.clone(),
            }));
        }
        if let Some(id) = &team.default_agent {
            candidates.default_agent = self.active_agent(team, id).await?.map(|agent| agent.id.clone());
        }
        Ok(candidates)
    }

    async fn active_agent(&self, team: &Team, id: &AgentId) -> Result<Option<Arc<Agent>>, StoreError> {
        let agent = self.catalog.agent(id).await?;
        Ok(agent.filter(|agent| agent.org_id == team.org_id && agent.settings.status == Status::Active))
    }

    async fn hand_on(&self, job: &ChatJob, decision: Decision) -> Result<(), BusError> {
        let routed = Routed { team_id: job.team_id.clone(), reason: decision.reason };
        let answer =
            AnswerJob { agent_id: decision.agent_id, routed: Some(routed), turn: job.turn.clone(), attempt_min: 1 };
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
    type Job = Arc<ChatJob>;

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

/// A number that is random over messages and the same for each repeat of one.
fn chance(job: &ChatJob) -> u64 {
    let mut hasher = DefaultHasher::new();
    job.turn.message_id.as_str().hash(&mut hasher);
    hasher.finish()
}
