//! The public API used by a page of another origin: streams, headers and readable refusals.

use serde_json::{Value, json};

use super::counting_proxy::CountingProxy;
use crate::support::{
    Browser, End, Organization, OrganizationDocument, Page, Script, shop_saying, shop_with,
    shop_with_settings,
};

const PAGE: &str = "<!doctype html><meta charset=utf-8><title>A shop</title>";
/// Sends `input.body` to `input.url` and returns the headers visible to the page.
const SEND: &str = "
    const response = await fetch(input.url, {
        method: input.method || 'POST',
        headers: {'content-type': 'application/json', authorization: 'Bearer ' + input.key, ...input.headers},
        body: input.body === undefined ? undefined : JSON.stringify(input.body),
    });";
/// Starts a request and keeps its reader for the next script.
const BEGIN: &str = "
    window.reader = response.body.getReader();
    return {status: response.status, headers: Object.fromEntries(response.headers)};";
const READ_CHUNK: &str = "
    const {done, value} = await window.reader.read();
    return done ? null : new TextDecoder().decode(value);";
const READ_ALL: &str = "
    return {status: response.status, headers: Object.fromEntries(response.headers), text: await response.text()};";

/// Returns the input of `SEND` for a chat request to the organization's shop.
fn chat(organization: &Organization, key: &str, session: &str) -> Value {
    let url = format!(
        "{}/api/public/agents/{}/chat",
        &organization.service().public_urls()[0],
        organization.shop()
    );
    json!({"url": url, "key": organization.key_text(key), "body": {"message": "hi", "sessionId": session}})
}

async fn send(browser: &Browser, request: Value) -> Value {
    browser.run(&format!("{SEND}{READ_ALL}"), request).await
}

