//! Messages to teams (step 6 of the path): chooses the agent and hands the turn on to it.
//!
//! Messages of a conversation share a lane, so that each is routed after the one before it, whose decision it may have to
//! continue. A decision is recorded before it is acted upon: [`candidates`] says who can answer, [`past`] who did, and
//! [`choice`] makes it, or [`intent`] where members are compared with the message. [`trial`] makes one that is for show.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod intent;
mod no_route;
pub(crate) mod past;
#[cfg(test)]
mod tests;
mod trial;

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
    relay::{RecordedDecisions, RelayError, RoutingDecision},
    store::StoreError,
};
use switchboard_schemas::{
    conversation_job::{ConversationJob, ReplyJob, TeamRouting},
    ids::MessageId,
    routing::RoutingStage,
    routing_job::RoutingJob,
    routing_job::TeamMessageJob,
    team::RoutingStrategy,
    time::Timestamp,
    topics::Topic,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::{
    candidates::Candidates,
    choice::Choice,
    intent::{Current, Intent, Question},
    past::{Past, SWITCHES_MAX},
};
use crate::{
    WorkerContext,
    config::WorkersConfig,
    dead_letter::DeadLetterCause,
    job_loop::{
        JobEnd, JobHandler, TopicSource,
        dispatcher::{LaneKey, LaneKind},
    },
    metrics::WorkerMetrics,
    model::{Endpoint, openai::ModelClient, providers::ProviderResolver},
    trace,
};

/// Pause before a decision is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The routing role.
pub(crate) struct Routing {
    backends: Backends,
    catalog: CatalogCache,
    providers: ProviderResolver,
    intent: Intent,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
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
    /// Errors: the model client cannot be built, or the embedding model not be loaded.
    pub(crate) fn new(ctx: WorkerContext) -> anyhow::Result<Self> {
        Ok(Self {
            intent: Intent::new(ModelClient::new(&ctx.config)?, &ctx.config)?,
            providers: ProviderResolver {
                catalog: ctx.catalog.clone(),
                vault: ctx.vault,
                installed: ctx.default_provider,
            },
            backends: ctx.backends,
            catalog: ctx.catalog,
            config: ctx.config,
            metrics: ctx.metrics,
        })
    }

    /// Begins what the first choice by intent would else wait for.
    pub(crate) async fn warm_up(&self) {
        self.intent.warm_up().await;
    }

    async fn route(&self, job: &TeamMessageJob) -> Result<JobEnd, RoutingError> {
        let message = &job.turn.message_id;
        let known = self
            .backends
            .relay
            .recorded_decisions(message)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "routing does not know what was decided before");
                RecordedDecisions::default()
            });
        let decision = match known.own {
            Some(decision) => Some(decision),
            None => self.decide(job, known.last).await?,
        };
        let Some(decision) = decision else {
            return Ok(no_route::fail(&self.backends, job)
                .await?
                .unwrap_or_else(|| {
                    let reason = "the team is gone or has nobody".to_owned();
                    JobEnd::DeadLetter(DeadLetterCause {
                        class: "no-route",
                        reason,
                        attempts: 1,
                    })
                }));
        };
        self.hand_on(job, decision).await?;
        Ok(JobEnd::Finished)
    }

    /// Decides, and records it: a repeat reads it back. Without the relay a repeat decides the same again while the team is
    /// unchanged, and the claim of the reply drops whatever comes twice.
    async fn decide(
        &self,
        job: &TeamMessageJob,
        last: Option<RoutingDecision>,
    ) -> Result<Option<RoutingDecision>, RoutingError> {
        let team = self
            .catalog
            .team(&job.team_id)
            .await?
            .filter(|team| team.org_id == job.turn.org_id);
        let Some(team) = team else { return Ok(None) };
        let candidates = Candidates::of(&self.catalog, &team).await?;
        let last = last.map(|decision| decision.agent_id);
        let past = self.past(job, team.routing, last.is_some()).await?;
        let last = last.or_else(|| past.last.clone());
        let made = match choice::choose(team.routing, &candidates, last.as_ref()) {
            Choice::Made(decision) => Some(decision),
            Choice::ByIntent(current) => {
                self.by_intent(&job.turn.content, &candidates, current, &past)
                    .await?
            }
            Choice::NextInTurn => self.in_turn(job, &candidates).await,
            Choice::Any => {
                choice::by_number(&candidates, chance(&job.turn.message_id), "any member")
            }
            Choice::Nobody => None,
        };
        let Some(made) = made else { return Ok(None) };
        self.measure(&made);
        Ok(Some(
            self.backends
                .relay
                .record_decision(&job.turn.message_id, &made)
                .await
                .unwrap_or(made),
        ))
    }

    /// The end of the conversation. Only who answered last must be known; the relay remembers it mostly.
    async fn past(
        &self,
        job: &TeamMessageJob,
        strategy: RoutingStrategy,
        knows_last: bool,
    ) -> Result<Past, StoreError> {
        if knows_last && strategy != RoutingStrategy::Intent {
            return Ok(Past::default());
        }
        match Past::read(&*self.backends.store, &job.turn).await {
            Err(error) if knows_last => {
                tracing::warn!(%error, "routing does not know what was said before");
                Ok(Past::default())
            }
            read => read,
        }
    }

    fn measure(&self, made: &RoutingDecision) {
        let Some(facts) = &made.facts else { return };
        self.metrics
            .routed
            .with_label_values(&[facts.stage.name()])
            .inc();
        if facts.stage != RoutingStage::Strategy {
            self.metrics
                .routing
                .observe(Duration::from_millis(facts.took_ms).as_secs_f64());
        }
    }

    async fn by_intent(
        &self,
        message: &str,
        candidates: &Candidates,
        current: Current,
        past: &Past,
    ) -> Result<Option<RoutingDecision>, StoreError> {
        let question = Question {
            message,
            members: &candidates.members,
            current,
            recent: &past.recent,
            agent_said: past.agent_said(),
            may_change: past.switches < SWITCHES_MAX,
            embedding: self.embedding(candidates).await?,
            model: self.model(candidates).await?,
        };
        Ok(choice::recorded(
            candidates,
            self.intent.decide(&question).await,
        ))
    }

    /// The first embedding model that an agent of the team brings along; the default agent is asked first.
    async fn embedding(&self, candidates: &Candidates) -> Result<Option<Endpoint>, StoreError> {
        for agent in &candidates.agents {
            if let Some(endpoint) = self.providers.embedding_endpoint(agent).await? {
                return Ok(Some(endpoint));
            }
        }
        Ok(None)
    }

    /// The default agent's model, else the first member's.
    async fn model(&self, candidates: &Candidates) -> Result<Option<Endpoint>, StoreError> {
        let Some(agent) = candidates.agents.first() else {
            return Ok(None);
        };
        let endpoints = self.providers.endpoints_of(agent).await?;
        // A process that only routes has no endpoint where the demo model would answer.
        Ok(endpoints
            .into_iter()
            .find(|endpoint| !endpoint.base_url.is_empty()))
    }

    /// The member whose turn it is; the relay records it in the step that counts it.
    async fn in_turn(
        &self,
        job: &TeamMessageJob,
        candidates: &Candidates,
    ) -> Option<RoutingDecision> {
        let message = &job.turn.message_id;
        let offer = choice::offer(candidates, &job.team_id);
        self.backends
            .relay
            .record_round_robin(message, &offer)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "the rotation is away, any member answers");
                choice::by_number(candidates, chance(message), &offer.reason)
            })
    }

    async fn hand_on(
        &self,
        job: &TeamMessageJob,
        decision: RoutingDecision,
    ) -> Result<(), BusError> {
        let routed = TeamRouting {
            team_id: job.team_id.clone(),
            reason: decision.reason,
            facts: decision.facts,
            routed_at: Some(Timestamp::now()),
        };
        let answer = ReplyJob {
            agent_id: decision.agent_id,
            routed: Some(routed),
            turn: job.turn.clone(),
            attempt_min: 1,
        };
        let answer = ConversationJob::Reply(Box::new(answer));
        let payload =
            versioned::encode(&answer).map_err(|error| BusError::Fatal(error.to_string()))?;
        let record = OutgoingRecord {
            topic: Topic::Jobs,
            key: job.turn.conversation_id.as_str().to_owned(),
            payload: payload.into(),
            headers: trace::trace_headers(),
        };
        self.backends
            .bus
            .publish(record, self.config.publish_timeout())
            .await
    }
}

