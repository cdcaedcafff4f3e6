//! One message from its claim to its final state (step 7 of the path).
//!
//! The bus record is the write-ahead log: the user message is stored and announced beside the model call, and nothing
//! but a history that is not in memory is read from a store before it.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use switchboard_backends::{
    relay::{ClaimTask, LEASE},
    store::{StoreError, TurnStart},
};
use switchboard_schemas::{
    agent::{ActivationStatus, Agent},
    conversation::{ConversationOwner, FinishReason, ReplySteps},
    conversation_job::ReplyJob,
    reply_event::{FrameBody, ReplyEnd, ReplyFailure, ReplyHead},
    time::Timestamp,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    Inference,
    claim::{self, Claimed},
    fitting::{Asked, Room},
    history::{History, Known},
    outcome::{Outcome, ToldFacts},
    prompt::{self, Material, Told},
    reply_writer::ReplyWriter,
};
use crate::{
    dead_letter::Cause,
    job_loop::JobEnd,
    model::{Endpoint, Prompt, generation::Generated},
    retry::{self, Backoff},
    tools::{
        registry::Toolbox,
        rounds::{Means, Rounds},
    },
};

/// Answers one message, or does what an earlier attempt left undone.
pub(super) async fn run(
    inference: &Inference,
    job: &ReplyJob,
    queued_at: Timestamp,
    inherited: &AtomicBool,
    handover: &CancellationToken,
) -> JobEnd {
    let Claimed {
        writer,
        task,
        settled_count,
    } = match claim::claim(inference, job, inherited).await {
        Ok(claimed) => claimed,
        Err(end) => return end,
    };
    let turn = Turn::new(inference, job, queued_at, &writer, None);
    turn.while_ours(handover, turn.run(task, settled_count))
        .await
}

/// A claimed turn.
pub(super) struct Turn<'a> {
    pub(super) inference: &'a Inference,
    pub(super) job: &'a ReplyJob,
    pub(super) writer: &'a ReplyWriter,
    /// When the reply must be made.
    deadline: Instant,
    /// When storing and telling it is given up, for this attempt.
    pub(super) conclusion_limit: Instant,
    /// What the model was told, once it was asked.
    told: Mutex<ToldFacts>,
    /// Answers in place of the agent as it is saved.
    pub(super) draft: Option<Arc<Agent>>,
    /// When this attempt came how far; the first text is known at its end.
    steps: ReplySteps,
    asked_ms: OnceLock<u64>,
}

