//! Fuzzes the parser of chat request bodies.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|body: &[u8]| fuzzing::chat_body(body));
