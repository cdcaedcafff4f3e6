//! Fuzzes the reader of model streams, in both dialects.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_workers::fuzzing;

fuzz_target!(|stream: (&[u8], &[u8])| fuzzing::model_stream(stream.0, stream.1));
