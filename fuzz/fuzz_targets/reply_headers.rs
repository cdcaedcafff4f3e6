//! Fuzzes the response headers of a reply with arbitrary model names and UI specifications.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|input: (&str, &[u8])| {
    let spec = serde_json::from_slice(input.1).unwrap_or_else(|_| {
        let titles = input
            .1
            .chunks(40)
            .map(|title| serde_json::json!({ "title": String::from_utf8_lossy(title) }));
        serde_json::json!({ "type": "product-grid", "data": titles.collect::<Vec<_>>() })
    });
    fuzzing::reply_headers(input.0, &spec);
});
