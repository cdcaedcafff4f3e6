//! Fuzzes reply assembly with lost, repeated and reordered frames, pushed or read from the log.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;
use switchboard_schemas::reply_event::{Frame, FrameBody};

/// True if pushed, attempt and generation in few values, sequence number, offset, text and kind.
type Sketch<'a> = (bool, u8, u64, u64, &'a str, u8);

fn head() -> FrameBody {
    let id = "0".repeat(26);
    let head = serde_json::json!({
        "conversation_id": format!("conv_{id}"), "agent_id": format!("agt_{id}"), "agent_name": "a",
        "routing_reason": null, "model": "m", "ui_spec": null
    });
    FrameBody::Head(Box::new(serde_json::from_value(head).expect("a head")))
}

fn frame(sketch: Sketch<'_>) -> (bool, Frame) {
    let (pushed, numbers, seq, offset, text, kind) = sketch;
    let body = match kind % 4 {
        0 => head(),
        1 => FrameBody::Ui(serde_json::json!(offset)),
        _ => FrameBody::Text {
            offset,
            text: text.to_owned().into(),
        },
    };
    (
        pushed,
        Frame {
            attempt: u32::from(numbers % 4),
            generation: u32::from(numbers / 4 % 4),
            seq,
            body,
        },
    )
}

fuzz_target!(|sketches: Vec<Sketch<'_>>| fuzzing::reply_frames(
    sketches.into_iter().map(frame).collect()
));
