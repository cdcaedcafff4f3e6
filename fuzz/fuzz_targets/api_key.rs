//! The two headers that carry a key, and the key's text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|sent: (&[u8], &[u8])| fuzzing::key_headers(sent.0, sent.1));