fn code(answer: &Value) -> String {
    let problem: Value = serde_json::from_str(answer["text"].as_str().unwrap()).unwrap();
    problem["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn page_reads_a_reply_chunk_by_chunk_as_it_is_generated() {
    let (script, gate) = Script::says("one   two   three ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    gate.open(1);
    let begun = browser
        .run(&format!("{SEND}{BEGIN}"), chat(&organization, "all", "s"))
        .await;
    assert_eq!(begun["status"], 200);
    for (number, expected) in ["one   ", "two   ", "three "].into_iter().enumerate() {
        // Each chunk is read before the model sends the next one.
        assert_eq!(browser.run(READ_CHUNK, Value::Null).await, expected);
        gate.open(usize::from(number < 2));
    }
    assert_eq!(
        browser.run(READ_CHUNK, Value::Null).await,
        Value::Null,
        "a clean end"
    );
}

#[tokio::test]
async fn page_can_read_the_specified_headers() {
    let organization = shop_saying("ok").await;
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    let answer = send(&browser, chat(&organization, "all", "s")).await;
    assert_eq!(
        (&answer["status"], &answer["text"]),
        (&json!(200), &json!("ok"))
    );
    for (name, begins) in [
        ("x-conversation-id", "conv_"),
        ("x-message-id", "msg_"),
        ("x-request-id", "req_"),
        ("x-model", &organization.model),
        ("x-reply-generation", ""),
        ("ratelimit", "\""),
        ("ratelimit-policy", "\""),
    ] {
        let value = answer["headers"][name]
            .as_str()
            .unwrap_or_else(|| panic!("no {name} in {}", answer["headers"]));
        assert!(value.starts_with(begins), "{name}: {value}");
    }
}

/// Returns agent settings that allow only this page.
fn listing(page: &Page) -> Value {
    json!({"allowedDomains": [page.origin().replace("http://", "")]})
}

/// Returns the input of `SEND` for a chat request with some of its fields replaced.
fn changed_chat(organization: &Organization, changes: &Value) -> Value {
    let mut request = chat(organization, "all", "s");
    let fields = request.as_object_mut().unwrap();
    fields.extend(changes.as_object().unwrap().clone());
    request
}

#[tokio::test]
async fn page_can_read_the_refusal_reason() {
    let page = Page::serve(PAGE);
    let organization = OrganizationDocument::new()
        .shop(listing(&page))
        .key("reading", &["config"])
        .key_with("limited", json!({"limits": {"chatPerMinute": 1}}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    let browser = Browser::at(&page.origin()).await;
    let config = format!(
        "{}/api/public/agents/{}",
        &organization.service().public_urls()[0],
        organization.shop()
    );
    let reading = organization.key_text("reading");
    let limited = json!({"key": organization.key_text("limited")});
    let huge = json!({"message": "x".repeat(300_000), "sessionId": "s"});
    let first = changed_chat(&organization, &limited);
    assert_eq!(send(&browser, first).await["status"], 200);
    for (changes, status, expected) in [
        (json!({"key": "wrong"}), 401, "INVALID_API_KEY"),
        (json!({"key": reading}), 403, "INSUFFICIENT_SCOPE"),
        (
            json!({"body": {"message": "hi"}}),
            400,
            "INVALID_REQUEST_DATA",
        ),
        (json!({ "body": huge }), 413, "PAYLOAD_TOO_LARGE"),
        (
            json!({"url": format!("{config}x")}),
            405,
            "METHOD_NOT_ALLOWED",
        ),
        (
            json!({"url": format!("{config}x/chat")}),
            404,
            "AGENT_NOT_FOUND",
        ),
        (limited, 429, "RATE_LIMITED"),
    ] {
        let request = changed_chat(&organization, &changes);
        let answer = send(&browser, request).await;
        assert_eq!(
            (answer["status"].as_u64(), code(&answer).as_str()),
            (Some(status), expected),
            "{answer}"
        );
        assert_eq!(
            answer["headers"]["retry-after"].is_string(),
            status == 429,
            "{answer}"
        );
    }
}

#[tokio::test]
async fn page_of_an_unlisted_domain_can_read_its_refusal() {
    let page = Page::serve(PAGE);
    let organization = shop_with_settings(listing(&page)).await;
    organization.script(Script::says("ok"));
    let browser = Browser::at(&page.origin()).await;
    let request = chat(&organization, "all", "s");
    assert_eq!(send(&browser, request.clone()).await["status"], 200);
    browser.visit(&page.other_origin()).await;
    let answer = send(&browser, request).await;
    assert_eq!(
        (answer["status"].as_u64(), code(&answer).as_str()),
        (Some(403), "DOMAIN_NOT_ALLOWED"),
        "{answer}"
    );
}

#[tokio::test]
async fn page_detects_an_interrupted_reply() {
    let (script, gate) = Script::says("halfrest")
        .chunk_chars(4)
        .ends(End::Cut)
        .gated();
    let organization = shop_with(script).await;
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    gate.open(1);
    browser
        .run(&format!("{SEND}{BEGIN}"), chat(&organization, "all", "s"))
        .await;
    // A browser drops unread data when a transfer breaks, so the break waits for the page.
    assert_eq!(browser.run(READ_CHUNK, json!({})).await, json!("half"));
    gate.open(1);
    let rest = "
        try {
            while (!(await window.reader.read()).done);
            return 'clean';
        } catch (error) {
            return error.name;
        }";
    assert_eq!(browser.run(rest, json!({})).await, json!("TypeError"));
}

#[tokio::test]
async fn page_resumes_an_event_stream_where_it_stopped() {
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    gate.open(1);
    let mut request = chat(&organization, "all", "s");
    request["headers"] = json!({"accept": "text/event-stream"});
    // Reads until the first text, keeps the id of its event, and disconnects.
    let first = "
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let seen = '';
        while (!/event: ?delta[^]*\\n\\n/.test(seen)) {
            const {done, value} = await reader.read();
            if (done) throw new Error('no text: ' + seen);
            seen += value;
        }
        await reader.cancel();
        return {message: response.headers.get('x-message-id'), last: seen.match(/id: ?(.*)/g).pop().slice(3).trim(), seen};";
    let left = browser
        .run(&format!("{SEND}{first}"), request.clone())
        .await;
    assert!(left["seen"].as_str().unwrap().contains("one"), "{left}");
    gate.open(1);
    let url = format!(
        "{}/api/public/messages/{}/stream",
        &organization.service().public_urls()[0],
        left["message"].as_str().unwrap()
    );
    let rest = send(
        &browser,
        json!({
            "url": url, "method": "GET", "key": organization.key_text("all"),
            "headers": {"accept": "text/event-stream", "last-event-id": left["last"]}
        }),
    )
    .await;
    let text = rest["text"].as_str().unwrap();
    let said: Vec<_> = text
        .lines()
        .filter(|line| line.contains("\"text\":"))
        .collect();
    assert_eq!(said, [r#"data: {"offset":6,"text":"two   "}"#], "{rest}");
    assert!(text.contains("event: done"), "{rest}");
}

#[tokio::test]
async fn page_patches_a_conversation_and_cancels_a_reply() {
    let organization = shop_with(Script::says("begun").ends(End::Silence)).await;
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    let begun = browser
        .run(&format!("{SEND}{BEGIN}"), chat(&organization, "all", "s"))
        .await;
    let (base, key) = (
        format!("{}/api/public", &organization.service().public_urls()[0]),
        organization.key_text("all"),
    );
    let message = begun["headers"]["x-message-id"].as_str().unwrap();
    let cancel = json!({"url": format!("{base}/messages/{message}/cancel"), "key": key});
    assert_eq!(send(&browser, cancel).await["status"], 200);
    let url = format!("{base}/agents/{}/conversations/s", organization.shop());
    let patch = json!({"url": url, "method": "PATCH", "key": key, "body": {"rating": 5}});
    let answer = send(&browser, patch).await;
    assert_eq!(
        answer["text"], r#"{"success":true,"updated":{"rating":5}}"#,
        "{answer}"
    );
}

#[tokio::test]
async fn preflight_is_cached_for_later_requests() {
    let organization = shop_saying("ok").await;
    let proxy = CountingProxy::before(&organization.service().public_urls()[0]);
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    let mut request = chat(&organization, "all", "s");
    request["url"] = json!(format!(
        "{}/api/public/agents/{}/chat",
        proxy.url,
        organization.shop()
    ));
    for _ in 0..3 {
        assert_eq!(send(&browser, request.clone()).await["text"], "ok");
    }
    assert_eq!(proxy.preflights(), 1);
}

#[tokio::test]
async fn sandboxed_frame_with_opaque_origin_can_read_responses() {
    let listed = json!({"allowedDomains": ["https://shop.example"]});
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("listed", listed)
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    let browser = Browser::at(&Page::serve(PAGE).origin()).await;
    let in_frame = "
        const frame = document.createElement('iframe');
        frame.sandbox = 'allow-scripts';
        const code = `(${async input => {
            const response = await fetch(input.url, {
                method: 'POST', body: JSON.stringify(input.body),
                headers: {'content-type': 'application/json', authorization: 'Bearer ' + input.key},
            });
            parent.postMessage({status: response.status, text: await response.text()}, '*');
        }})(${JSON.stringify(input)})`;
        frame.srcdoc = '<script>' + code + '</' + 'script>';
        const message = new Promise(resolve => addEventListener('message', event => resolve(event.data), {once: true}));
        document.body.append(frame);
        return await message;";
    let request = chat(&organization, "all", "s");
    assert_eq!(
        browser.run(in_frame, request.clone()).await,
        json!({"status": 200, "text": "ok"})
    );
    let mut refused = request;
    let url = format!(
        "{}/api/public/agents/{}/chat",
        &organization.service().public_urls()[0],
        organization.agent("listed")
    );
    refused["url"] = json!(url);
    let answer = browser.run(in_frame, refused).await;
    assert_eq!(
        (answer["status"].as_u64(), code(&answer).as_str()),
        (Some(403), "DOMAIN_NOT_ALLOWED"),
        "{answer}"
    );
}
