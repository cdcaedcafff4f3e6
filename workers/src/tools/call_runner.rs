//! Runs one tool call within its bounds. Every failure becomes a text for the model; none fails the
//! reply.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{AgentTool, ToolFailure, ToolOutcome, arguments, product_grid, registry::AgentToolbox};
use crate::{metrics::WorkerMetrics, model::tool_calls::ToolCall};

/// Largest UI specification of one call, in bytes.
const UI_BYTES_MAX: usize = 64 << 10;
/// Marks a shortened result for the model.
const SHORTENED: &str = "\n[shortened]";

#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolCallLimits {
    /// Longest duration of the call.
    pub(crate) timeout: Duration,
    /// Latest end of the call.
    pub(crate) deadline: Instant,
    /// Longest result for the model, in bytes.
    pub(crate) result_bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCallResult {
    /// Result or error, as text for the model.
    pub(crate) text: String,
    /// UI specification for the visitor.
    pub(crate) ui: Option<Value>,
    /// False if the call failed.
    pub(crate) succeeded: bool,
}

/// Runs one call and counts its outcome.
pub(crate) async fn run_call(
    toolbox: &AgentToolbox,
    call: &ToolCall,
    limits: ToolCallLimits,
    metrics: &WorkerMetrics,
) -> ToolCallResult {
    let tool = toolbox.find_tool(&call.name);
    let outcome = match tool {
        Some(tool) => call_tool(tool.as_ref(), call, limits).await,
        None => Err(ToolFailure::Unknown),
    };
    let label = outcome.as_ref().map_or_else(failure_label, |_| "finished");
    metrics
        .tool_calls
        .with_label_values(&[tool.map_or("unknown", |tool| tool.kind()), label])
        .inc();
    match outcome {
        Ok(outcome) => ToolCallResult {
            text: shorten_result(outcome.text, limits.result_bytes_max),
            ui: outcome.ui.and_then(limit_ui),
            succeeded: true,
        },
        Err(failure) => {
            tracing::info!(outcome = label, "tool call failed");
            failed_result(&failure)
        }
    }
}

/// Returns the result of a call that failed or was not run.
pub(crate) fn failed_result(failure: &ToolFailure) -> ToolCallResult {
    ToolCallResult {
        text: serde_json::json!({ "error": failure.to_string() }).to_string(),
        ui: None,
        succeeded: false,
    }
}

async fn call_tool(
    tool: &dyn AgentTool,
    call: &ToolCall,
    limits: ToolCallLimits,
) -> Result<ToolOutcome, ToolFailure> {
    let arguments_json = call
        .arguments
        .as_ref()
        .map_err(|unusable| ToolFailure::Arguments(unusable.to_string()))?;
    let arguments = arguments::parse_arguments(arguments_json, tool.parameters())?;
    let deadline = limits.deadline.min(Instant::now() + limits.timeout);
    timeout_at(deadline, tool.run(arguments))
        .await
        .unwrap_or(Err(ToolFailure::Slow))
}

fn shorten_result(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(SHORTENED.len()));
    format!("{}{SHORTENED}", &text[..end])
}

/// Drops structured data that is too large. A grid only loses its last products, because a part of
/// any other data would mean something else.
fn limit_ui(ui: Value) -> Option<Value> {
    if product_grid::is_grid(&ui) {
        return product_grid::truncate_grid(ui, UI_BYTES_MAX);
    }
    (ui.to_string().len() <= UI_BYTES_MAX).then_some(ui)
}

const fn failure_label(failure: &ToolFailure) -> &'static str {
    match failure {
        ToolFailure::Unknown => "unknown",
        ToolFailure::Arguments(_) => "bad-arguments",
        ToolFailure::TooMany => "too-many",
        ToolFailure::Slow => "slow",
        ToolFailure::Unavailable => "unavailable",
    }
}
