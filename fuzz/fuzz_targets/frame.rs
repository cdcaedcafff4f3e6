//! Fuzzes the decoders of frames and envelopes; decoded values survive encoding.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use switchboard_schemas::reply_event::{IngressEnvelope, Frame};

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(frame) = Frame::decode(bytes.clone()) {
        assert_eq!(Frame::decode(frame.encode()), Ok(frame));
    }
    if let Ok(envelope) = IngressEnvelope::decode(bytes) {
        assert_eq!(IngressEnvelope::decode(envelope.encode()), Ok(envelope));
    }
});
