//! Tools that a model may call while it answers.
//!
//! Reading order: [`AgentTool`] is one tool and [`ToolSource`] provides the tools of one kind; a
//! new kind (HTTP, MCP, knowledge) is one more source in [`registry`]. [`tool_loop`] alternates
//! between model and tools; [`call_runner`] runs one call within its bounds, with validated
//! [`arguments`]; [`search_products`] is the first tool, `product_results` is the text of its
//! result, [`product_grid`] is its UI, and [`displayed_results`] describes that UI to the model.
//! [`capture_lead`] shows a form.

pub(crate) mod arguments;
pub(crate) mod buffering_sink;
pub(crate) mod call_runner;
pub(crate) mod capture_lead;
pub(crate) mod displayed_results;
pub(crate) mod product_grid;
mod product_results;
pub(crate) mod registry;
pub(crate) mod search_products;
#[cfg(test)]
mod tests;
pub(crate) mod tool_loop;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_schemas::{agent::Agent, ids::ConversationId};

#[async_trait]
pub(crate) trait AgentTool: Send + Sync {
    /// Returns the kind of the tool for metrics: one of a few fixed words.
    fn kind(&self) -> &'static str;

    /// Returns the name by which a model calls it: letters, digits, `_` and `-`, at most 64.
    fn name(&self) -> &str;

    /// Returns its purpose and when to call it, in words for a model.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of its arguments, an object.
    fn parameters(&self) -> &Value;

    /// Runs the tool with validated arguments. The caller bounds its duration, by dropping the
    /// future, and its result.
    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolOutcome, ToolFailure>;
}

#[async_trait]
pub(crate) trait ToolSource: Send + Sync {
    /// Returns the tools of this agent in a conversation; none if it has none of this kind or the
    /// source is unavailable.
    async fn tools_for(
        &self,
        agent: &Arc<Agent>,
        conversation: &ConversationId,
    ) -> Vec<Arc<dyn AgentTool>>;
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolOutcome {
    /// Findings for the model, without a description of the UI ([`displayed_results`]).
    pub(crate) text: String,
    /// UI for the visitor, built by code and never by a model: an object with a `type`.
    pub(crate) ui: Option<Value>,
}

/// Failure of a tool call. Its text is sent to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ToolFailure {
    /// No tool of this agent has this name.
    #[error("there is no such tool")]
    Unknown,
    /// The arguments could not be parsed or do not match the schema.
    #[error("the arguments do not fit: {0}")]
    Arguments(String),
    /// A bound on the number of calls or on their results was reached.
    #[error("no more calls are allowed for this answer; answer with what is known")]
    TooMany,
    /// The tool did not answer in time.
    #[error("the tool did not answer in time")]
    Slow,
    /// The tool cannot be used now.
    #[error("the tool is not available at the moment")]
    Unavailable,
}
