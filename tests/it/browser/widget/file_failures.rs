//! Files that the widget or the service refuses, and uploads and messages that fail.

use serde_json::{Value, json};

use super::{
    files::{CHIPS, CHOOSE, ERRORS, SENT, attachments, shop_with_files},
    page::Visitor,
};
use crate::support::{Organization, Script, shop_with_settings};

const MISTAKES: &str = "all('.mistakes [role=alert] p').map(mistake => mistake.textContent)";

async fn shop_accepting(max_bytes: u32, types: &[&str]) -> Organization {
    let files = json!({"maxBytes": max_bytes, "types": types});
    let settings = json!({"features": {"enableFileUpload": true}, "files": files});
    let organization = shop_with_settings(settings).await;
    organization.script(Script::says("fine"));
    organization
}

#[tokio::test]
async fn unacceptable_files_are_refused_before_they_are_uploaded() {
    let organization = shop_accepting(1000, &["text/plain", "application/pdf"]).await;
    let visitor = Visitor::with_files(&organization).await;
    assert_eq!(
        visitor.read("$('.chooser').accept").await,
        "text/plain,.txt,.text,.log,application/pdf,.pdf"
    );
    visitor
        .uploads_by("window.uploads = (window.uploads ?? 0) + 1;")
        .await;
    visitor
        .chooses(json!([
            ["long.txt", "text/plain", "x".repeat(1001)],
            ["page.html", "text/html", "<script>"],
            ["empty.txt", "text/plain", ""]
        ]))
        .await;
    let mistakes = json!([
        "long.txt: Too large. The limit is 1 kB.",
        "page.html: Files of this type are not accepted. Accepted: TXT, PDF.",
        "empty.txt: This file is empty."
    ]);
    visitor.reads(MISTAKES, mistakes).await;
    assert_eq!(visitor.read("window.uploads ?? 0").await, 0);
    visitor.run("window.resume();", Value::Null).await;
    let names: Vec<String> = (0..6).map(|number| format!("{number}.txt")).collect();
    let files: Vec<Value> = names
        .iter()
        .map(|name| json!([name, "text/plain", "x"]))
        .collect();
    visitor.chooses(json!(files)).await;
    visitor
        .reads(
            MISTAKES,
            json!(["You can send up to 5 files with a message."]),
        )
        .await;
    visitor.has_uploaded(json!(names[..5])).await;
}

#[tokio::test]
async fn file_with_another_content_is_refused_by_the_service() {
    let organization = shop_accepting(10_000, &["image/png", "text/plain"]).await;
    let visitor = Visitor::with_files(&organization).await;
    let fake = "
        const transfer = new DataTransfer();
        transfer.items.add(new File(['MZ\\u0000\\u0001'], 'photo.png', {type: 'image/png'}));";
    visitor.run(&format!("{fake}{CHOOSE}"), Value::Null).await;
    visitor
        .reads(
            ERRORS,
            json!(["Files of this type are not accepted. Accepted: PNG, TXT."]),
        )
        .await;
    assert_eq!(
        visitor
            .read("all('.chip .tool').filter(shown).length")
            .await,
        1,
        "it can only be removed"
    );
    visitor.says("hello").await;
    visitor
        .sees("the reason", "$('.note').innerText.includes('Remove them')")
        .await;
    assert_eq!(visitor.read("all('.row.user').length").await, 0);
    visitor.clicks(".chip .tool:not([hidden])").await;
    visitor.clicks(".send").await;
    visitor.is_answered("fine").await;
}

#[tokio::test]
async fn upload_is_cancelled_or_tried_again() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let watch = "
        const abort = XMLHttpRequest.prototype.abort;
        window.aborted = 0;
        XMLHttpRequest.prototype.abort = function () { window.aborted += 1; abort.call(this); };";
    visitor.run(watch, Value::Null).await;
    visitor.uploads_by("window.isRunning = true;").await;
    visitor.chooses(json!([["a.txt", "text/plain", "x"]])).await;
    visitor.sees("the request", "window.isRunning").await;
    visitor.clicks(".chip .tool:not([hidden])").await;
    assert_eq!(visitor.read(CHIPS).await, json!([]));
    assert_eq!(visitor.read("window.aborted").await, 1);
    let fail = "window.resume(); this.dispatchEvent(new ProgressEvent('loadend'));";
    visitor.run("window.resume();", Value::Null).await;
    visitor.uploads_by(fail).await;
    visitor.chooses(json!([["b.txt", "text/plain", "x"]])).await;
    visitor
        .reads(ERRORS, json!(["The upload failed. Please try again."]))
        .await;
    visitor.clicks("[aria-label='Upload b.txt again']").await;
    visitor.has_uploaded(json!(["b.txt"])).await;
    visitor.says("now").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read(SENT).await, json!([["b.txt"]]));
}

#[tokio::test]
async fn upload_renews_a_token_that_the_service_rejects() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let spoil = "
        const set = XMLHttpRequest.prototype.setRequestHeader;
        XMLHttpRequest.prototype.setRequestHeader = function (name) {
            XMLHttpRequest.prototype.setRequestHeader = set;
            set.call(this, name, 'Bearer svt_invalid');
        };";
    visitor.run(spoil, Value::Null).await;
    visitor.chooses(json!([["a.txt", "text/plain", "x"]])).await;
    visitor.has_uploaded(json!(["a.txt"])).await;
}

#[tokio::test]
async fn unsent_message_is_sent_again_with_its_files() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    visitor.chooses(json!([["a.txt", "text/plain", "x"]])).await;
    visitor.has_uploaded(json!(["a.txt"])).await;
    visitor.is_too_fast().await;
    visitor.says("hello").await;
    visitor
        .sees("the retry button", "shown($('.row.user .meta button'))")
        .await;
    visitor.run("window.patient();", Value::Null).await;
    visitor.clicks(".row.user .meta button").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read(SENT).await, json!([["a.txt"]]));
    assert_eq!(attachments(&organization).await[0]["name"], "a.txt");
}

#[tokio::test]
async fn message_returns_to_the_field_if_a_file_is_gone() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let files = json!([["a.txt", "text/plain", "x"], ["b.txt", "text/plain", "y"]]);
    visitor.chooses(files).await;
    visitor.has_uploaded(json!(["a.txt", "b.txt"])).await;
    let refuse = "
        const service = window.fetch;
        const problem = JSON.stringify({status: 400, code: 'INVALID_REQUEST_DATA', detail: 'unknown', param: 'attachments[1].fileId'});
        window.fetch = async (address, options) => {
            if (!String(address).endsWith('/chat')) return service(address, options);
            window.fetch = service;
            return new Response(problem, {status: 400});
        };";
    visitor.run(refuse, Value::Null).await;
    visitor.says("keep this").await;
    visitor
        .reads(ERRORS, json!(["This file is no longer available."]))
        .await;
    let state = "[$('.field textarea').value, all('.row.user').length]";
    assert_eq!(visitor.read(state).await, json!(["keep this", 0]));
    assert_eq!(visitor.read(CHIPS).await, json!(["a.txt", "b.txt"]));
    visitor.clicks("[aria-label='Upload b.txt again']").await;
    visitor.has_uploaded(json!(["a.txt", "b.txt"])).await;
    visitor.clicks(".send").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read(SENT).await, json!([["a.txt", "b.txt"]]));
}
