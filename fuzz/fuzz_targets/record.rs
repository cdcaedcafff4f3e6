//! The records of all topics. What was read is written and read again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_schemas::{
    routing_job::TeamMessageJob,
    control_event::ControlEvent,
    conversation_job::ConversationJob,
    message_event::MessageEvent,
    versioned::{self, TopicRecord},
};

fn survives<T: TopicRecord>(bytes: &[u8]) {
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
    survives::<TeamMessageJob>(bytes);
    survives::<ConversationJob>(bytes);
    survives::<MessageEvent>(bytes);
    survives::<ControlEvent>(bytes);
});
