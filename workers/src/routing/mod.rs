//! The routing role: chooses an agent of a team and forwards the turn to it.
//!
//! Messages of a conversation share a lane, so that each is routed after the one before it, whose
//! decision it may have to continue. A decision is recorded before it is acted upon. [`candidates`]
//! lists the agents that can answer, [`past`] reads the end of the conversation, and [`choice`]
//! decides by strategy, or [`intent`] by comparing members with the message. [`playground`] answers
//! playground runs.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod intent;
mod no_route;
pub(crate) mod past;
mod playground;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use switchboard_backends::{
    Backends, StoreError,
    bus::{BusError, IncomingRecord, OutgoingRecord, trace::TraceContext},
    catalog::cache::CatalogCache,
    relay::{RecordedDecisions, RelayError, RoutingDecision},
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
    turn::Turn,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::{
    candidates::RoutingCandidates,
    choice::RoutingStep,
    intent::{ConversationHolder, IntentRequest, IntentRouter},
    past::{AGENT_CHANGES_MAX, ConversationPast},
};
use crate::{
    WorkerContext,
    config::WorkersConfig,
    dead_letter::DeadLetterCause,
    job_loop::{
        DecodedJob, JobEnd, JobHandler, TopicSource,
        dispatcher::{LaneKey, LaneKind},
    },
    metrics::WorkerMetrics,
    model::{ModelEndpoint, openai::ModelClient, providers::ProviderResolver},
};

/// Pause before a failed decision is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The job handler of the routing role.
pub(crate) struct RoutingHandler {
    backends: Backends,
    catalog: CatalogCache,
    providers: ProviderResolver,
    intent: IntentRouter,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
}

/// Stage in the metrics of messages that no agent can answer.
const NO_AGENT: &str = "none";

/// The result of routing a message.
enum RouteChoice {
    Agent(RoutingDecision),
    /// The team has no active agent.
    NoAgent,
    /// The team was deleted, or belongs to another organization.
    NoTeam,
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

impl RoutingHandler {
    /// Creates the handler. Fails if the model client cannot be built or the embedding model cannot
    /// be loaded.
    pub(crate) fn new(ctx: WorkerContext) -> anyhow::Result<Self> {
        Ok(Self {
            intent: IntentRouter::new(ModelClient::new(&ctx.config)?, &ctx.config)?,
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

    async fn route(&self, job: &TeamMessageJob) -> Result<JobEnd, RoutingError> {
        let message = &job.turn.message_id;
        let known = self
            .backends
            .relay
            .recorded_decisions(message)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "recorded decisions unavailable");
                RecordedDecisions::default()
            });
        let route = match known.own {
            Some(decision) => RouteChoice::Agent(decision),
            None => self.decide(job, known.last).await?,
        };
        let end = match route {
            RouteChoice::Agent(decision) => {
                self.forward(job, decision).await?;
                return Ok(JobEnd::Finished);
            }
            // Nothing is broken and nothing can be replayed: the team needs an active agent.
            RouteChoice::NoAgent => {
                tracing::warn!("no active agent in the team, the reply fails");
                self.metrics.routed.with_label_values(&[NO_AGENT]).inc();
                JobEnd::Finished
            }
            // It must leave no message anywhere.
            RouteChoice::NoTeam if self.catalog.is_removed(&job.turn.org_id).await? => {
                let ended = no_route::cancel(&self.backends, job).await?;
                return Ok(ended.unwrap_or(JobEnd::Finished));
            }
            RouteChoice::NoTeam => JobEnd::DeadLetter(DeadLetterCause {
                class: "no-route",
                reason: "the team is gone".to_owned(),
                attempts: 1,
            }),
        };
        Ok(no_route::fail(&self.backends, job).await?.unwrap_or(end))
    }

    /// Decides and records the decision, which a redelivered job reads back. If the relay is
    /// unavailable, a redelivered job decides the same again while the team is unchanged, and the
    /// claim of the reply lets only one job run.
    async fn decide(
        &self,
        job: &TeamMessageJob,
        last: Option<RoutingDecision>,
    ) -> Result<RouteChoice, RoutingError> {
        let team = self
            .catalog
            .team(&job.team_id)
            .await?
            .filter(|team| team.org_id == job.turn.org_id);
        let Some(team) = team else {
            return Ok(RouteChoice::NoTeam);
        };
        let candidates = RoutingCandidates::load(&self.catalog, &team).await?;
        let last = last.map(|decision| decision.agent_id);
        let past = self.past(job, team.routing, last.is_some()).await?;
        let last = last.or_else(|| past.last.clone());
        let made = match choice::choose_agent(team.routing, &candidates, last.as_ref()) {
            RoutingStep::Decided(decision) => Some(decision),
            RoutingStep::ByIntent(current) => {
                self.decide_by_intent(&routed_text(&job.turn), &candidates, current, &past)
                    .await?
            }
            RoutingStep::RoundRobin => self.decide_by_rotation(job, &candidates).await,
            RoutingStep::Random => choice::member_by_number(
                &candidates,
                message_hash(&job.turn.message_id),
                "any member",
            ),
            RoutingStep::NoAgent => None,
        };
        let Some(made) = made else {
            return Ok(RouteChoice::NoAgent);
        };
        self.record_metrics(&made);
        Ok(RouteChoice::Agent(
            self.backends
                .relay
                .record_decision(&job.turn.message_id, &made)
                .await
                .unwrap_or(made),
        ))
    }

