//! The inference role: turns messages into replies, and applies metadata changes and deletions.
//!
//! Reading order: [`turn_runner`] orchestrates one turn after [`claim`] has claimed its reply.
//! [`reply_generator`] calls the model with a prompt of [`prompt_builder`], and [`reply_writer`]
//! delivers the text. [`turn_finalizer`] gives the turn its one final state, and [`turn_store`]
//! stores and announces it. [`playground_turn`] runs an editor's test message, of which nothing is
//! stored.

mod announcement;
mod attachments;
mod claim;
mod context_window;
mod conversation_deletion;
mod events;
pub(crate) mod history;
mod metadata_patch;
mod playground_turn;
mod prompt_builder;
mod prompt_files;
pub(crate) mod relay_texts;
mod reply_generator;
pub(crate) mod reply_log;
pub(crate) mod reply_outcome;
mod reply_text;
pub(crate) mod reply_writer;
mod summaries;
#[cfg(test)]
mod tests;
mod tokens;
mod turn_deadlines;
mod turn_finalizer;
mod turn_runner;
mod turn_store;
mod waiting_signs;
mod writer_sink;
#[cfg(test)]
pub(crate) use tests::shop as shop_of_tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use switchboard_backends::{
    Backends,
    bus::{IncomingRecord, trace::TraceContext},
    catalog::cache::CatalogCache,
    relay::ClaimToken,
};
use switchboard_schemas::{
    conversation_job::ConversationJob,
    time::Timestamp,
    topics::Topic,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::{
    attachments::AttachmentReader, claim::ClaimAttempts, history::HistoryCache,
    summaries::ConversationSummarizer,
};
use crate::{
    WorkerContext,
    config::WorkersConfig,
    files::FileReader,
    job_loop::{
        DecodedJob, JobEnd, JobHandler, TopicSource,
        dispatcher::{LaneKey, LaneKind},
    },
    metrics::WorkerMetrics,
    model::{context_limits::ContextLimits, openai::ModelClient, providers::ProviderResolver},
    products::ProductSearch,
    tools::{capture_lead::LeadTools, registry::ToolRegistry, search_products::ProductTools},
};

/// Job handler of the inference role.
pub(crate) struct InferenceHandler {
    backends: Backends,
    catalog: CatalogCache,
    providers: ProviderResolver,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
    model: ModelClient,
    contexts: ContextLimits,
    histories: HistoryCache,
    attachments: AttachmentReader,
    summaries: ConversationSummarizer,
    tools: ToolRegistry,
}

impl InferenceHandler {
    pub(crate) fn new(ctx: WorkerContext) -> anyhow::Result<Self> {
        let model = ModelClient::new(&ctx.config)?;
        let search = ProductSearch::new(
            ctx.backends.products.clone(),
            ctx.config.products.index_bytes_max,
        );
        Ok(Self {
            summaries: ConversationSummarizer::new(model.clone(), &ctx.config, ctx.metrics.clone()),
            tools: ToolRegistry::new(vec![
                Box::new(ProductTools::new(search, &ctx.config)),
                Box::new(LeadTools {
                    store: Arc::clone(&ctx.backends.store),
                }),
            ]),
            attachments: AttachmentReader {
                files: Arc::clone(&ctx.backends.files),
                reader: FileReader::new(ctx.file_reader),
            },
            model,
            contexts: ContextLimits::new(),
            histories: HistoryCache::new(&ctx.config),
            backends: ctx.backends,
            providers: ProviderResolver {
                catalog: ctx.catalog.clone(),
                vault: ctx.vault,
                installed: ctx.default_provider,
            },
            catalog: ctx.catalog,
            config: ctx.config,
            metrics: ctx.metrics,
        })
    }

    /// Releases a claim, so that the next holder does not wait for the end of its lease.
    async fn release_claim(&self, token: &ClaimToken) {
        if let Err(error) = self.backends.relay.release_claim(token).await {
            tracing::warn!(%error, "could not release a claim; its lease will expire");
        }
    }
}

/// Age of a message that may have been refused, above the time that a job takes to a worker.
const LATE_AFTER_MS: u64 = 2_000;

/// A job with what its record adds to it.
#[derive(Clone)]
pub(crate) struct AssignedJob {
    job: Arc<ConversationJob>,
    /// Time at which the record was published.
    queued_at: Timestamp,
    maybe_repeated: bool,
    attempts: Arc<ClaimAttempts>,
}

#[async_trait]
impl JobHandler for InferenceHandler {
    type Job = AssignedJob;

    const SOURCES: &'static [TopicSource] = &[
        (Topic::Jobs, "inference"),
        (Topic::JobsRetry, "inference-retry"),
    ];

    fn decode_job(&self, record: &IncomingRecord) -> Result<DecodedJob<Self::Job>, DecodeError> {
        let job: ConversationJob = versioned::decode(&record.payload)?;
        let is_takeover = record.partition.topic == Topic::JobsRetry;
        let kind = match &job {
            _ if is_takeover => LaneKind::Takeovers,
            // A deletion is ordered with the turns: earlier ones are deleted, later ones start
            // anew.
            ConversationJob::Reply(_)
            | ConversationJob::Playground(_)
            | ConversationJob::Delete(_) => LaneKind::Turns,
            ConversationJob::Patch(_) => LaneKind::Patches,
        };
        // The claim keeps the order of a conversation's replies: a takeover needs no place in it.
        let lane_name = if is_takeover {
            &record.key
        } else {
            job.conversation_id().as_str()
        };
        let lane = LaneKey {
            key: lane_name.to_owned(),
            kind,
        };
        let queued_at = record.published_at;
        let is_late =
            sent_at(&job).is_some_and(|at| Timestamp::now().millis_since(at) > LATE_AFTER_MS);
        Ok(DecodedJob {
            lane,
            organization: job.org_id().clone(),
            job: AssignedJob {
                job: Arc::new(job),
                queued_at,
                maybe_repeated: record.maybe_repeated,
                attempts: Arc::new(ClaimAttempts::new(
                    is_takeover,
                    record.maybe_repeated,
                    is_late,
                )),
            },
        })
    }

    async fn run_job(&self, assignment: Self::Job, handoff: &CancellationToken) -> JobEnd {
        let AssignedJob {
            job,
            queued_at,
            maybe_repeated,
            attempts,
        } = assignment;
        let conversation = job.conversation_id();
        match &*job {
            ConversationJob::Reply(job) => {
                let turn = &job.turn;
                let span = tracing::info_span!("answer", message.id = %turn.message_id, conversation.id = %conversation,
                    agent.id = %job.agent_id, request.id = %turn.request_id, trace.id = %TraceContext::current().trace_id());
                Box::pin(turn_runner::run_turn(
                    self, job, queued_at, &attempts, handoff,
                ))
                .instrument(span)
                .await
            }
            ConversationJob::Playground(job) => {
                let span = tracing::info_span!("try", message.id = %job.turn.message_id, agent.id = %job.agent_id,
                    request.id = %job.turn.request_id);
                Box::pin(playground_turn::run_playground_turn(
                    self, job, &attempts, handoff,
                ))
                .instrument(span)
                .await
            }
            ConversationJob::Patch(job) => {
                let span = tracing::info_span!("patch", conversation.id = %conversation, request.id = %job.request_id,
                    trace.id = %TraceContext::current().trace_id());
                let change = metadata_patch::apply_patch(self, job, maybe_repeated);
                Box::pin(until_handoff(handoff, change))
                    .instrument(span)
                    .await
            }
            ConversationJob::Delete(job) => {
                let span = tracing::info_span!("delete", conversation.id = %conversation, request.id = %job.request_id,
                    trace.id = %TraceContext::current().trace_id());
                let change = conversation_deletion::delete_conversation(self, job);
                Box::pin(until_handoff(handoff, change))
                    .instrument(span)
                    .await
            }
        }
    }

    async fn announce_waiting(&self, jobs: Vec<Self::Job>) {
        let (relay, places) = (&self.backends.relay, self.config.queued_jobs_max);
        waiting_signs::send_crowding(relay, &jobs, places).await;
        waiting_signs::send_signs(relay, &jobs).await;
    }

    fn on_assigned(&self) {
        self.histories.clear();
    }
}

/// Returns the time at which an ingress or a routing worker sent a message on.
fn sent_at(job: &ConversationJob) -> Option<Timestamp> {
    let (ConversationJob::Reply(job) | ConversationJob::Playground(job)) = job else {
        return None;
    };
    let routed = job.routed.as_ref().and_then(|routed| routed.routed_at);
    Some(routed.unwrap_or(job.turn.accepted_at))
}

/// Drops a change that is still running when `handoff` is cancelled: the next worker repeats it.
async fn until_handoff(
    handoff: &CancellationToken,
    change: impl Future<Output = JobEnd>,
) -> JobEnd {
    tokio::select! {
        biased;
        () = handoff.cancelled() => JobEnd::RetryAfter(Duration::ZERO),
        end = change => end,
    }
}
