//! Tests of reply assembly: despite lost, repeated and reordered frames the output is a prefix of
//! one generation, and a clean end equals it.

use proptest::{collection::vec, prelude::*, sample::Index};
use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    reply_event::ToolStatus,
};

use super::*;
use crate::testing::head;

fn sha(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn end(text: &str, status: ReplyStatus) -> FrameBody {
    FrameBody::End(Box::new(ReplyEnd {
        status,
        finish_reason: Some(FinishReason::Stop),
        usage: TokenUsage::default(),
        length: text.len() as u64,
        sha256: sha(text),
        response_time_ms: 1,
        failure: None,
        provider_error: None,
    }))
}

/// Returns the log of one generation: a head, the parts as text and the end.
fn log(generation: u32, parts: &[String]) -> Vec<Frame> {
    let mut bodies = vec![FrameBody::Head(Box::new(head()))];
    let mut offset = 0;
    for part in parts {
        bodies.push(FrameBody::Text {
            offset,
            text: part.clone().into(),
        });
        offset += part.len() as u64;
    }
    bodies.push(end(&parts.concat(), ReplyStatus::Completed));
    let numbered = bodies.into_iter().zip(1..);
    numbered
        .map(|(body, seq)| Frame {
            attempt: generation,
            generation,
            seq,
            body,
        })
        .collect()
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    vec("[a-zé🦀]{1,4}", 1..8)
}

#[derive(Default)]
struct Client {
    text: String,
    ended: bool,
    broken: bool,
}

impl Client {
    fn take(&mut self, step: AssemblyStep) {
        if self.ended || self.broken {
            return;
        }
        match step {
            AssemblyStep::Text(bytes) => self.text.push_str(str::from_utf8(&bytes).unwrap()),
            AssemblyStep::Ended(_) => self.ended = true,
            AssemblyStep::Broken(_) => self.broken = true,
            AssemblyStep::Nothing | AssemblyStep::ReplyUpdate(_) | AssemblyStep::Gap => {}
        }
    }
}

proptest! {
    #[test]
    fn output_is_always_a_prefix_of_one_generation(
        first in parts(),
        second in parts(),
        deliveries in vec((any::<bool>(), any::<Index>(), any::<bool>()), 0..60),
    ) {
        let logs = [log(1, &first), log(2, &second)];
        let (mut assembly, mut client) = (ReplyAssembly::default(), Client::default());
        for (newer, index, repair) in deliveries {
            let log = &logs[usize::from(newer)];
            let frame = index.get(log).clone();
            let gap = assembly.apply_frame(frame, FrameSource::Push);
            let repairs = gap == AssemblyStep::Gap && repair && assembly.generation() == Some(u32::from(newer) + 1);
            client.take(gap);
            if repairs {
                let after = usize::try_from(assembly.logged_seq()).unwrap();
                for frame in &log[after.min(log.len())..] {
                    client.take(assembly.apply_frame(frame.clone(), FrameSource::Log));
                }
            }
        }
        let texts = [first.concat(), second.concat()];
        prop_assert!(texts.iter().any(|text| text.starts_with(&client.text)));
        prop_assert!(!client.ended || texts.contains(&client.text));
        prop_assert!(assembly.sent_bytes() >= client.text.len() as u64);
    }

    #[test]
    fn log_returns_its_whole_text_and_a_clean_end_on_every_read(parts in parts(), times in 1..4usize) {
        let (mut assembly, mut client) = (ReplyAssembly::default(), Client::default());
        for frame in std::iter::repeat_n(log(1, &parts), times).flatten() {
            client.take(assembly.apply_frame(frame, FrameSource::Log));
        }
        prop_assert!(client.ended && !client.broken);
        prop_assert_eq!(client.text, parts.concat());
    }

    #[test]
    fn snapshot_continues_only_a_matching_prefix(parts in parts(), other in "[a-z]{9}") {
        let whole = parts.concat();
        for snapshot in [whole.clone(), format!("{other}{whole}")] {
            let same = snapshot.as_bytes().starts_with(parts[0].as_bytes());
            let mut assembly = ReplyAssembly::default();
            for frame in log(1, &parts).into_iter().take(2) {
                assembly.apply_frame(frame, FrameSource::Push);
            }
            let body = FrameBody::Text { offset: 0, text: snapshot.clone().into() };
            let step = assembly.apply_frame(Frame { attempt: 1, generation: 1, seq: 9, body }, FrameSource::Log);
            let rest = &snapshot.as_bytes()[parts[0].len()..];
            match step {
                AssemblyStep::Text(bytes) => prop_assert!(same && bytes == rest),
                AssemblyStep::Nothing => prop_assert!(same && rest.is_empty()),
                step => prop_assert!(!same && step == AssemblyStep::Broken(TextConflict::Mismatch), "{:?}", step),
            }
        }
    }
}

fn accept_all(frames: impl IntoIterator<Item = Frame>) -> (ReplyAssembly, Vec<AssemblyStep>) {
    let mut assembly = ReplyAssembly::default();
    let steps = frames
        .into_iter()
        .map(|frame| assembly.apply_frame(frame, FrameSource::Push))
        .collect();
    (assembly, steps)
}

fn parts_of(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn newer_generation_replaces_an_unsent_one() {
    let [old, new] = [log(1, &parts_of(&["old"])), log(2, &parts_of(&["new"]))];
    let (assembly, steps) = accept_all([
        old[0].clone(),
        new[0].clone(),
        old[1].clone(),
        new[1].clone(),
    ]);
    assert_eq!(
        steps,
        [
            AssemblyStep::ReplyUpdate(ReplyUpdate::Began),
            AssemblyStep::ReplyUpdate(ReplyUpdate::Began),
            AssemblyStep::Nothing,
            AssemblyStep::Text("new".into())
        ]
    );
    assert_eq!(assembly.generation(), Some(2));
}

#[test]
fn newer_generation_breaks_a_transfer_of_an_older_one() {
    let [old, new] = [log(1, &parts_of(&["old"])), log(2, &parts_of(&["new"]))];
    let (_, steps) = accept_all([old[0].clone(), old[1].clone(), new[0].clone()]);
    assert_eq!(steps[2], AssemblyStep::Broken(TextConflict::Restarted));
}

/// Two workers can hold the same attempt after the relay lost its state.
#[test]
fn other_generation_of_the_same_attempt_breaks_the_transfer() {
    let [first, second] = [log(1, &parts_of(&["one"])), log(2, &parts_of(&["two"]))];
    let second = Frame {
        attempt: 1,
        ..second[0].clone()
    };
    let (_, steps) = accept_all([first[0].clone(), first[1].clone(), second]);
    assert_eq!(steps[2], AssemblyStep::Broken(TextConflict::Restarted));
}

#[test]
fn repeated_frame_is_reported_once() {
    let begin = log(1, &[])[0].clone();
    let progress = ToolProgress {
        name: "search_products".into(),
        status: ToolStatus::Started,
    };
    let tool = Frame {
        seq: 2,
        body: FrameBody::Tool(progress.clone()),
        ..begin.clone()
    };
    let (assembly, steps) = accept_all([begin, tool.clone(), tool]);
    assert_eq!(
        steps[1..],
        [
            AssemblyStep::ReplyUpdate(ReplyUpdate::Tool(progress)),
            AssemblyStep::Nothing
        ]
    );
    assert_eq!(assembly.logged_seq(), 2);
}

#[test]
fn frame_after_a_gap_does_not_hide_the_gap() {
    let begin = log(1, &[])[0].clone();
    let ahead = Frame {
        seq: 5,
        body: FrameBody::Ui(serde_json::json!({"type": "product-grid"})),
        ..begin.clone()
    };
    let (assembly, steps) = accept_all([begin, ahead]);
    assert_eq!(steps[1], AssemblyStep::ReplyUpdate(ReplyUpdate::Ui));
    assert_eq!(assembly.logged_seq(), 1);
}

#[test]
fn each_new_fact_changes_the_progress() {
    let frames = log(7, &parts_of(&["a", "b"]));
    let mut assembly = ReplyAssembly::default();
    assert_eq!(assembly.generation(), None);
    let mut seen = vec![assembly.progress()];
    assembly.record_attempt(1);
    seen.push(assembly.progress());
    for frame in &frames[..3] {
        assembly.apply_frame(frame.clone(), FrameSource::Push);
        seen.push(assembly.progress());
    }
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    assembly.apply_frame(frames[2].clone(), FrameSource::Push);
    assert_eq!(seen.last(), Some(&assembly.progress()));
    assert_eq!(assembly.generation(), Some(7));
}

#[test]
fn text_waits_for_the_frames_that_become_headers() {
    let frames = log(1, &parts_of(&["a", "b"]));
    let (_, steps) = accept_all([frames[1].clone()]);
    assert_eq!(steps, [AssemblyStep::Gap]);
    let ui = Frame {
        seq: 2,
        body: FrameBody::Ui(serde_json::json!({})),
        ..frames[0].clone()
    };
    let text = Frame {
        seq: 3,
        ..frames[1].clone()
    };
    let (mut assembly, steps) = accept_all([frames[0].clone(), text.clone()]);
    assert_eq!(
        steps[1],
        AssemblyStep::Gap,
        "the frame between head and text was lost"
    );
    assembly.apply_frame(ui, FrameSource::Log);
    assert_eq!(
        assembly.apply_frame(text, FrameSource::Log),
        AssemblyStep::Text("a".into())
    );
    assert!(assembly.ui_spec().is_some());
}

#[test]
fn repeated_head_applies_only_before_the_text() {
    let frames = log(1, &parts_of(&["a"]));
    let spec = serde_json::json!({"type": "product-grid"});
    let ui = Frame {
        seq: 2,
        body: FrameBody::Ui(spec.clone()),
        ..frames[0].clone()
    };
    let again = |seq, model: &str| {
        let other = ReplyHead {
            model: model.into(),
            ui_spec: None,
            ..head()
        };
        Frame {
            seq,
            body: FrameBody::Head(Box::new(other)),
            ..frames[0].clone()
        }
    };
    let (mut assembly, steps) = accept_all([frames[0].clone(), ui.clone(), again(3, "fallback")]);
    assert_eq!(
        steps,
        [
            AssemblyStep::ReplyUpdate(ReplyUpdate::Began),
            AssemblyStep::ReplyUpdate(ReplyUpdate::Ui),
            AssemblyStep::Nothing
        ]
    );
    assert_eq!(
        (assembly.head().unwrap().model.as_str(), assembly.ui_spec()),
        ("fallback", None)
    );
    let ui = Frame { seq: 4, ..ui };
    assert_eq!(
        assembly.apply_frame(ui.clone(), FrameSource::Push),
        AssemblyStep::ReplyUpdate(ReplyUpdate::Ui)
    );
    assert_eq!(
        assembly.apply_frame(Frame { seq: 5, ..ui }, FrameSource::Push),
        AssemblyStep::Nothing,
        "the head was already applied"
    );
    assert_eq!(
        assembly.apply_frame(
            Frame {
                seq: 6,
                ..frames[1].clone()
            },
            FrameSource::Push
        ),
        AssemblyStep::Text("a".into())
    );
    assembly.apply_frame(again(7, "late"), FrameSource::Push);
    assert_eq!(
        (assembly.head().unwrap().model.as_str(), assembly.ui_spec()),
        ("fallback", Some(&spec))
    );
}

#[test]
fn end_with_another_digest_is_no_clean_end() {
    let frames = log(1, &parts_of(&["abc"]));
    for (text, step) in [
        ("abd", AssemblyStep::Broken(TextConflict::Mismatch)),
        ("ab", AssemblyStep::Broken(TextConflict::Mismatch)),
        ("abcd", AssemblyStep::Gap),
    ] {
        let end = Frame {
            body: end(text, ReplyStatus::Completed),
            ..frames[2].clone()
        };
        assert_eq!(
            accept_all([frames[0].clone(), frames[1].clone(), end]).1[2],
            step,
            "{text}"
        );
    }
}

#[test]
fn end_without_text_ends_an_unstarted_reply() {
    let frame = Frame {
        attempt: 3,
        generation: 0,
        seq: 1,
        body: end("", ReplyStatus::Failed),
    };
    assert!(matches!(accept_all([frame]).1[0], AssemblyStep::Ended(_)));
}

#[test]
fn heartbeat_carries_only_the_attempt() {
    let frames = log(1, &parts_of(&["a"]));
    let (mut assembly, _) = accept_all([frames[0].clone(), frames[1].clone()]);
    assembly.record_attempt(2);
    assert_eq!(
        (assembly.highest_attempt(), assembly.generation()),
        (2, Some(1))
    );
}

#[test]
fn largest_frame_numbers_work_like_others() {
    let mut assembly = ReplyAssembly::default();
    let begin = FrameBody::Head(Box::new(head()));
    let text = |offset: u64| FrameBody::Text {
        offset,
        text: "late".into(),
    };
    for (seq, body, step) in [
        (
            u64::MAX,
            begin,
            AssemblyStep::ReplyUpdate(ReplyUpdate::Began),
        ),
        (u64::MAX, text(u64::MAX), AssemblyStep::Gap),
        (0, text(0), AssemblyStep::Text("late".into())),
    ] {
        let frame = Frame {
            attempt: u32::MAX,
            generation: u32::MAX,
            seq,
            body,
        };
        assert_eq!(assembly.apply_frame(frame, FrameSource::Log), step);
    }
}
