//! A page with widgets on it, and what a visitor does there.

use axum::{Router, http::header, response::Html};
use serde_json::{Value, json};

use crate::support::{Browser, Organization, PATIENCE, Page, SharedService, eventually};

/// Before every script: `$` finds an element of the page's first widget, `all` several.
pub(in crate::browser) const FIND: &str = "
    const host = document.querySelector('switchboard-widget');
    const $ = selector => host?.shadowRoot?.querySelector(selector) ?? null;
    const all = selector => [...(host?.shadowRoot?.querySelectorAll(selector) ?? [])];
    const shown = element => !!element && element.getClientRects().length > 0;";

/// A visitor at a page.
pub(in crate::browser) struct Visitor {
    /// The browser.
    pub(in crate::browser) browser: Browser,
    /// The page, which is served as long as this lives and longer.
    pub(in crate::browser) page: Page,
}

/// A tag as a site's owner writes it; `attributes` holds whatever else stands in it.
pub(in crate::browser) fn tag(service_url: &str, agent: &str, attributes: &str) -> String {
    format!(
        r#"<script async src="{service_url}/v1/widget.js" data-agent-id="{agent}" {attributes}></script>"#
    )
}

/// A document of a shop with these tags in its head.
pub(in crate::browser) fn document(tags: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>A shop</title>{tags}<main><h1>A shop</h1><p>It sells things.</p></main></html>"
    )
}

/// Serves a document at every path, with a policy if there is one.
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
    /// Comes to a page with the widget of the organization's shop, and waits for its button.
    pub(in crate::browser) async fn of_shop(
        service: &SharedService,
        organization: &Organization,
    ) -> Self {
        let tag = tag(&service.public_urls()[0], organization.shop(), "");
        Self::at(served(document(&tag), None), Browser::open().await).await
    }

    /// Comes to this page.
    pub(in crate::browser) async fn at(page: Page, browser: Browser) -> Self {
        browser.visit(&page.origin()).await;
        let visitor = Self { browser, page };
        visitor.sees("the button", "shown($('.launcher'))").await;
        visitor
    }

    /// What the body of an async function returns in the page.
    pub(in crate::browser) async fn run(&self, body: &str, input: Value) -> Value {
        self.browser.run(&format!("{FIND}{body}"), input).await
    }

    /// The value of an expression.
    pub(in crate::browser) async fn read(&self, expression: &str) -> Value {
        self.run(&format!("return {expression};"), Value::Null)
            .await
    }

    /// Waits until an expression is true.
    pub(in crate::browser) async fn sees(&self, what: &str, expression: &str) {
        let look = async || (self.read(&format!("!!({expression})")).await == true).then_some(());
        eventually(what, PATIENCE, look).await;
    }

    /// Waits until an expression has this value.
    pub(in crate::browser) async fn reads(&self, expression: &str, expected: Value) {
        let look = async || (self.read(expression).await == expected).then_some(());
        let what = format!("{expression} is {expected}");
        eventually(&what, PATIENCE, look).await;
    }

    /// Clicks what a selector finds in the widget, as a visitor's hand would.
    pub(in crate::browser) async fn clicks(&self, selector: &str) {
        self.sees(selector, &format!("shown($({}))", json!(selector)))
            .await;
        self.run("$(input).click();", json!(selector)).await;
    }

    /// Opens the window and waits until a message can be written.
    pub(in crate::browser) async fn opens(&self) {
        self.clicks(".launcher").await;
        self.sees(
            "the window",
            "shown($('.panel')) && shown($('.field textarea'))",
        )
        .await;
    }

    /// From here on the service refuses messages as ones that come too fast, for all the page can tell.
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

    /// Writes into the field.
    pub(in crate::browser) async fn writes(&self, text: &str) {
        let write = "
            const field = $('.field textarea');
            field.value = input;
            field.dispatchEvent(new Event('input', {bubbles: true}));";
        self.run(write, json!(text)).await;
    }

    /// Writes a message and sends it.
    pub(in crate::browser) async fn says(&self, text: &str) {
        self.writes(text).await;
        self.clicks(".send").await;
    }

    /// Presses a key (a code of the protocol, or a character), as the browser gets it from a keyboard.
    pub(in crate::browser) async fn presses(&self, key: &str) {
        let actions = json!([{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}
        ]}]);
        self.browser
            .command("actions", &json!({ "actions": actions }))
            .await;
    }

    /// Makes the window of the browser so wide that phones are.
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

    /// Waits until the last reply is all there and says this.
    pub(in crate::browser) async fn is_answered(&self, text: &str) {
        let last = "!$('.send.stop') && all('.row.assistant .bubble').at(-1)?.innerText.trim()";
        self.reads(last, json!(text)).await;
    }
}
