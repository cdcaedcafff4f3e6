//! Fuzzes the parser of the headers that carry an API key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|sent: (&[u8], &[u8])| fuzzing::key_headers(sent.0, sent.1));
