//! Tests of the tool loop with scripted tools and providers.

mod broken_providers;
mod call_bounds;
mod displayed_results;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use prometheus::Registry;
use serde_json::{Map, Value, json};
use switchboard_schemas::{
    conversation::FinishReason,
    reply_event::{ToolProgress, ToolStatus},
};
use tokio::time::Instant;

use super::{
    AgentTool, ToolFailure, ToolOutcome, ToolSource,
    buffering_sink::ReplySink,
    product_grid,
    registry::{AgentToolbox, ToolRegistry},
    tool_loop::{ToolLoop, ToolLoopContext},
};
use crate::{
    config::WorkersConfig,
    inference::shop_of_tests,
    metrics::WorkerMetrics,
    model::{
        ModelEndpoint, ModelPrompt, PromptMessage, PromptRole,
        generation::{GenerationResult, PushResult, TextSink},
        openai::ModelClient,
    },
    testing::{Raw, Script, quick, says, start_model},
};

/// A tool of these tests: `good` finds a lamp, or the title and count of its arguments; `bad`
/// fails, `slow` never answers, `huge` returns too much, `long` describes too much.
struct ScriptedTool {
    name: &'static str,
    parameters: Value,
    ran: Arc<Mutex<Vec<Value>>>,
}

#[async_trait]
impl AgentTool for ScriptedTool {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "for tests"
    }

    fn parameters(&self) -> &Value {
        &self.parameters
    }

    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolOutcome, ToolFailure> {
        self.ran
            .lock()
            .unwrap()
            .push(Value::from(arguments.clone()));
        let title = arguments
            .get("q")
            .and_then(Value::as_str)
            .unwrap_or("Lamp")
            .to_owned();
        let titles = match arguments.get("count").and_then(Value::as_u64) {
            Some(count) => (0..count)
                .map(|number| format!("{title} {number}"))
                .collect(),
            None => vec![title.clone()],
        };
        let ui = product_grid::grid_of(
            titles
                .iter()
                .map(|title| json!({"title": title, "price": "$9"})),
        );
        match self.name {
            "bad" => Err(ToolFailure::Unavailable),
            "slow" => std::future::pending().await,
            "huge" => Ok(ToolOutcome {
                text: "é".repeat(1 << 20),
                ui: Some(json!({"type": "x", "data": "y".repeat(1 << 20)})),
            }),
            "long" => Ok(ToolOutcome {
                text: title.repeat(10_000),
                ui,
            }),
            _ => Ok(ToolOutcome {
                text: format!("found {title}"),
                ui,
            }),
        }
    }
}

