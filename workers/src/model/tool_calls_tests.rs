//! Tests of tool calls in fragments: any split results in the same calls, and never in a part of
//! one.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::model::{chunk, output::ModelOutput};

fn collect(deltas: &[Value]) -> Vec<ToolCall> {
    let mut calls = ToolCalls::default();
    for delta in deltas {
        let data = json!({ "choices": [{ "delta": delta }] }).to_string();
        let mut output = ModelOutput::new(true, false);
        chunk::take_data(data.as_bytes(), &mut output);
        output
            .fragments
            .into_iter()
            .for_each(|fragment| calls.push_fragment(fragment));
    }
    calls.into_calls(false)
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: Ok(arguments.into()),
        extras: Map::new(),
        function_extras: Map::new(),
    }
}

fn calls(list: &Value) -> Value {
    json!({ "tool_calls": list })
}

const LAMPS: &str = r#"{"query":"Lampe „Süd“ 🦀","price_max":50}"#;

#[test]
fn interleaved_fragments_of_several_indexes_are_several_calls() {
    let got = collect(&[
        calls(
            &json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "search_products", "arguments": ""}}]),
        ),
        calls(
            &json!([{"index": 1, "id": "b", "function": {"name": "search_products", "arguments": "{\"query\""}}]),
        ),
        calls(
            &json!([{"index": 0, "function": {"arguments": "{\"query\":"}}, {"index": 1, "function": {"arguments": ":\"mug\"}"}}]),
        ),
        calls(&json!([{"index": 0, "function": {"arguments": "\"lamp\"}"}}])),
    ]);
    let want = [
        call("a", "search_products", r#"{"query":"lamp"}"#),
        call("b", "search_products", r#"{"query":"mug"}"#),
    ];
    assert_eq!(got, want);
}

#[test]
fn whole_call_is_parsed_in_every_server_format() {
    let want = [call("a", "find", r#"{"q":1}"#)];
    let function = json!({"name": "find", "arguments": "{\"q\":1}"});
    for deltas in [
        vec![calls(
            &json!([{"index": 0, "id": "a", "function": function}]),
        )],
        // Without an index; an index as text; arguments as an object; a single call; a flat call.
        vec![calls(&json!([{"id": "a", "function": function}]))],
        vec![calls(
            &json!([{"index": "0", "id": "a", "function": function}]),
        )],
        vec![calls(
            &json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": {"q": 1}}}]),
        )],
        vec![calls(&json!({"index": 0, "id": "a", "function": function}))],
        vec![calls(
            &json!([{"index": 0, "id": "a", "name": "find", "arguments": "{\"q\":1}"}]),
        )],
        // The name in pieces, repeated, or after the id; the id repeated; the whole call repeated.
        vec![
            calls(&json!([{"index": 0, "id": "a", "function": {"name": "fi", "arguments": null}}])),
            calls(&json!([{"index": 0, "function": {"name": "nd"}}])),
            calls(&json!([{"index": 0, "function": {"arguments": "{\"q\":1}"}}])),
        ],
        vec![
            calls(
                &json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": "{\"q\""}}]),
            ),
            calls(
                &json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": ":1}"}}]),
            ),
        ],
        vec![
            calls(
                &json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": "{\"q\""}}]),
            ),
            calls(
                &json!([{"index": 0, "id": "other", "function": {"name": "find", "arguments": ":1}"}}]),
            ),
        ],
        vec![
            calls(&json!([{"index": 0, "id": "a", "function": function}])),
            calls(&json!([{"index": 0, "id": "a", "function": function}])),
        ],
        vec![
            calls(&json!([{"id": "a"}])),
            calls(&json!([{"function": {"name": "find"}}])),
            calls(&json!([{"function": {"arguments": "{\"q\":1}"}}])),
        ],
    ] {
        assert_eq!(collect(&deltas), want, "{deltas:?}");
    }
    let old = collect(&[
        json!({"function_call": {"name": "find", "arguments": "{\"q\""}}),
        json!({"function_call": {"arguments": ":1}"}}),
    ]);
    assert_eq!(old, [call("", "find", r#"{"q":1}"#)]);
}

#[test]
fn whole_calls_under_one_index_or_none_are_several() {
    let want = [call("a", "find", "{}"), call("b", "find", "{}")];
    let whole = |id: &str, index: Value| json!({"index": index, "id": id, "function": {"name": "find", "arguments": "{}"}});
    assert_eq!(
        collect(&[calls(&json!([whole("a", json!(0)), whole("b", json!(0))]))]),
        want
    );
    assert_eq!(
        collect(&[
            calls(&json!([whole("a", Value::Null)])),
            calls(&json!([whole("b", Value::Null)]))
        ]),
        want
    );
    let nameless = json!({"function": {"name": "find", "arguments": "{}"}});
    assert_eq!(collect(&[calls(&json!([nameless, nameless]))]).len(), 2);
}

#[test]
fn unreadable_and_cut_calls_are_reported_and_not_run() {
    let begun = json!({"index": 0, "id": "a", "function": {"name": "find", "arguments": "{}"}});
    for odd in [
        json!("text"),
        json!([]),
        json!({"index": 0, "function": {"name": 7}}),
    ] {
        let got = collect(&[calls(&json!([begun, odd]))]);
        assert_eq!(got[0].arguments, Err(UnusableCall::Unreadable), "{odd}");
    }
    let mut calls = ToolCalls::default();
    let fragment = |arguments: &str| ToolCallFragment {
        index: Some(0),
        name: "find".into(),
        arguments: arguments.into(),
        readable: true,
        ..ToolCallFragment::default()
    };
    calls.push_fragment(fragment("{}"));
    assert_eq!(calls.into_calls(true)[0].arguments, Err(UnusableCall::Cut));
    let mut calls = ToolCalls::default();
    for _ in 0..100 {
        calls.push_fragment(fragment(&"x".repeat(1 << 10)));
    }
    assert!(calls.bytes <= ARGUMENTS_BYTES_MAX);
    assert_eq!(
        calls.into_calls(false)[0].arguments,
        Err(UnusableCall::TooLarge)
    );
}

proptest! {
    #[test]
    fn split_and_interleaved_calls_are_assembled(
        cuts in prop::collection::vec((0usize..3, any::<prop::sample::Index>()), 0..24),
    ) {
        let text: Vec<char> = LAMPS.chars().collect();
        let mut done = [0usize; 3];
        let mut deltas: Vec<Value> = (0..3)
            .map(|index| calls(&json!([{"index": index, "id": format!("c{index}"), "function": {"name": "find", "arguments": ""}}])))
            .collect();
        let rest = (0..3).map(|call| (call, None));
        for (call, cut) in cuts.iter().map(|(call, cut)| (*call, Some(cut))).chain(rest) {
            let left = text.len() - done[call];
            let length = cut.map_or(left, |cut| cut.index(left + 1));
            let piece: String = text[done[call]..done[call] + length].iter().collect();
            done[call] += length;
            deltas.push(calls(&json!([{"index": call, "function": {"arguments": piece}}])));
        }
        let want: Vec<_> = (0..3).map(|index| call(&format!("c{index}"), "find", LAMPS)).collect();
        prop_assert_eq!(collect(&deltas), want);
    }

    #[test]
    fn tool_calls_of_any_fragments_are_bounded(
        fragments in prop::collection::vec((prop::option::of(0u64..40), "[a-c]{0,2}", "[a-z]{0,80}", "\\PC{0,40}", any::<bool>()), 0..200),
        cut: bool,
    ) {
        let mut calls = ToolCalls::default();
        for (index, id, name, arguments, readable) in fragments {
            calls.push_fragment(ToolCallFragment { index, id, name, arguments, readable, ..ToolCallFragment::default() });
        }
        let got = calls.into_calls(cut);
        prop_assert!(got.len() <= CALLS_KEPT_MAX);
        prop_assert!(got.iter().all(|call| call.name.len() <= 64 && (!cut || call.arguments.is_err())));
    }
}