    /// Returns the end of the conversation. Only the last agent must be known, and the relay
    /// usually has it.
    async fn past(
        &self,
        job: &TeamMessageJob,
        strategy: RoutingStrategy,
        knows_last: bool,
    ) -> Result<ConversationPast, StoreError> {
        if knows_last && strategy != RoutingStrategy::Intent {
            return Ok(ConversationPast::default());
        }
        match ConversationPast::read(&*self.backends.store, &job.turn).await {
            Err(error) if knows_last => {
                tracing::warn!(%error, "conversation unavailable, routing without it");
                Ok(ConversationPast::default())
            }
            read => read,
        }
    }

    fn record_metrics(&self, made: &RoutingDecision) {
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

    async fn decide_by_intent(
        &self,
        message: &str,
        candidates: &RoutingCandidates,
        current: ConversationHolder,
        past: &ConversationPast,
    ) -> Result<Option<RoutingDecision>, StoreError> {
        let question = IntentRequest {
            message,
            members: &candidates.members,
            current,
            recent: &past.recent,
            last_agent_text: past.last_agent_text(),
            may_change: past.agent_changes < AGENT_CHANGES_MAX,
            embedding: self.embedding_endpoint(candidates).await?,
            model: self.model_endpoint(candidates).await?,
        };
        Ok(choice::decision_by_intent(
            candidates,
            self.intent.decide(&question).await,
        ))
    }

    /// Returns the first embedding model of the team's agents, starting with the default agent.
    async fn embedding_endpoint(
        &self,
        candidates: &RoutingCandidates,
    ) -> Result<Option<ModelEndpoint>, StoreError> {
        for agent in &candidates.agents {
            if let Some(endpoint) = self.providers.embedding_endpoint(agent).await? {
                return Ok(Some(endpoint));
            }
        }
        Ok(None)
    }

    /// Returns the model of the default agent, or of the first member if there is none.
    async fn model_endpoint(
        &self,
        candidates: &RoutingCandidates,
    ) -> Result<Option<ModelEndpoint>, StoreError> {
        let Some(agent) = candidates.agents.first() else {
            return Ok(None);
        };
        let endpoints = self.providers.endpoints_of(agent).await?;
        // A process with only the routing role has no endpoint for the demo model.
        Ok(endpoints
            .into_iter()
            .find(|endpoint| !endpoint.base_url.is_empty()))
    }

    /// Returns the next member of the rotation; the relay advances it and records the decision in
    /// one step.
    async fn decide_by_rotation(
        &self,
        job: &TeamMessageJob,
        candidates: &RoutingCandidates,
    ) -> Option<RoutingDecision> {
        let message = &job.turn.message_id;
        let offer = choice::round_robin_offer(candidates, &job.team_id);
        self.backends
            .relay
            .record_round_robin(message, &offer)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "rotation unavailable, choosing any member");
                choice::member_by_number(candidates, message_hash(message), &offer.reason)
            })
    }

    async fn forward(
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
            headers: TraceContext::current().to_headers(),
        };
        self.backends
            .bus
            .publish(record, self.config.publish_timeout())
            .await
    }
}

#[async_trait]
impl JobHandler for RoutingHandler {
    type Job = Arc<RoutingJob>;

    const SOURCES: &'static [TopicSource] = &[(Topic::Route, "routing")];

    fn decode_job(&self, record: &IncomingRecord) -> Result<DecodedJob<Self::Job>, DecodeError> {
        let job: RoutingJob = versioned::decode(&record.payload)?;
        let (organization, key) = match &job {
            RoutingJob::Message(job) => (&job.turn.org_id, job.turn.conversation_id.as_str()),
            RoutingJob::Playground(job) => (&job.org_id, job.run_id.as_str()),
        };
        Ok(DecodedJob {
            lane: LaneKey {
                key: key.to_owned(),
                kind: LaneKind::Turns,
            },
            organization: organization.clone(),
            job: job.into(),
        })
    }

    async fn run_job(&self, job: Self::Job, handover: &CancellationToken) -> JobEnd {
        let job = match &*job {
            RoutingJob::Message(job) => job,
            RoutingJob::Playground(job) => {
                let span = tracing::info_span!("try", request.id = %job.request_id);
                return Box::pin(self.answer_playground_run(job))
                    .instrument(span)
                    .await;
            }
        };
        let span = tracing::info_span!("route", message.id = %job.turn.message_id, team.id = %job.team_id,
            conversation.id = %job.turn.conversation_id, request.id = %job.turn.request_id,
            trace.id = %TraceContext::current().trace_id());
        let routed = async {
            tokio::select! {
                biased;
                () = handover.cancelled() => JobEnd::RetryAfter(Duration::ZERO),
                end = self.route(job) => end.unwrap_or_else(|error| {
                    tracing::warn!(%error, "routing failed, retrying");
                    JobEnd::RetryAfter(RETRY_DELAY)
                }),
            }
        };
        routed.instrument(span).await
    }
}

/// Returns the text by which a message is routed: that of a message of files alone is their names.
fn routed_text(turn: &Turn) -> Cow<'_, str> {
    if !turn.content.trim().is_empty() {
        return (&turn.content).into();
    }
    let files = turn.attachments.iter();
    let names: Vec<_> = files
        .map(|file| format!("{} ({})", file.name, file.mime_type))
        .collect();
    names.join(", ").into()
}

/// Returns a number that is random over messages and equal for each redelivery of one.
fn message_hash(message: &MessageId) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.as_str().hash(&mut hasher);
    hasher.finish()
}
