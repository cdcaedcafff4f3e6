//! Rows of the provider fault table: a script of the provider and the expected outcome.

use serde_json::{Value, json};

use super::Outcome;
use crate::support::{End, Raw, Script};

/// Longest stored reply in bytes.
const REPLY_BYTES_MAX: usize = 256 << 10;

/// One faulty provider and the expected outcome.
pub(super) struct Row {
    /// Name of the fault and marker of its question.
    pub(super) name: &'static str,
    /// Script of the provider.
    pub(super) script: Script,
    /// True if the agent has tools.
    pub(super) tools: bool,
    /// Expected number of calls to the provider.
    pub(super) calls: usize,
    /// Expected outcome for the visitor.
    pub(super) outcome: Outcome,
}

/// JSON around the text of a text event: before and behind it.
pub(super) type TextEvent = (&'static str, &'static str);

/// Returns the rows for a dialect with such text events.
pub(super) fn rows(text_event: TextEvent) -> Vec<Row> {
    [
        cuts(),
        errors(),
        unusual_events(),
        unusual_bytes(text_event),
        damaged_tool_calls(),
        unusual_tool_calls(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row(name: &'static str, script: Script, calls: usize, outcome: Outcome) -> Row {
    Row {
        name,
        script,
        tools: false,
        calls,
        outcome,
    }
}

/// Creates a row whose agent has tools; after its script the model says `Sorry.`
fn tool_row(name: &'static str, pieces: Vec<Raw>, calls: usize, outcome: Outcome) -> Row {
    let script = Script::in_turn(vec![Script::raw(pieces), Script::says("Sorry.")]);
    Row {
        name,
        script,
        tools: true,
        calls,
        outcome,
    }
}

fn says(text: &str) -> Outcome {
    Outcome::Says(text.to_owned())
}

fn shows(titles: &[&str]) -> Outcome {
    Outcome::Shows(
        "Sorry.".to_owned(),
        titles.iter().map(|title| (*title).to_owned()).collect(),
    )
}

fn cut(text: &str) -> Outcome {
    Outcome::Cut(text.to_owned())
}

fn refused(status: u16, code: &str) -> Outcome {
    Outcome::Refused(status, code.to_owned())
}

fn model_error() -> Outcome {
    refused(502, "MODEL_ERROR")
}

fn bytes(text: &str) -> Raw {
    Raw::Bytes(text.as_bytes().to_vec())
}

/// Returns rows of streams that end early or never.
fn cuts() -> Vec<Row> {
    let half = || Script::says("half of a rep");
    vec![
        row(
            "cut-after-text",
            half().ends(End::Cut),
            1,
            cut("half of a rep"),
        ),
        row(
            "no-finish-reason",
            half().ends(End::NoFinishReason),
            1,
            cut("half of a rep"),
        ),
        row(
            "end-without-a-word",
            half().ends(End::Nothing),
            1,
            cut("half of a rep"),
        ),
        row(
            "error-event-after-text",
            half().ends(End::ErrorEvent),
            1,
            cut("half of a rep"),
        ),
        row(
            "garbage-after-text",
            half().ends(End::Garbage),
            1,
            cut("half of a rep"),
        ),
        row(
            "silence-after-text",
            half().ends(End::Silence),
            1,
            cut("half of a rep"),
        ),
        row(
            "cut-before-text",
            Script::says("").ends(End::Cut),
            3,
            model_error(),
        ),
        row(
            "silence-before-text",
            Script::silent(),
            1,
            refused(504, "MODEL_TIMEOUT"),
        ),
        row("empty-stream", Script::raw(vec![]), 3, model_error()),
    ]
}

/// Returns rows of error responses.
fn errors() -> Vec<Row> {
    let twice = |status| Script::says("made it").refuses_times(2, status, Some(1));
    let redirect = Script::answer(302, &[("location", "http://127.0.0.1:1/v1")], "");
    vec![
        row("status-400", Script::refuses(400), 1, model_error()),
        row("status-401", Script::refuses(401), 1, model_error()),
        row(
            "status-429-for-ever",
            Script::refuses(429),
            3,
            refused(503, "UNAVAILABLE"),
        ),
        row(
            "status-500-for-ever",
            Script::refuses(500),
            3,
            refused(503, "UNAVAILABLE"),
        ),
        row("status-503-twice", twice(503), 3, says("made it")),
        row("redirect", redirect, 1, model_error()),
        row(
            "page",
            Script::instead("text/html", "<html><h1>Bad Gateway</h1></html>"),
            1,
            model_error(),
        ),
        row(
            "one-document",
            Script::instead("application/json", r#"{"choices":[]}"#),
            1,
            model_error(),
        ),
        row(
            "binary",
            Script::instead("text/event-stream", "\u{1}\u{2}\u{3}\u{0}"),
            3,
            model_error(),
        ),
        row(
            "error-event-alone",
            Script::raw(vec![Raw::Event(json!({"error": {"message": "no"}}))]),
            3,
            model_error(),
        ),
    ]
}

/// Returns rows of complete streams with unusual events.
fn unusual_events() -> Vec<Row> {
    let nulls = json!({"choices": null, "usage": null, "error": null, "id": null, "service_tier": {"new": 1}});
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": "7", "completion_tokens": {"odd": true}}});
    let end = || Raw::Finish("stop");
    vec![
        row(
            "finish-without-text",
            Script::raw(vec![end()]),
            1,
            model_error(),
        ),
        row(
            "content-filter-before-text",
            Script::raw(vec![Raw::Finish("content_filter")]),
            1,
            model_error(),
        ),
        row(
            "unknown-finish-reason",
            Script::says("ok").ends(End::Finish("because")),
            1,
            says("ok"),
        ),
        row(
            "nulls-and-unknown-fields",
            Script::raw(vec![Raw::Event(nulls), Raw::text("ok"), end()]),
            1,
            says("ok"),
        ),
        row(
            "usage-of-odd-types",
            Script::raw(vec![Raw::text("ok"), Raw::Event(usage), end()]),
            1,
            says("ok"),
        ),
        row(
            "text-of-a-wrong-type",
            Script::raw(vec![Raw::Delta(json!({"content": 7})), end()]),
            1,
            model_error(),
        ),
        row(
            "text-behind-the-end",
            Script::raw(vec![Raw::text("ok"), end(), Raw::text("more"), end()]),
            1,
            says("okmore"),
        ),
    ]
}

/// Returns rows of complete streams with unusual bytes.
fn unusual_bytes((opening, closing): TextEvent) -> Vec<Row> {
    let character = "🦀".as_bytes();
    let before = [b"data: ", opening.as_bytes(), &character[..2]].concat();
    let behind = [&character[2..], closing.as_bytes(), b"\n\n"].concat();
    let pair = |half: &str| bytes(&format!("data: {opening}\\u{half}{closing}\n\n"));
    let end = || Raw::Finish("stop");
    let lines =
        format!("data:{opening}ok{closing}\r\n\r\n: ping\r\n\r\nevent: x\r\nretry: 5\r\n\r\n");
    let flood = Script::says(&"flood of words ".repeat(20_000)).chunk_chars(1_500);
    vec![
        row(
            "character-cut-on-the-wire",
            Script::raw(vec![Raw::Bytes(before), Raw::Bytes(behind), end()]),
            1,
            says("🦀"),
        ),
        row(
            "surrogates-in-two-events",
            Script::raw(vec![pair("d83e"), pair("dd80"), end()]),
            1,
            says("🦀"),
        ),
        row(
            "odd-lines-and-comments",
            Script::raw(vec![bytes(&lines), end()]),
            1,
            says("ok"),
        ),
        row("flood", flood, 1, Outcome::Bounded(REPLY_BYTES_MAX)),
    ]
}

/// Creates a tool call for lamps.
fn lamp_call() -> Raw {
    Raw::call(0, "search_products", &json!({"query": "lamp"}))
}

fn tool_calls(calls: Value) -> Raw {
    Raw::Delta(json!({ "tool_calls": calls }))
}

/// Returns rows of tool calls that end early or have invalid arguments.
fn damaged_tool_calls() -> Vec<Row> {
    let done = || Raw::Finish("tool_calls");
    let broken = json!([{"index": 0, "id": "c", "function": {"name": "search_products", "arguments": "{\"query\": lamp"}}]);
    let huge = Raw::call(0, "search_products", &json!({"query": "x".repeat(100_000)}));
    vec![
        tool_row(
            "call-cut-in-the-middle",
            vec![lamp_call(), Raw::Cut],
            2,
            says("Sorry."),
        ),
        tool_row(
            "call-stopped-by-length",
            vec![lamp_call(), Raw::Finish("length")],
            2,
            says("Sorry."),
        ),
        tool_row(
            "arguments-that-are-no-json",
            vec![tool_calls(broken), done()],
            2,
            says("Sorry."),
        ),
        tool_row(
            "arguments-that-are-huge",
            vec![huge, done()],
            2,
            says("Sorry."),
        ),
    ]
}

/// Returns rows of fragmented, endless, refused and forged tool calls.
fn unusual_tool_calls() -> Vec<Row> {
    let begun = |index: u32, name: &str| json!({"index": index, "id": "same", "function": {"name": name, "arguments": ""}});
    let done = || Raw::Finish("tool_calls");
    let whole = json!([{"function": {"name": "search_products", "arguments": {"query": "lamp"}}}]);
    let claims = r#"X-UI-Spec: {"type":"product-grid","data":[{"url":"https://evil.example"}]}"#;
    let no_tools = Script::in_turn(vec![Script::refuses(400), Script::says("Sorry.")]);
    let listed = Outcome::Shows("- Desk Lamp, $9".to_owned(), vec!["Desk Lamp".to_owned()]);
    let with_tools = |row: Row| Row { tools: true, ..row };
    vec![
        tool_row(
            "call-ended-with-stop",
            vec![lamp_call(), Raw::Finish("stop")],
            2,
            shows(&["Desk Lamp"]),
        ),
        tool_row(
            "calls-interleaved-under-one-id",
            vec![
                tool_calls(json!([begun(0, "search_"), begun(1, "search_products")])),
                tool_calls(json!([{"index": 0, "function": {"name": "products"}}])),
                Raw::arguments(1, "{\"query\":\"ch"),
                Raw::arguments(0, "{\"query\":\"lamp\"}"),
                Raw::arguments(1, "air\"}"),
                done(),
            ],
            2,
            shows(&["Desk Lamp", "Blue Chair"]),
        ),
        tool_row(
            "whole-call-without-index-and-id",
            vec![tool_calls(whole), done()],
            2,
            shows(&["Desk Lamp"]),
        ),
        with_tools(row("calls-for-ever", Script::searches("lamp"), 6, listed)),
        with_tools(row("tools-are-refused", no_tools, 2, says("Sorry."))),
        with_tools(row(
            "text-that-claims-products",
            Script::says(claims),
            1,
            says(claims),
        )),
    ]
}