#[async_trait]
impl JobHandler for Routing {
    type Job = Arc<RoutingJob>;

    const SOURCES: &'static [TopicSource] = &[(Topic::Route, "routing")];

    fn decode_job(&self, record: &IncomingRecord) -> Result<(LaneKey, Self::Job), DecodeError> {
        let job: RoutingJob = versioned::decode(&record.payload)?;
        let key = match &job {
            RoutingJob::Message(job) => job.turn.conversation_id.as_str().to_owned(),
            RoutingJob::Playground(job) => job.run_id.as_str().to_owned(),
        };
        Ok((
            LaneKey {
                key,
                kind: LaneKind::Turns,
            },
            job.into(),
        ))
    }

    async fn run_job(&self, job: Self::Job, handover: &CancellationToken) -> JobEnd {
        let job = match &*job {
            RoutingJob::Message(job) => job,
            RoutingJob::Playground(job) => {
                let span = tracing::info_span!("try", request.id = %job.request_id);
                return Box::pin(self.try_out(job)).instrument(span).await;
            }
        };
        let span = tracing::info_span!("route", message.id = %job.turn.message_id, team.id = %job.team_id,
            conversation.id = %job.turn.conversation_id, request.id = %job.turn.request_id,
            trace.id = %trace::current_trace_id());
        let routed = async {
            tokio::select! {
                biased;
                () = handover.cancelled() => JobEnd::RetryAfter(Duration::ZERO),
                end = self.route(job) => end.unwrap_or_else(|error| {
                    tracing::warn!(%error, "could not route, trying again");
                    JobEnd::RetryAfter(RETRY_DELAY)
                }),
            }
        };
        routed.instrument(span).await
    }
}

/// A number that is random over messages and the same for each repeat of one.
fn chance(message: &MessageId) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.as_str().hash(&mut hasher);
    hasher.finish()
}
