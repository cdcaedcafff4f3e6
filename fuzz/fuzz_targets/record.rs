//! The records of all topics. What was read is written and read again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_schemas::{
    chat_job::ChatJob,
    control_event::ControlEvent,
    inference_job::ConversationJob,
    message_event::MessageEvent,
    versioned::{self, Record},
};

fn survives<T: Record>(bytes: &[u8]) {
    let Ok(record) = versioned::decode::<T>(bytes) else {
        return;
    };
    let written = versioned::encode(&record).expect("what was read can be written");
    let again = versioned::decode::<T>(&written).expect("what was written can be read");
    assert_eq!(
        written,
        versioned::encode(&again).expect("it can be written again")
    );
}

fuzz_target!(|bytes: &[u8]| {
    survives::<ChatJob>(bytes);
    survives::<ConversationJob>(bytes);
    survives::<MessageEvent>(bytes);
    survives::<ControlEvent>(bytes);
});
