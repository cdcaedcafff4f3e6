//! Jobs of conversations (steps 7 to 9 of the path): messages become replies, changes of metadata become facts.
//!
//! Reading order: [`answer`] is one message from its claim to its end; [`claim`] and [`reply_log`] say where it
//! stands; [`history`], [`window`], [`summaries`], [`prompt`], [`fitting`] what the model is asked; [`reply_writer`] brings the
//! text out; [`outcome`] and [`conclude`] give the turn its one final state; [`events`] tell it. [`trial`] is an editor's
//! message to a draft, of which nothing stays. [`patch`] and [`delete`] are the rest.

mod answer;
mod claim;
mod conclude;
mod delete;
mod events;
mod fitting;
pub(crate) mod history;
pub(crate) mod outcome;
mod patch;
mod prompt;
pub(crate) mod reply_log;
pub(crate) mod reply_writer;
mod summaries;
#[cfg(test)]
mod tests;
mod tokens;
mod trial;
mod window;
#[cfg(test)]
pub(crate) use tests::shop as shop_of_tests;

use std::sync::{Arc, atomic::AtomicBool};

use async_trait::async_trait;
use switchboard_backends::{
    Backends, bus::IncomingRecord, catalog::cache::CatalogCache, relay::ClaimToken,
};
use switchboard_schemas::{
    conversation_job::ConversationJob,
    time::Timestamp,
    topics::Topic,
    versioned::{self, DecodeError},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::{history::Histories, summaries::Summaries};
use crate::{
    WorkerContext,
    config::WorkersConfig,
    job_loop::{
        Handler, JobEnd, Source,
        dispatcher::{LaneKey, LaneKind},
    },
    metrics::WorkerMetrics,
    model::{contexts::Contexts, openai::ModelClient, providers::Providers},
    products::ProductSearch,
    tools::{registry::ToolRegistry, search_products::ProductTools},
    trace,
};

/// The inference role.
pub(crate) struct Inference {
    backends: Backends,
    catalog: CatalogCache,
    providers: Providers,
    config: WorkersConfig,
    metrics: Arc<WorkerMetrics>,
    model: ModelClient,
    contexts: Contexts,
    histories: Histories,
    summaries: Summaries,
    tools: ToolRegistry,
}

impl Inference {
    pub(crate) fn new(ctx: WorkerContext) -> anyhow::Result<Self> {
        let model = ModelClient::new(&ctx.config)?;
        let search = ProductSearch::new(
            ctx.backends.products.clone(),
            ctx.config.products.index_bytes_max,
        );
        Ok(Self {
            summaries: Summaries::new(model.clone(), &ctx.config, ctx.metrics.clone()),
            tools: ToolRegistry::new(vec![Box::new(ProductTools::new(search, &ctx.config))]),
            model,
            contexts: Contexts::new(),
            histories: Histories::new(&ctx.config),
            backends: ctx.backends,
            providers: Providers {
                catalog: ctx.catalog.clone(),
                vault: ctx.vault,
                installed: ctx.default_provider,
            },
            catalog: ctx.catalog,
            config: ctx.config,
            metrics: ctx.metrics,
        })
    }

    /// Gives a claim back, so that the next holder need not wait for the end of its lease.
    async fn release(&self, token: &ClaimToken) {
        if let Err(error) = self.backends.relay.release(token).await {
            tracing::warn!(%error, "could not release a claim; its lease will end");
        }
    }
}

/// A record that comes later than this may have had another owner, who still works on it.
const FRESH_MAX_MS: u64 = 2_000;

/// A record, read.
#[derive(Clone)]
pub(crate) struct Assignment {
    job: Arc<ConversationJob>,
    /// When it was published.
    queued_at: Timestamp,
    /// It came late, or as a hint, or someone else held it: another worker may be working on it.
    inherited: Arc<AtomicBool>,
}

#[async_trait]
impl Handler for Inference {
    type Job = Assignment;

    // A hint about a lost worker is work like any other, in the same lanes; each record settles itself alone.
    const SOURCES: &'static [Source] = &[
        (Topic::Jobs, "inference"),
        (Topic::JobsRetry, "inference-retry"),
    ];

    fn read(&self, record: &IncomingRecord) -> Result<(LaneKey, Self::Job), DecodeError> {
        let job: ConversationJob = versioned::decode(&record.payload)?;
        let kind = match &job {
            // A deletion stands in the order of the turns: what came before goes with it, what comes behind begins anew.
            ConversationJob::Reply(_)
            | ConversationJob::Playground(_)
            | ConversationJob::Delete(_) => LaneKind::Turns,
            ConversationJob::Patch(_) => LaneKind::Patches,
        };
        let late = Timestamp::now().millis_since(record.published_at) > FRESH_MAX_MS;
        let inherited = late || record.partition.topic == Topic::JobsRetry;
        let lane = LaneKey {
            key: job.conversation_id().as_str().to_owned(),
            kind,
        };
        let queued_at = record.published_at;
        Ok((
            lane,
            Assignment {
                job: Arc::new(job),
                queued_at,
                inherited: Arc::new(inherited.into()),
            },
        ))
    }

    async fn run(&self, assignment: Self::Job, handover: &CancellationToken) -> JobEnd {
        let Assignment {
            job,
            queued_at,
            inherited,
        } = assignment;
        let conversation = job.conversation_id();
        match &*job {
            ConversationJob::Reply(job) => {
                let turn = &job.turn;
                let span = tracing::info_span!("answer", message.id = %turn.message_id, conversation.id = %conversation,
                    agent.id = %job.agent_id, request.id = %turn.request_id, trace.id = %trace::current_id());
                Box::pin(answer::run(self, job, queued_at, &inherited, handover))
                    .instrument(span)
                    .await
            }
            ConversationJob::Playground(job) => {
                let span = tracing::info_span!("try", message.id = %job.turn.message_id, agent.id = %job.agent_id,
                    request.id = %job.turn.request_id);
                Box::pin(trial::run(self, job, &inherited, handover))
                    .instrument(span)
                    .await
            }
            ConversationJob::Patch(job) => {
                let span = tracing::info_span!("patch", conversation.id = %conversation, request.id = %job.request_id,
                    trace.id = %trace::current_id());
                Box::pin(patch::run(self, job, handover))
                    .instrument(span)
                    .await
            }
            ConversationJob::Delete(job) => {
                let span = tracing::info_span!("delete", conversation.id = %conversation, request.id = %job.request_id,
                    trace.id = %trace::current_id());
                Box::pin(delete::run(self, job, handover))
                    .instrument(span)
                    .await
            }
        }
    }

    async fn say_waiting(&self, jobs: Vec<Self::Job>) {
        for assignment in jobs {
            let (ConversationJob::Reply(job) | ConversationJob::Playground(job)) = &*assignment.job
            else {
                continue;
            };
            let Some(ingress) = &job.turn.reply_to else {
                continue;
            };
            // A relay that is away takes none of them; the next round tries again.
            if let Err(error) = self
                .backends
                .relay
                .say_waiting(ingress, &job.turn.reply_id())
                .await
            {
                tracing::debug!(%error, "could not say that messages wait");
                return;
            }
        }
    }

    fn assigned(&self) {
        self.histories.clear();
    }
}
