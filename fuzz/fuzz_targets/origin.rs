//! Fuzzes the comparison of origins with entries of an agent's allowlist.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|sent: (&str, &[u8])| fuzzing::origin(sent.0, sent.1));
