//! An entry of an agent's list, and what a page says it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|sent: (&str, &[u8])| fuzzing::origin(sent.0, sent.1));