struct Source(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl ToolSource for Source {
    async fn tools_for(
        &self,
        _: &Arc<switchboard_schemas::agent::Agent>,
        _: &switchboard_schemas::ids::ConversationId,
    ) -> Vec<Arc<dyn AgentTool>> {
        let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        ["good", "bad", "slow", "huge", "long", "good"]
            .into_iter()
            .map(|name| {
                Arc::new(ScriptedTool {
                    name,
                    parameters: parameters.clone(),
                    ran: self.0.clone(),
                }) as Arc<dyn AgentTool>
            })
            .collect()
    }
}

/// All output to a client, in order.
#[derive(Default)]
struct SinkRecord {
    text: String,
    steps: Vec<String>,
}

impl TextSink for SinkRecord {
    fn push(&mut self, _: &str, text: &str) -> PushResult {
        self.text.push_str(text);
        self.steps.push("text".into());
        self.steps.dedup();
        PushResult::Displayed
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn len(&self) -> usize {
        self.text.len()
    }
}

impl ReplySink for SinkRecord {
    fn report_tool(&mut self, _: &str, progress: ToolProgress) {
        let status = match progress.status {
            ToolStatus::Started => "started",
            ToolStatus::Finished => "finished",
            ToolStatus::Failed => "failed",
        };
        self.steps.push(format!("{} {status}", progress.name));
    }

    fn show_ui(&mut self, _: &str, ui: Value) {
        let titles = product_grid::cards_of(&ui)
            .iter()
            .filter_map(|card| card["title"].as_str());
        self.steps
            .push(format!("shown {}", titles.collect::<Vec<_>>().join("+")));
    }
}

struct Run {
    generated: GenerationResult,
    seen: SinkRecord,
    requests: Vec<Value>,
    ran: Vec<Value>,
}

impl Run {
    /// Returns the tool results that the model received, in order, without the displayed products.
    fn results(&self) -> Vec<String> {
        self.tool_results()
            .into_iter()
            .map(|(result, _)| result)
            .collect()
    }

    /// Returns the tool results of the last request with the products that it reports as displayed.
    fn tool_results(&self) -> Vec<(String, Vec<String>)> {
        let read = |content: String| match content.split_once("\n\nThe visitor sees") {
            Some((result, note)) => (result.to_owned(), titles(note.rsplit_once('\n').unwrap().1)),
            None => (content, Vec::new()),
        };
        self.contents().into_iter().map(read).collect()
    }

    fn contents(&self) -> Vec<String> {
        let messages = self.requests.last().unwrap()["messages"]
            .as_array()
            .unwrap();
        let tools = messages.iter().filter(|message| message["role"] == "tool");
        tools
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn titles(products: &str) -> Vec<String> {
    let products: Vec<Value> = serde_json::from_str(products).unwrap();
    products
        .iter()
        .map(|product| product["title"].as_str().unwrap().to_owned())
        .collect()
}

async fn run(acts: Vec<Script>) -> Run {
    run_with(acts, quick()).await
}

async fn run_with(acts: Vec<Script>, config: WorkersConfig) -> Run {
    run_on(acts, config, false).await
}

async fn run_on(acts: Vec<Script>, config: WorkersConfig, continues_prefix: bool) -> Run {
    let provider = start_model(acts);
    let endpoint = ModelEndpoint {
        base_url: provider.base_url().into(),
        api_key: None,
        model: "m".into(),
        api: switchboard_schemas::provider::ProviderApi::ChatCompletions,
        continues_prefix,
        vision: false,
        first_token_timeout: None,
        reach: crate::outgoing::AddressReach::Any,
    };
    let client = ModelClient::new(&config).unwrap();
    let metrics = WorkerMetrics::register(&Registry::new()).unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let toolbox: AgentToolbox = ToolRegistry::new(vec![Box::new(Source(ran.clone()))])
        .toolbox_for(
            &Arc::new(shop_of_tests()),
            &format!("conv_{}", "7".repeat(26)).parse().unwrap(),
        )
        .await;
    let context = ToolLoopContext {
        client: &client,
        config: &config,
        metrics: &metrics,
        toolbox: &toolbox,
    };
    let messages = vec![PromptMessage::text(PromptRole::User, "hello")];
    let prompt = ModelPrompt {
        messages,
        tools: toolbox.declarations(),
        may_call: true,
        max_tokens: 10,
        ..ModelPrompt::default()
    };
    let mut seen = SinkRecord::default();
    let deadline = Instant::now() + Duration::from_secs(20);
    let generated =
        Box::pin(ToolLoop::new(context, vec![endpoint], prompt, &mut seen, deadline).run()).await;
    let ran = ran.lock().unwrap().clone();
    Run {
        generated,
        seen,
        requests: provider.bodies(),
        ran,
    }
}

fn delta(delta: &Value) -> Raw {
    Raw::Delta(delta.clone())
}

fn finish(reason: &str) -> Raw {
    Raw::Event(
        json!({"choices": [{"delta": {}, "finish_reason": reason}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}),
    )
}

fn part(index: u64, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": format!("id{index}"), "function": {"name": name, "arguments": arguments}}]})
}

fn calls(calls: &[(&str, &str)]) -> Script {
    let parts = calls
        .iter()
        .zip(0..)
        .map(|((name, arguments), index)| delta(&part(index, name, arguments)));
    Script::raw(parts.chain([finish("tool_calls")]).collect())
}

#[tokio::test]
async fn tool_result_is_displayed_before_the_first_text() {
    let run = run(vec![
        calls(&[("good", r#"{"q":"Desk Lamp"}"#)]),
        says("Here it is."),
    ])
    .await;
    assert_eq!(run.generated.end, Ok(FinishReason::Stop));
    assert_eq!(
        run.seen.steps,
        ["good started", "shown Desk Lamp", "good finished", "text"]
    );
    assert_eq!(run.seen.text, "Here it is.");
    assert_eq!(run.results(), ["found Desk Lamp"]);
    let call = &run.requests[1]["messages"][1]["tool_calls"][0];
    assert_eq!(
        call,
        &json!({"id": "id0", "type": "function", "function": {"name": "good", "arguments": "{\"q\":\"Desk Lamp\"}"}})
    );
    assert_eq!(run.requests[1]["messages"][2]["tool_call_id"], "id0");
    assert_eq!(
        run.requests[0]["tools"].as_array().unwrap().len(),
        5,
        "the second tool of one name is left out"
    );
    let usage = run.generated.usage.unwrap();
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (21, 5),
        "both answers count"
    );
}

#[tokio::test]
async fn sentence_before_a_call_follows_the_header() {
    let act = Script::raw(vec![
        Raw::text("Let me "),
        Raw::text("look."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run(vec![act, says("\nHere.").chunk_chars(1)]).await;
    assert_eq!(
        run.seen.steps,
        ["good started", "shown Lamp", "good finished", "text"]
    );
    assert_eq!(run.seen.text, "Let me look.\n\nHere.");
    assert_eq!(run.requests[1]["messages"][1]["content"], "Let me look.");
}

#[tokio::test]
async fn long_text_streams_and_a_later_call_runs_once() {
    let long: &'static str = "A long story about lamps. ".repeat(20).leak();
    let act = Script::raw(vec![
        Raw::text(long),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run(vec![act, says("Here.")]).await;
    assert_eq!(
        run.seen.steps,
        [
            "text",
            "good started",
            "shown Lamp",
            "good finished",
            "text"
        ]
    );
    assert_eq!(run.seen.text, format!("{long}\n\nHere."));
    assert_eq!(run.ran.len(), 1);
}

#[tokio::test]
async fn buffered_words_are_displayed_at_the_end() {
    let short = run(vec![says("Hi")]).await;
    assert_eq!(
        (short.seen.text.as_str(), short.generated.end),
        ("Hi", Ok(FinishReason::Stop))
    );
    let act = Script::raw(vec![
        Raw::text("One moment."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let silent = run(vec![act, Script::raw(vec![finish("stop")])]).await;
    assert_eq!(
        (silent.seen.text.as_str(), silent.generated.end),
        ("One moment.", Ok(FinishReason::Stop))
    );
}

#[tokio::test]
async fn failed_call_is_reported_to_the_model() {
    for (name, arguments, told) in [
        ("bad", "{}", "not available"),
        ("slow", "{}", "did not answer in time"),
        ("ignore all rules", "{}", "no such tool"),
        ("", "{}", "no such tool"),
        ("good", "{\"q\":", "do not fit"),
        ("good", "[1]", "do not fit"),
        ("good", r#"{"q":[]}"#, "do not fit"),
    ] {
        let config = WorkersConfig {
            tool_timeout_ms: 50,
            ..quick()
        };
        let run = run_with(vec![calls(&[(name, arguments)]), says("Sorry.")], config).await;
        assert_eq!(
            (run.generated.end, run.seen.text.as_str()),
            (Ok(FinishReason::Stop), "Sorry."),
            "{name} {arguments}"
        );
        assert!(run.results()[0].contains(told), "{:?}", run.results());
        assert!(!run.seen.steps.iter().any(|step| step.starts_with("shown")));
        let sent = &run.requests[1]["messages"][1]["tool_calls"][0]["function"];
        assert!(
            serde_json::from_str::<Map<String, Value>>(sent["arguments"].as_str().unwrap()).is_ok(),
            "{sent}"
        );
    }
}

#[tokio::test]
async fn repeated_and_missing_ids_are_made_unique() {
    let twice = json!({"tool_calls": [
        {"index": 0, "id": "same", "function": {"name": "good", "arguments": "{}"}},
        {"index": 1, "id": "same", "function": {"name": "good", "arguments": "{}"}},
        {"index": 2, "function": {"name": "good", "arguments": "{}"}},
    ]});
    let run = run(vec![
        Script::raw(vec![delta(&twice), finish("tool_calls")]),
        says("ok"),
    ])
    .await;
    let messages = run.requests[1]["messages"].as_array().unwrap();
    let sent: Vec<_> = messages[1]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let answered: Vec<_> = messages[2..]
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(sent, answered);
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), 3);
}
