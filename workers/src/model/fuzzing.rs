//! Feeds arbitrary bytes to the reader of model streams, in both dialects and in any pieces.

use super::{
    chunk,
    event_stream::EventParser,
    model_stream::{TakeData, take_event},
    output::{ModelOutput, merge_extra},
    responses,
    tool_calls::ToolCalls,
};

/// Checks that a body has the same output whole and cut into pieces of these sizes.
pub(crate) fn check_stream(body: &[u8], sizes: &[u8]) {
    for take_data in [chunk::take_data as TakeData, responses::take_data] {
        let whole = read(&[body], take_data);
        let mut pieces = Vec::new();
        let mut rest = body;
        for size in sizes {
            let (piece, behind) = rest.split_at(usize::from(*size).min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        assert_eq!(read(&pieces, take_data), whole);
    }
}

/// Returns everything that a follower of a stream sees, as text.
fn read(pieces: &[&[u8]], take_data: TakeData) -> String {
    let (mut events, mut output) = (EventParser::default(), ModelOutput::new(true, false));
    for piece in pieces {
        events.push(piece, |event| take_event(event, take_data, &mut output));
    }
    events.finish(|event| take_event(event, take_data, &mut output));
    output.finish_text();
    let mut calls = ToolCalls::default();
    for fragment in output.fragments.drain(..) {
        calls.push_fragment(fragment);
    }
    let mut extras = serde_json::Value::Null;
    merge_extra(&mut extras, output.extras.into(), false);
    let calls = calls.into_calls(false);
    format!(
        "{:?} {:?} {:?} {:?} {} {calls:?} {extras}",
        output.text, output.finish, output.usage, output.failure, output.is_done
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check_stream;

    /// Pieces of streams of both dialects, sound and odd.
    const LINES: [&str; 12] = [
        r#"data: {"choices":[{"delta":{"content":"é🦀\ud83e"}}]}"#,
        r#"data: {"choices":[{"delta":{"content":"\udd80<think>"},"finish_reason":"stop"}]}"#,
        r#"data: {"choices":[{"delta":{"reasoning":"a","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}}]}}]}"#,
        r#"data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":"2"}}"#,
        r#"data: {"type":"response.output_text.delta","delta":"é\ud83e"}"#,
        r#"data: {"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":3}}}"#,
        "data: [DONE]",
        "event: error",
        ": comment",
        "data:",
        "data: {",
        "",
    ];

    proptest! {
        #[test]
        fn any_split_of_a_stream_has_the_same_output(
            lines in prop::collection::vec((prop::sample::select(&LINES[..]), prop::sample::select(vec!["\n", "\n\n", "\r\n\r\n"])), 0..12),
            sizes: Vec<u8>,
        ) {
            let body: String = lines.into_iter().map(|(line, ending)| format!("{line}{ending}")).collect();
            check_stream(body.as_bytes(), &sizes);
        }

        #[test]
        fn arbitrary_bytes_are_read_in_any_pieces(body: Vec<u8>, sizes: Vec<u8>) {
            check_stream(&body, &sizes);
        }
    }
}
