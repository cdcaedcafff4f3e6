//! The body of a chat request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|body: &[u8]| fuzzing::chat_body(body));
