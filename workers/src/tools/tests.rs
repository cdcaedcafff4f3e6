//! Claims about replies with tools, against providers that behave and providers that do not.

mod shown;

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
    reply_event::{ReplyFailure, ToolProgress, ToolStatus},
};
use tokio::time::Instant;

use super::{
    Tool, ToolFailure, ToolOutcome, ToolSource,
    holding_sink::ReplySink,
    product_grid,
    registry::{ToolRegistry, Toolbox},
    rounds::{Means, Rounds},
};
use crate::{
    config::WorkersConfig,
    inference::shop_of_tests,
    metrics::WorkerMetrics,
    model::{
        Endpoint, Prompt, PromptMessage, Role,
        generation::{Generated, Pushed, TextSink},
        openai::ModelClient,
    },
    testing::{Act, Piece, Provider, complete, quick},
};

/// A tool of these tests: `good` finds a lamp, or what and how many it is asked for; `bad` fails, `slow` never answers,
/// `huge` finds too much, `long` says too much of it.
struct Scripted {
    name: &'static str,
    parameters: Value,
    ran: Arc<Mutex<Vec<Value>>>,
}

#[async_trait]
impl Tool for Scripted {
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
        let ui = product_grid::of(
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
    async fn tools(&self, _: &Arc<switchboard_schemas::agent::Agent>) -> Vec<Arc<dyn Tool>> {
        let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        ["good", "bad", "slow", "huge", "long", "good"]
            .into_iter()
            .map(|name| {
                Arc::new(Scripted {
                    name,
                    parameters: parameters.clone(),
                    ran: self.0.clone(),
                }) as Arc<dyn Tool>
            })
            .collect()
    }
}

/// Everything that a client could have been shown, in order.
#[derive(Default)]
struct Seen {
    text: String,
    steps: Vec<String>,
}

impl TextSink for Seen {
    fn push(&mut self, _: &str, text: &str) -> Pushed {
        self.text.push_str(text);
        self.steps.push("text".into());
        self.steps.dedup();
        Pushed::Shown
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn len(&self) -> usize {
        self.text.len()
    }
}

impl ReplySink for Seen {
    fn tool(&mut self, _: &str, progress: ToolProgress) {
        let status = match progress.status {
            ToolStatus::Started => "started",
            ToolStatus::Finished => "finished",
            ToolStatus::Failed => "failed",
        };
        self.steps.push(format!("{} {status}", progress.name));
    }

    fn show(&mut self, _: &str, ui: Value) {
        let titles = product_grid::cards_of(&ui)
            .iter()
            .filter_map(|card| card["title"].as_str());
        self.steps
            .push(format!("shown {}", titles.collect::<Vec<_>>().join("+")));
    }
}

struct Run {
    generated: Generated,
    seen: Seen,
    requests: Vec<Value>,
    ran: Vec<Value>,
}

impl Run {
    /// What the model was told of its calls, in order, without what it was told to be shown.
    fn results(&self) -> Vec<String> {
        self.told().into_iter().map(|(result, _)| result).collect()
    }

