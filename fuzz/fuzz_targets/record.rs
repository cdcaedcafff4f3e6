//! Fuzzes the decoders of topic records; decoded records survive encoding.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_schemas::{
    routing_job::TeamMessageJob,
    control_event::ControlEvent,
    conversation_job::ConversationJob,
    message_event::MessageEvent,
    versioned::{self, TopicRecord},
};

fn assert_round_trip<T: TopicRecord>(bytes: &[u8]) {
    let Ok(record) = versioned::decode::<T>(bytes) else {
        return;
    };
    let written = versioned::encode(&record).expect("a decoded record can be encoded");
    let again = versioned::decode::<T>(&written).expect("an encoded record can be decoded");
    assert_eq!(
        written,
        versioned::encode(&again).expect("a decoded record can be encoded")
    );
}

fuzz_target!(|bytes: &[u8]| {
    assert_round_trip::<TeamMessageJob>(bytes);
    assert_round_trip::<ConversationJob>(bytes);
    assert_round_trip::<MessageEvent>(bytes);
    assert_round_trip::<ControlEvent>(bytes);
});
