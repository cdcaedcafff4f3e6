//! A test page with widgets, and the actions of a visitor on it.

use axum::{Router, http::header, response::Html};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Browser, Organization, PATIENCE, POLL_INTERVAL, Page, eventually};

/// Prelude of every script: `$` finds one element of the page's first widget, `all` finds several.
pub(in crate::browser) const FIND: &str = "
    const host = document.querySelector('switchboard-widget');
    const $ = selector => host?.shadowRoot?.querySelector(selector) ?? null;
    const all = selector => [...(host?.shadowRoot?.querySelectorAll(selector) ?? [])];
    const shown = element => !!element && element.getClientRects().length > 0;";

/// A visitor on a page.
pub(in crate::browser) struct Visitor {
    pub(in crate::browser) browser: Browser,
    /// Page under test, served until the process ends.
    pub(in crate::browser) page: Page,
}

/// Returns the script tag of the widget with additional attributes.
pub(in crate::browser) fn tag(service_url: &str, agent: &str, attributes: &str) -> String {
    format!(
        r#"<script async src="{service_url}/v1/widget.js" data-agent-id="{agent}" {attributes}></script>"#
    )
}

/// Returns the HTML of a shop page with these tags in its head.
pub(in crate::browser) fn document(tags: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>A shop</title>{tags}<main><h1>A shop</h1><p>It sells things.</p></main></html>"
    )
}

/// Serves a document at every path, with an optional content security policy.
pub(in crate::browser) fn served(document: String, policy: Option<String>) -> Page {
    let answer = move || {
        let (document, policy) = (document.clone(), policy.clone());
        async move {
            (
                policy.map(|policy| [(header::CONTENT_SECURITY_POLICY, policy)]),
                Html(document),
            )
        }
    };
    Page::answer(Router::new().fallback(answer))
}

impl Visitor {
    /// Opens a page with the widget of the organization's shop and waits for its button or window.
    pub(in crate::browser) async fn of_shop(organization: &Organization) -> Self {
        let url = &organization.service().public_urls()[0];
        let tag = tag(url, organization.shop(), "");
        Self::at(served(document(&tag), None), Browser::open().await).await
    }

    /// Opens the window of the organization's shop on a page.
    pub(in crate::browser) async fn in_window(organization: &Organization) -> Self {
        let visitor = Self::of_shop(organization).await;
        visitor.opens().await;
        visitor
    }

    /// Opens this page in a browser.
    pub(in crate::browser) async fn at(page: Page, browser: Browser) -> Self {
        browser.visit(&page.origin()).await;
        let visitor = Self { browser, page };
        // An open window hides the button.
        visitor
            .sees("the widget", "shown($('.launcher')) || shown($('.panel'))")
            .await;
        visitor
    }

    /// Runs the body of an async function in the page and returns its result.
    pub(in crate::browser) async fn run(&self, body: &str, input: Value) -> Value {
        self.browser.run(&format!("{FIND}{body}"), input).await
    }

    /// Returns the value of an expression in the page.
    pub(in crate::browser) async fn read(&self, expression: &str) -> Value {
        self.run(&format!("return {expression};"), Value::Null)
            .await
    }

    /// Waits until an expression is true in the page; panics with the texts of the page's messages.
    pub(in crate::browser) async fn sees(&self, what: &str, expression: &str) {
        let rows = "all('.row .bubble').map(bubble => bubble.innerText.trim())";
        let began = Instant::now();
        while self.read(&format!("!!({expression})")).await != true {
            assert!(
                began.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}; messages: {}",
                self.read(rows).await
            );
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until an expression has this value in the page.
    pub(in crate::browser) async fn reads(&self, expression: &str, expected: Value) {
        let look = async || (self.read(expression).await == expected).then_some(());
        let what = format!("{expression} is {expected}");
        eventually(&what, PATIENCE, look).await;
    }

    /// Clicks the element of a selector in the widget with real input events.
    pub(in crate::browser) async fn clicks(&self, selector: &str) {
        self.sees(selector, &format!("shown($({}))", json!(selector)))
            .await;
        self.run("$(input).click();", json!(selector)).await;
    }

    /// Opens the window and waits until it accepts a message.
    pub(in crate::browser) async fn opens(&self) {
        self.clicks(".launcher").await;
        self.sees(
            "the window",
            "shown($('.panel')) && shown($('.field textarea'))",
        )
        .await;
    }

    /// Makes every further message fail with 429 in the page, as if it were rate limited.
    pub(in crate::browser) async fn is_too_fast(&self) {
        let refuse = "
            const service = window.fetch;
            const problem = JSON.stringify({status: 429, code: 'RATE_LIMIT_EXCEEDED', detail: 'too many requests'});
            window.fetch = async (address, options) => String(address).endsWith('/chat')
                ? new Response(problem, {status: 429, headers: {'Retry-After': '7'}})
                : service(address, options);
            window.patient = () => window.fetch = service;";
        self.run(refuse, Value::Null).await;
    }

    /// Types into the message field.
    pub(in crate::browser) async fn writes(&self, text: &str) {
        let write = "
            const field = $('.field textarea');
            field.value = input;
            field.dispatchEvent(new Event('input', {bubbles: true}));";
        self.run(write, json!(text)).await;
    }

    /// Types a message and sends it.
    pub(in crate::browser) async fn says(&self, text: &str) {
        self.writes(text).await;
        self.clicks(".send").await;
    }

    /// Presses a key: a WebDriver key code or a character.
    pub(in crate::browser) async fn presses(&self, key: &str) {
        let actions = json!([{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}
        ]}]);
        self.browser
            .command("actions", &json!({ "actions": actions }))
            .await;
    }

    /// Resizes the browser window to the width of a phone.
    pub(in crate::browser) async fn takes_a_phone(&self) {
        self.browser
            .command(
                "goog/cdp/execute",
                &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
                    "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true
                }}),
            )
            .await;
    }

    /// Waits until the last reply is complete and has this text.
    pub(in crate::browser) async fn is_answered(&self, text: &str) {
        let last = "!$('.send.stop') && all('.row.assistant .bubble').at(-1)?.innerText.trim()";
        self.reads(last, json!(text)).await;
    }
}
