//! The headers of a reply: a model's name and a UI specification that somebody else wrote.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_ingress::fuzzing;

fuzz_target!(|said: (&str, &[u8])| {
    let spec = serde_json::from_slice(said.1).unwrap_or_else(|_| {
        let titles = said
            .1
            .chunks(40)
            .map(|title| serde_json::json!({ "title": String::from_utf8_lossy(title) }));
        serde_json::json!({ "type": "product-grid", "data": titles.collect::<Vec<_>>() })
    });
    fuzzing::reply_headers(said.0, &spec);
});
