//! Asks the model with as much of the past as it takes. Contexts differ, and only the provider knows its own: one that
//! refuses a prompt for its length is asked again with less of the past, before anybody saw anything of an answer.

use switchboard_schemas::{agent::Agent, time::Timestamp};

use super::{
    answer::Turn,
    history::History,
    prompt::{self, Told},
};
use crate::{
    model::{Endpoint, Prompt, generation::Generated},
    tools::registry::Toolbox,
};

/// Prompts for one answer after the first, each of half the tokens; the last holds nothing of the past.
const SHORTER_MAX: u32 = 3;

/// What was asked, and what came of it.
pub(super) struct Asked {
    /// None: the reply is to stop.
    pub(super) generated: Option<Generated>,
    pub(super) prompt: Prompt,
    /// Tokens that the prompt left for the past.
    pub(super) window_tokens: usize,
    /// Milliseconds from acceptance to the last call.
    pub(super) begun_ms: u64,
}

/// How much a prompt may hold.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) tokens_max: usize,
    pub(super) summary: bool,
}

impl Turn<'_> {
    /// Asks, with less and less of the past while its length is refused.
    pub(super) async fn ask_fitting(
        &self,
        agent: &Agent,
        toolbox: &Toolbox,
        history: &History,
        mut endpoints: Vec<Endpoint>,
        logged: &str,
    ) -> Asked {
        let contexts = &self.inference.contexts;
        let mut tokens_max =
            contexts.bound(endpoints.first(), self.inference.config.prompt_tokens_max);
        let (mut shorter, mut retries) = (0, 0);
        loop {
            let is_last = shorter == SHORTER_MAX;
            let room = Room {
                tokens_max: if is_last { 0 } else { tokens_max },
                summary: !is_last,
            };
            let told = self.prompt(agent, toolbox, history, logged, room);
            let begun_ms = Timestamp::now().millis_since(self.job.turn.accepted_at);
            let generated = tokio::select! {
                biased;
                // Dropping the call closes the connection to the provider.
                () = self.writer.cancelled().cancelled() => None,
                generated = self.generate(agent, toolbox, endpoints.clone(), told.prompt.clone(), logged) => Some(generated),
            };
            let refused = generated
                .as_ref()
                .and_then(|generated| generated.too_long.clone());
            let may_be_shorter = !is_last
                && holds_past(&told.prompt)
                && self.writer.whole_text().len() == logged.len();
            if let Some(endpoint) = refused.filter(|_| may_be_shorter) {
                retries += 1 + generated.map_or(0, |generated| generated.retries);
                shorter += 1;
                // Who was asked before it did not answer.
                let same = |other: &Endpoint| {
                    other.base_url == endpoint.base_url && other.model == endpoint.model
                };
                endpoints.drain(..endpoints.iter().position(same).unwrap_or_default());
                tokens_max = contexts.bound(
                    Some(&endpoint),
                    tokens_max.min(prompt::size(&told.prompt)) / 2,
                );
                tracing::info!(
                    provider.host = endpoint.host(),
                    endpoint.model,
                    tokens_max,
                    "the prompt is made shorter"
                );
                continue;
            }
            self.note_left_out(&told);
            if let Some(endpoint) = endpoints.first()
                && shorter > 0
                && generated
                    .as_ref()
                    .is_some_and(|generated| generated.end.is_ok())
            {
                contexts.learn(endpoint, tokens_max);
            }
            let generated = generated.map(|made| Generated {
                retries: made.retries + retries,
                ..made
            });
            let Told {
                prompt,
                window_tokens,
                ..
            } = told;
            return Asked {
                generated,
                prompt,
                window_tokens,
                begun_ms,
            };
        }
    }
}

/// Whether there is more than the instructions and the message.
const fn holds_past(prompt: &Prompt) -> bool {
    prompt.messages.len() > 2
}
