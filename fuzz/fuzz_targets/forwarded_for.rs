//! Fuzzes the parsers of `X-Forwarded-For` and of trusted networks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|sent: (&[u8], &str)| fuzzing::forwarded_for(sent.0, sent.1));