    /// What the model was told of its calls in its last request, and the products that it was told to be shown.
    fn told(&self) -> Vec<(String, Vec<String>)> {
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

async fn run(acts: Vec<Act>) -> Run {
    run_with(acts, quick()).await
}

async fn run_with(acts: Vec<Act>, config: WorkersConfig) -> Run {
    run_on(acts, config, false).await
}

async fn run_on(acts: Vec<Act>, config: WorkersConfig, continues_prefix: bool) -> Run {
    let provider = Provider::start(acts).await;
    let endpoint = Endpoint {
        base_url: provider.base_url.clone(),
        api_key: None,
        model: "m".into(),
        continues_prefix,
    };
    let client = ModelClient::new(&config).unwrap();
    let metrics = WorkerMetrics::register(&Registry::new()).unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let toolbox: Toolbox = ToolRegistry::new(vec![Box::new(Source(ran.clone()))])
        .of(&Arc::new(shop_of_tests()))
        .await;
    let means = Means {
        client: &client,
        config: &config,
        metrics: &metrics,
        toolbox: &toolbox,
    };
    let messages = vec![PromptMessage::text(Role::User, "hello")];
    let prompt = Prompt {
        messages,
        tools: toolbox.declarations(),
        may_call: true,
        temperature: None,
        max_tokens: 10,
    };
    let mut seen = Seen::default();
    let deadline = Instant::now() + Duration::from_secs(20);
    let generated =
        Box::pin(Rounds::new(means, vec![endpoint], prompt, &mut seen, deadline).run()).await;
    let ran = ran.lock().unwrap().clone();
    Run {
        generated,
        seen,
        requests: provider.requests(),
        ran,
    }
}

fn delta(delta: &Value) -> Piece {
    Piece::Event(json!({"choices": [{"delta": delta}]}))
}

fn finish(reason: &str) -> Piece {
    Piece::Event(
        json!({"choices": [{"delta": {}, "finish_reason": reason}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}),
    )
}

fn part(index: u64, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": format!("id{index}"), "function": {"name": name, "arguments": arguments}}]})
}

fn calls(calls: &[(&str, &str)]) -> Act {
    let parts = calls
        .iter()
        .zip(0..)
        .map(|((name, arguments), index)| delta(&part(index, name, arguments)));
    Act::Stream(parts.chain([finish("tool_calls")]).collect())
}

#[tokio::test]
async fn what_a_tool_finds_is_shown_before_the_first_text() {
    let run = run(vec![
        calls(&[("good", r#"{"q":"Desk Lamp"}"#)]),
        complete(&["Here it is."]),
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
        (17, 5),
        "both answers count"
    );
}

#[tokio::test]
async fn a_sentence_before_a_call_is_kept_and_does_not_take_the_header() {
    let act = Act::Stream(vec![
        Piece::Text("Let me "),
        Piece::Text("look."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run(vec![act, complete(&["\n", "Here."])]).await;
    assert_eq!(
        run.seen.steps,
        ["good started", "shown Lamp", "good finished", "text"]
    );
    assert_eq!(run.seen.text, "Let me look.\n\nHere.");
    assert_eq!(run.requests[1]["messages"][1]["content"], "Let me look.");
}

#[tokio::test]
async fn a_long_text_streams_and_a_call_behind_it_still_runs_once() {
    let long: &'static str = "A long story about lamps. ".repeat(20).leak();
    let act = Act::Stream(vec![
        Piece::Text(long),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run(vec![act, complete(&["Here."])]).await;
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
async fn held_words_are_shown_when_nothing_follows_them() {
    let short = run(vec![complete(&["Hi"])]).await;
    assert_eq!(
        (short.seen.text.as_str(), short.generated.end),
        ("Hi", Ok(FinishReason::Stop))
    );
    let act = Act::Stream(vec![
        Piece::Text("One moment."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let silent = run(vec![act, Act::Stream(vec![finish("stop")])]).await;
    assert_eq!(
        (silent.seen.text.as_str(), silent.generated.end),
        ("One moment.", Ok(FinishReason::Stop))
    );
}

#[tokio::test]
async fn whatever_goes_wrong_with_a_call_is_told_to_the_model_and_the_reply_goes_on() {
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
        let run = run_with(
            vec![calls(&[(name, arguments)]), complete(&["Sorry."])],
            config,
        )
        .await;
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
async fn a_huge_result_is_shortened_and_shows_nothing() {
    let run = run(vec![calls(&[("huge", "{}")]), complete(&["ok"])]).await;
    assert!(run.results()[0].len() <= 16_384 && run.results()[0].ends_with("[shortened]"));
    assert_eq!(run.seen.steps, ["huge started", "huge finished", "text"]);
}

#[tokio::test]
async fn calls_of_one_round_run_side_by_side_and_are_shown_together() {
    let interleaved = Act::Stream(vec![
        delta(&part(0, "good", "{\"q\"")),
        delta(&part(1, "good", "{\"q\":\"Mu")),
        delta(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": ":\"Lamp\"}"}}, {"index": 1, "function": {"arguments": "g\"}"}}]}),
        ),
        finish("stop"),
    ]);
    let run = run(vec![interleaved, complete(&["Both."])]).await;
    assert_eq!(run.ran, [json!({"q": "Lamp"}), json!({"q": "Mug"})]);
    assert!(
        run.seen.steps.contains(&"shown Lamp+Mug".to_owned()),
        "{:?}",
        run.seen.steps
    );
    assert_eq!(run.results(), ["found Lamp", "found Mug"]);
}

#[tokio::test]
async fn repeated_and_missing_ids_are_made_unique() {
    let twice = json!({"tool_calls": [
        {"index": 0, "id": "same", "function": {"name": "good", "arguments": "{}"}},
        {"index": 1, "id": "same", "function": {"name": "good", "arguments": "{}"}},
        {"index": 2, "function": {"name": "good", "arguments": "{}"}},
    ]});
    let run = run(vec![
        Act::Stream(vec![delta(&twice), finish("tool_calls")]),
        complete(&["ok"]),
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

#[tokio::test]
async fn five_rounds_run_and_a_sixth_is_refused() {
    let run = run(vec![calls(&[("good", "{}")])]).await;
    assert_eq!((run.ran.len(), run.requests.len()), (5, 6));
    assert!(
        run.requests[..5]
            .iter()
            .all(|request| request.get("tool_choice").is_none())
    );
    assert_eq!(run.requests[5]["tool_choice"], "none");
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Ok(FinishReason::Stop), "- Lamp, $9")
    );
    let mut acts = vec![calls(&[("good", "{}")]); 5];
    acts.push(complete(&["At last."]));
    let ends = super::tests::run(acts).await;
    assert_eq!(
        (ends.generated.end, ends.seen.text.as_str()),
        (Ok(FinishReason::Stop), "At last.")
    );
}

#[tokio::test]
async fn calls_beyond_their_bounds_are_answered_and_not_run() {
    let six = calls(&[("good", "{}"); 6]);
    let run = run(vec![six.clone(), six.clone(), six, complete(&["ok"])]).await;
    assert_eq!(run.ran.len(), 10, "four, four, and two: ten in one reply");
    let results = run.results();
    assert_eq!(
        (
            results.len(),
            results
                .iter()
                .filter(|result| result.contains("no more calls"))
                .count()
        ),
        (18, 8)
    );
}

#[tokio::test]
async fn a_call_is_never_run_from_a_stream_that_was_cut() {
    for end in [
        vec![],
        vec![Piece::Raw("data: [DONE]\n\n")],
        vec![Piece::Event(json!({"error": {"message": "x"}}))],
        vec![Piece::Hang],
    ] {
        let begun = [
            Piece::Text("Let me look."),
            delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        ];
        let cut = Act::Stream(begun.into_iter().chain(end).collect());
        let run = run(vec![cut, complete(&["Without."])]).await;
        assert_eq!(
            (run.ran.len(), run.seen.text.as_str()),
            (0, "Without."),
            "what was held was never said"
        );
    }
    let begun = delta(&part(0, "good", "{}"));
    let garbage = run(vec![
        Act::Stream(vec![begun, Piece::Raw("data: {\n\n")]),
        complete(&["Without."]),
    ])
    .await;
    assert_eq!(
        (garbage.ran.len(), garbage.generated.end),
        (0, Err(ReplyFailure::ModelError)),
        "no answer at all"
    );
    let limit = Act::Stream(vec![
        delta(&part(0, "good", r#"{"q":"Lamp"}"#)),
        finish("length"),
    ]);
    let run = run(vec![limit, complete(&["Without."])]).await;
    assert_eq!(run.ran.len(), 0);
    assert!(run.results()[0].contains("cut off"), "{:?}", run.results());
}

#[tokio::test]
async fn tools_have_their_time_together_too() {
    let config = WorkersConfig {
        tool_timeout_ms: 10_000,
        tools_before_text_timeout_ms: 200,
        ..quick()
    };
    let begun = Instant::now();
    let slow = calls(&[("slow", "{}"), ("slow", "{}")]);
    let run = run_with(vec![slow.clone(), slow, complete(&["ok"])], config).await;
    assert_eq!(run.seen.text, "ok");
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_provider_that_takes_no_tools_answers_without_them() {
    for status in [400, 422, 500] {
        let refused = Act::Answer(status, &[("content-type", "application/json")], "{}");
        let refusals = if status == 500 { 3 } else { 1 };
        let mut acts = vec![refused; refusals];
        acts.push(complete(&["Words alone."]));
        let run = run(acts).await;
        assert_eq!(
            (run.generated.end, run.seen.text.as_str()),
            (Ok(FinishReason::Stop), "Words alone."),
            "{status}"
        );
        assert!(run.requests.last().unwrap().get("tools").is_none());
    }
    let always = run(vec![Act::Answer(400, &[], "")]).await;
    assert_eq!(
        (always.generated.end, always.requests.len()),
        (Err(ReplyFailure::ModelError), 2)
    );
}

#[tokio::test]
async fn a_cut_after_text_in_a_later_round_is_not_begun_anew() {
    let cut = Act::Stream(vec![Piece::Text("Here are the l")]);
    let run = run(vec![calls(&[("good", "{}")]), cut, complete(&["never"])]).await;
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Err(ReplyFailure::ModelError), "Here are the l")
    );
    assert_eq!((run.ran.len(), run.requests.len()), (1, 2));
}

#[tokio::test]
async fn what_goes_on_with_a_cut_text_calls_no_tool() {
    let cut = Act::Stream(vec![Piece::Text("Here are the l")]);
    let more = Act::Stream(vec![
        Piece::Text("amps."),
        delta(&part(0, "good", "{}")),
        finish("tool_calls"),
    ]);
    let run = run_on(vec![calls(&[("good", "{}")]), cut, more], quick(), true).await;
    assert_eq!(
        (run.generated.end, run.seen.text.as_str()),
        (Ok(FinishReason::Stop), "Here are the lamps.")
    );
    assert_eq!((run.ran.len(), run.requests.len()), (1, 3));
    let asked = (
        &run.requests[2]["tool_choice"],
        &run.requests[2]["continue_final_message"],
    );
    assert_eq!(asked, (&json!("none"), &json!(true)));
}