/// Where the reply of a turn comes from.
enum Making {
    /// The model.
    Model,
    /// It has failed already.
    Failed(ReplyFailure),
    /// It was sealed by an earlier attempt.
    Sealed(ReplyEnd),
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        inference: &'a Inference,
        job: &'a ReplyJob,
        queued_at: Timestamp,
        writer: &'a ReplyWriter,
        draft: Option<Arc<Agent>>,
    ) -> Self {
        let deadline = Instant::now() + inference.config.job_deadline();
        let conclusion_limit = deadline + inference.config.store_grace();
        let since_acceptance = |at: Timestamp| at.millis_since(job.turn.accepted_at);
        let routed_ms = job
            .routed
            .as_ref()
            .and_then(|routed| routed.routed_at)
            .map(since_acceptance);
        let steps = ReplySteps {
            routed_ms,
            // A broker keeps milliseconds, cut off.
            queued_ms: Some(since_acceptance(queued_at).max(routed_ms.unwrap_or_default())),
            claimed_ms: Some(since_acceptance(Timestamp::now())),
            ..ReplySteps::default()
        };
        let (told, asked_ms) = (Mutex::default(), OnceLock::new());
        Self {
            inference,
            job,
            writer,
            deadline,
            conclusion_limit,
            told,
            draft,
            steps,
            asked_ms,
        }
    }

    /// When this attempt came how far.
    pub(super) fn steps(&self, first_text_ms: Option<u64>) -> ReplySteps {
        ReplySteps {
            asked_ms: self.asked_ms.get().copied(),
            first_text_ms,
            ..self.steps
        }
    }

    /// What the model was told, if it was asked.
    pub(super) fn told(&self) -> ToldFacts {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Does `work` beside the writer, until that ends or the turn is somebody else's.
    pub(super) async fn while_ours(
        &self,
        handover: &CancellationToken,
        work: impl Future<Output = JobEnd>,
    ) -> JobEnd {
        tokio::select! {
            biased;
            // Someone else has it: what they make of it, the next claim will tell.
            () = self.writer.fenced().cancelled() => JobEnd::Open(LEASE),
            () = handover.cancelled() => self.hand_over().await,
            () = self.writer.drive() => JobEnd::Open(LEASE),
            end = Box::pin(work) => end,
        }
    }

    async fn run(&self, task: ClaimTask, settled_count: Option<u64>) -> JobEnd {
        match task {
            ClaimTask::Generate => self.begin(settled_count, Making::Model).await,
            ClaimTask::Announce => self.begin(None, Making::Model).await,
            ClaimTask::StoreFinalized { end } => match end.body {
                FrameBody::End(end) => self.begin(None, Making::Sealed(*end)).await,
                _ => {
                    self.begin(None, Making::Failed(ReplyFailure::Internal))
                        .await
                }
            },
            ClaimTask::GiveUp => self.give_up().await,
        }
    }

    /// The reply fails visibly, and the record that killed so many attempts is kept for an operator.
    async fn give_up(&self) -> JobEnd {
        let attempts = self.writer.token().attempt;
        match self
            .begin(None, Making::Failed(ReplyFailure::AttemptsExhausted))
            .await
        {
            JobEnd::Finished => {
                let reason = "every attempt died before the reply had its final state".to_owned();
                JobEnd::Dead(Cause {
                    class: "attempts-exhausted",
                    reason,
                    attempts,
                })
            }
            end => end,
        }
    }

    async fn begin(&self, settled_count: Option<u64>, making: Making) -> JobEnd {
        let store = &*self.inference.backends.store;
        let known = self.insist(self.deadline, "read the history", || {
            self.inference
                .histories
                .before(store, &self.job.turn, settled_count)
        });
        // The first beat says that we live, and learns whether the reply is to be made at all.
        let (known, ()) = tokio::join!(known, self.writer.flush(true));
        match known {
            Some(Known::Past { history, position }) => {
                Box::pin(self.turn_over(history, position, making)).await
            }
            Some(Known::Final(record)) => self.announce(&record).await,
            None => self.hand_over().await,
        }
    }

    /// Brings the turn from its beginning to its end, with its events beside it.
    async fn turn_over(&self, history: History, position: u64, making: Making) -> JobEnd {
        let (tell, told) = tokio::sync::oneshot::channel();
        let announced = CancellationToken::new();
        let work = async {
            let (outcome, stored) = tokio::join!(
                self.make(&history, making),
                self.store_user_message(position, &history)
            );
            if !stored {
                return JobEnd::Open(self.inference.config.parked_delay());
            }
            match outcome {
                Made::Now(outcome) => {
                    self.conclude(position, &history, outcome, tell, &announced)
                        .await
                }
                Made::Before(end) => {
                    self.conclude_sealed(position, &history, end, tell, &announced)
                        .await
                }
            }
        };
        tokio::select! {
            end = work => end,
            () = self.publish_events(position, told, &announced) => JobEnd::Open(LEASE),
        }
    }

    /// Stores the user message; until then nothing of the reply is shown.
    async fn store_user_message(&self, position: u64, history: &History) -> bool {
        let owner = match &self.job.routed {
            Some(routed) => ConversationOwner::Team(routed.team_id.clone()),
            None => ConversationOwner::Agent(self.job.agent_id.clone()),
        };
        let attempt = self.writer.token().attempt;
        let tombstone = history.tombstone.clone();
        let start = TurnStart {
            turn: self.job.turn.clone(),
            owner,
            position,
            tombstone,
            attempt,
        };
        let store = &*self.inference.backends.store;
        let stored = self
            .insist(self.conclusion_limit, "store the user message", || {
                store.begin_turn(&start)
            })
            .await;
        if stored.is_some() {
            self.writer.user_stored();
        }
        stored.is_some()
    }

    async fn make(&self, history: &History, making: Making) -> Made {
        match making {
            Making::Model => Made::Now(self.ask_model(history).await),
            Making::Failed(failure) => Made::Now(Outcome::failed(failure)),
            Making::Sealed(end) => Made::Before(end),
        }
    }

    pub(super) async fn ask_model(&self, history: &History) -> Outcome {
        let logged = self.writer.whole_text();
        if self.writer.cancelled().is_cancelled() {
            return Outcome::cancelled();
        }
        let waited_ms = Timestamp::now().millis_since(self.job.turn.accepted_at);
        if logged.is_empty() && waited_ms > self.inference.config.turn_begin_max_ms {
            return Outcome::failed(ReplyFailure::DeadlineExceeded);
        }
        if logged.len() >= self.inference.config.reply_bytes_max {
            return Outcome {
                end: Ok(FinishReason::Length),
                ..Outcome::cancelled()
            };
        }
        let (agent, endpoints) = match self.agent().await {
            Ok(found) => found,
            Err(failure) => return Outcome::failed(failure),
        };
        // A text that was shown is gone on with as it is: whatever its tools found, they found before it.
        let toolbox = if logged.is_empty() {
            self.inference.tools.of(&agent).await
        } else {
            Toolbox::default()
        };
        // Set once for each attempt: a model that wants a shorter prompt was asked before.
        let _ = self
            .asked_ms
            .set(Timestamp::now().millis_since(self.job.turn.accepted_at));
        let asked = self
            .ask_fitting(&agent, &toolbox, history, endpoints.clone(), &logged)
            .await;
        let Asked {
            generated,
            prompt,
            window_tokens,
            begun_ms,
        } = asked;
        let Some(generated) = generated else {
            return self.estimated(Outcome::cancelled(), &prompt);
        };
        self.measure(&generated);
        // A conversation that nobody goes on with needs no summary.
        if self.draft.is_none() {
            let conversation = &self.job.turn.conversation_id;
            self.inference.summaries.refresh(
                conversation,
                &history.messages,
                window_tokens,
                endpoints,
            );
        }
        let first_text_ms = generated.first_text.map(|first| begun_ms + millis(first));
        let outcome = Outcome {
            end: generated.end,
            usage: generated.usage.unwrap_or_default(),
            first_text_ms,
        };
        if generated.usage.is_some() {
            outcome
        } else {
            self.estimated(outcome, &prompt)
        }
    }

    /// The agent and who may answer for it.
    async fn agent(&self) -> Result<(Arc<Agent>, Vec<Endpoint>), ReplyFailure> {
        let found = self.insist(self.deadline, "read the agent", || async {
            let agent = match &self.draft {
                Some(draft) => Some(Arc::clone(draft)),
                None => self.inference.catalog.agent(&self.job.agent_id).await?,
            };
            let Some(agent) = agent else { return Ok(None) };
            let endpoints = self.inference.providers.of(&agent).await?;
            Ok::<_, StoreError>(Some((agent, endpoints)))
        });
        let found = found.await.ok_or(ReplyFailure::Internal)?;
        let may_answer = |agent: &Agent| {
            self.draft.is_some() || agent.settings.status == ActivationStatus::Active
        };
        found
            .filter(|(agent, _)| agent.org_id == self.job.turn.org_id && may_answer(agent))
            .ok_or(ReplyFailure::AgentUnavailable)
    }

    /// What the model is asked; keeps what did not fit.
    pub(super) fn prompt(
        &self,
        agent: &Agent,
        toolbox: &Toolbox,
        history: &History,
        logged: &str,
        room: Room,
    ) -> Told {
        let head = self.writer.head().filter(|_| !logged.is_empty());
        let newest = self
            .inference
            .summaries
            .newest(&self.job.turn.conversation_id, &history.messages);
        let summary = newest.filter(|_| room.summary);
        let told = prompt::of(Material {
            settings: &agent.settings,
            past: &history.messages,
            summary: summary.as_ref().map(|(summary, _)| summary),
            content: &self.job.turn.content,
            tools: toolbox.declarations(),
            shown_now: head.as_ref().and_then(|head| head.ui_spec.as_ref()),
            tokens_max: room.tokens_max,
        });
        let summary = summary.and_then(|(summary, to_be_kept)| to_be_kept.then_some(summary));
        let facts = ToldFacts {
            left_out: told.left_out,
            summary,
        };
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = facts;
        told
    }

    pub(super) fn note_left_out(&self, told: &Told) {
        let Some(left_out) = told.left_out else {
            return;
        };
        let (messages, summarized) = (left_out.messages, left_out.summarized);
        tracing::debug!(
            messages,
            summarized,
            summary = told.with_summary,
            "the prompt does not hold all messages"
        );
        let counted = &self.inference.metrics.left_out;
        counted.with_label_values(&["true"]).inc_by(summarized);
        counted
            .with_label_values(&["false"])
            .inc_by(messages - summarized);
    }

    pub(super) async fn generate(
        &self,
        agent: &Agent,
        toolbox: &Toolbox,
        mut endpoints: Vec<Endpoint>,
        prompt: Prompt,
        logged: &str,
    ) -> Generated {
        if !logged.is_empty() {
            endpoints.retain(|endpoint| endpoint.continues_prefix);
            if endpoints.is_empty() {
                // A text that was shown is never begun anew, and nobody can go on with it.
                return Generated::nothing(ReplyFailure::Internal);
            }
        }
        let head = ReplyHead {
            conversation_id: self.job.turn.conversation_id.clone(),
            agent_id: agent.id.clone(),
            agent_name: agent.name.clone(),
            routing_reason: self.job.routed.as_ref().map(|routed| routed.reason.clone()),
            model: String::new(),
            ui_spec: None,
        };
        let mut sink = self.writer.sink(head);
        let Inference {
            model,
            config,
            metrics,
            ..
        } = self.inference;
        let means = Means {
            client: model,
            config,
            metrics,
            toolbox,
        };
        Rounds::new(means, endpoints, prompt, &mut sink, self.deadline)
            .run()
            .await
    }

    fn estimated(&self, outcome: Outcome, prompt: &Prompt) -> Outcome {
        let text = self.writer.whole_text();
        if text.is_empty() {
            outcome
        } else {
            Outcome {
                usage: prompt::estimate(prompt, &text),
                ..outcome
            }
        }
    }

    fn measure(&self, generated: &Generated) {
        let metrics = &self.inference.metrics;
        if let Some(first) = generated.first_text {
            metrics.first_token.observe(first.as_secs_f64());
        }
        metrics.model_call.observe(generated.took.as_secs_f64());
        metrics
            .retries
            .with_label_values(&["model"])
            .inc_by(u64::from(generated.retries));
    }

    /// Ends the lease, so that the next holder begins at once.
    pub(super) async fn hand_over(&self) -> JobEnd {
        let grace = Instant::now() + Duration::from_secs(1);
        let _ = timeout_at(grace, self.inference.release(self.writer.token())).await;
        JobEnd::Open(Duration::from_millis(
            self.inference.config.store_retry_delay_max_ms,
        ))
    }

    /// Does something of the outside world until it works or `limit` has passed.
    pub(super) async fn insist<T, E, F>(
        &self,
        limit: Instant,
        what: &str,
        work: impl FnMut() -> F,
    ) -> Option<T>
    where
        F: Future<Output = Result<T, E>>,
        E: std::fmt::Display,
    {
        retry::until(limit, Backoff::of_store(&self.inference.config), what, work).await
    }
}

/// What is to be concluded.
enum Made {
    Now(Outcome),
    Before(ReplyEnd),
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
