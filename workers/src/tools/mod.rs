//! Tools that a model may call while it answers.
//!
//! Reading order: [`Tool`] is one tool and [`ToolSource`] where tools of one kind come from; a new kind (HTTP, MCP,
//! knowledge) is a source more in [`registry`] and nothing else. [`rounds`] lets model and tools take turns; [`call`]
//! runs one call within its bounds, with [`arguments`] that were checked; [`search_products`] is the first tool,
//! `told_products` what it tells the model, [`product_grid`] what it shows, and [`shown`] what the model is told of that.

pub(crate) mod arguments;
pub(crate) mod call;
pub(crate) mod holding_sink;
pub(crate) mod product_grid;
pub(crate) mod registry;
pub(crate) mod rounds;
pub(crate) mod search_products;
pub(crate) mod shown;
#[cfg(test)]
mod tests;
mod told_products;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_schemas::agent::Agent;

/// One tool of one agent.
#[async_trait]
pub(crate) trait Tool: Send + Sync {
    /// Which kind it is of, for metrics: one of a few fixed words.
    fn kind(&self) -> &'static str;

    /// The name by which a model calls it: letters, digits, `_` and `-`, at most 64.
    fn name(&self) -> &str;

    /// What it is for and when to call it, in words for a model.
    fn description(&self) -> &str;

    /// JSON Schema of its arguments; an object.
    fn parameters(&self) -> &Value;

    /// Runs it with arguments that fit the schema. The caller bounds its time, by dropping the future, and its result.
    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolOutcome, ToolFailure>;
}

/// Where the tools of one kind come from.
#[async_trait]
pub(crate) trait ToolSource: Send + Sync {
    /// The tools that this agent has; none where it has none of this kind, or they cannot be found out now.
    async fn tools(&self, agent: &Arc<Agent>) -> Vec<Arc<dyn Tool>>;
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolOutcome {
    /// For the model: what was found, and never what is shown of it ([`shown`]).
    pub(crate) text: String,
    /// For the visitor, built by the tool's code and never by a model. Objects with a `type`.
    pub(crate) ui: Option<Value>,
}

/// Why a call gave nothing. Its text is told to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ToolFailure {
    /// No tool of this agent has this name.
    #[error("there is no such tool")]
    Unknown,
    /// The arguments are none, or do not fit.
    #[error("the arguments do not fit: {0}")]
    Arguments(String),
    /// One of the bounds on calls.
    #[error("no more calls are allowed for this answer; answer with what is known")]
    TooMany,
    /// It did not answer in time.
    #[error("the tool did not answer in time")]
    Slow,
    /// It cannot do it now.
    #[error("the tool is not available at the moment")]
    Unavailable,
}
