//! Runs one call of a tool within its bounds. Whatever goes wrong becomes a text for the model; nothing fails the reply.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Tool, ToolFailure, ToolOutcome, arguments, product_grid, registry::Toolbox};
use crate::{metrics::WorkerMetrics, model::tool_calls::ToolCall};

/// What one call may show to a visitor.
const UI_BYTES_MAX: usize = 64 << 10;
/// Tells a model that a result was shortened.
const SHORTENED: &str = "\n[shortened]";

/// Bounds of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLimits {
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// When it must be over in any case.
    pub(crate) deadline: Instant,
    /// Text for the model.
    pub(crate) result_bytes_max: usize,
}

/// What a call gave, as the model is told it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult {
    /// The result, or what went wrong.
    pub(crate) text: String,
    /// For the visitor.
    pub(crate) ui: Option<Value>,
    /// Whether there is a result.
    pub(crate) succeeded: bool,
}

/// Runs a call.
pub(crate) async fn run(
    toolbox: &Toolbox,
    call: &ToolCall,
    limits: CallLimits,
    metrics: &WorkerMetrics,
) -> CallResult {
    let tool = toolbox.get(&call.name);
    let outcome = match tool {
        Some(tool) => attempt(tool.as_ref(), call, limits).await,
        None => Err(ToolFailure::Unknown),
    };
    let label = outcome.as_ref().map_or_else(name, |_| "finished");
    metrics
        .tool_calls
        .with_label_values(&[tool.map_or("unknown", |tool| tool.kind()), label])
        .inc();
    match outcome {
        Ok(outcome) => CallResult {
            text: shortened(outcome.text, limits.result_bytes_max),
            ui: outcome.ui.and_then(bounded),
            succeeded: true,
        },
        Err(failure) => {
            tracing::info!(outcome = label, "a tool call gave nothing");
            failed(&failure)
        }
    }
}

/// The result of a call that was not run.
pub(crate) fn failed(failure: &ToolFailure) -> CallResult {
    CallResult {
        text: serde_json::json!({ "error": failure.to_string() }).to_string(),
        ui: None,
        succeeded: false,
    }
}

async fn attempt(
    tool: &dyn Tool,
    call: &ToolCall,
    limits: CallLimits,
) -> Result<ToolOutcome, ToolFailure> {
    let text = call
        .arguments
        .as_ref()
        .map_err(|unusable| ToolFailure::Arguments(unusable.to_string()))?;
    let arguments = arguments::read(text, tool.parameters())?;
    let deadline = limits.deadline.min(Instant::now() + limits.timeout);
    timeout_at(deadline, tool.run(arguments))
        .await
        .unwrap_or(Err(ToolFailure::Slow))
}

fn shortened(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(SHORTENED.len()));
    format!("{}{SHORTENED}", &text[..end])
}

/// A grid may lose its last products; of anything else a part would mean something else.
fn bounded(ui: Value) -> Option<Value> {
    if product_grid::is_grid(&ui) {
        return product_grid::within(ui, UI_BYTES_MAX);
    }
    (ui.to_string().len() <= UI_BYTES_MAX).then_some(ui)
}

const fn name(failure: &ToolFailure) -> &'static str {
    match failure {
        ToolFailure::Unknown => "unknown",
        ToolFailure::Arguments(_) => "bad-arguments",
        ToolFailure::TooMany => "too-many",
        ToolFailure::Slow => "slow",
        ToolFailure::Unavailable => "unavailable",
    }
}
