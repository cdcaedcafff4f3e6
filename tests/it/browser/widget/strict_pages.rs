//! The widget on pages with a strict content security policy.

use serde_json::{Value, json};

use super::page::{Visitor, document, served, tag};
use crate::support::{
    Browser, Client, OrganizationDocument, Script, SharedService, shop_saying, shop_with_settings,
};

/// Returns the CSP violations reported by the browser since the page was loaded.
const REPORTS: &str = "
    const reports = [];
    const observer = new ReportingObserver(found => reports.push(...found), {types: ['csp-violation'], buffered: true});
    observer.observe();
    await new Promise(resolve => setTimeout(resolve, 50));
    reports.push(...observer.takeRecords());
    return reports.map(report => report.body.effectiveDirective + ' ' + report.body.blockedURL);";

#[tokio::test]
async fn widget_works_under_strict_csp_and_trusted_types() {
    let service = SharedService::get().await;
    let organization = shop_saying("a **bold** `code` [link](https://x.example)").await;
    let url = &service.public_urls()[0];
    let policy = format!(
        "default-src 'none'; script-src {url}; connect-src {url}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let page = served(
        document(&tag(url, organization.shop(), "data-language=de")),
        Some(policy),
    );
    let visitor = Visitor::at(page, Browser::open().await).await;
    visitor.opens().await;
    visitor.says("hello").await;
    visitor.is_answered("a bold code link (x.example)").await;
    visitor.clicks(".star:nth-child(5)").await;
    visitor
        .sees("the rating", "all('.star.lit').length === 5")
        .await;
    assert_eq!(
        visitor.read("getComputedStyle($('.panel')).position").await,
        "fixed",
        "its style is in force"
    );
    assert_eq!(visitor.run(REPORTS, Value::Null).await, json!([]));
    // The policy is in force: violations are reported.
    let forbidden = "try { eval('1'); } catch {} const image = new Image(); image.src = 'http://127.0.0.1:9/x.png';";
    visitor.run(forbidden, Value::Null).await;
    assert_ne!(visitor.run(REPORTS, Value::Null).await, json!([]));
}

#[tokio::test]
async fn page_keeps_its_layout_and_style() {
    let organization = shop_saying("hi").await;
    let hostile = "<style>body, body * { position: relative !important; color: red; font-size: 40px; } \
        switchboard-widget { display: none; opacity: .1; width: 500px; margin: 90px; }</style>";
    let tags = format!(
        "{hostile}{}",
        tag(
            &organization.service().public_urls()[0],
            organization.shop(),
            ""
        )
    );
    let visitor = Visitor::at(served(document(&tags), None), Browser::open().await).await;
    visitor.opens().await;
    let shifts = "
        let sum = 0;
        const observer = new PerformanceObserver(list => list.getEntries().forEach(entry => sum += entry.value));
        observer.observe({type: 'layout-shift', buffered: true});
        await new Promise(resolve => setTimeout(resolve, 50));
        return {sum, high: document.documentElement.scrollHeight <= innerHeight, size: getComputedStyle($('.bubble')).fontSize};";
    assert_eq!(
        visitor.run(shifts, Value::Null).await,
        json!({"sum": 0, "high": true, "size": "15px"})
    );
}

#[tokio::test]
async fn chat_key_in_the_script_tag_identifies_the_page() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("page", &["chat"])
        .apply_to_shared()
        .await;
    organization.script(Script::says("by key"));
    let attribute = format!(r#"data-api-key="{}""#, organization.key_text("page"));
    let page = served(
        document(&tag(
            &organization.service().public_urls()[0],
            organization.shop(),
            &attribute,
        )),
        None,
    );
    let visitor = Visitor::at(page, Browser::open().await).await;
    visitor.opens().await;
    visitor.says("hello").await;
    visitor.is_answered("by key").await;
}

#[tokio::test]
async fn forbidden_page_shows_no_widget_and_logs_the_reason() {
    let listed = json!({"allowedDomains": ["https://shop.example"]});
    let organization = shop_with_settings(listed).await;
    let recorder = "<script>
        window.errors = [];
        console.error = text => errors.push(text);
    </script>";
    let tags = format!(
        "{recorder}{}",
        tag(
            &organization.service().public_urls()[0],
            organization.shop(),
            ""
        )
    );
    let page = served(document(&tags), None);
    let browser = Browser::at(&page.origin()).await;
    let visitor = Visitor { browser, page };
    visitor
        .sees("the reason", "errors.join().includes('DOMAIN_NOT_ALLOWED')")
        .await;
    assert_eq!(
        visitor
            .read("document.querySelectorAll('switchboard-widget').length")
            .await,
        0
    );
}

#[tokio::test]
async fn script_is_cacheable_and_pinnable_and_its_parts_immutable() {
    let service = SharedService::get().await;
    for url in service.public_urls() {
        let client = Client::new(&url);
        let script = client.get("/v1/widget.js").await;
        assert_eq!(
            (script.status, script.header("content-type")),
            (200, Some("text/javascript; charset=utf-8"))
        );
        assert_eq!(script.header("cache-control"), Some("public, max-age=60"));
        assert_eq!(script.header("access-control-allow-origin"), Some("*"));
        let tag = script.header("etag").unwrap();
        let again = client
            .request(reqwest::Method::GET, "/v1/widget.js")
            .header("if-none-match", tag);
        assert_eq!(crate::support::send(again).await.status, 304);
        let compressed = client
            .request(reqwest::Method::GET, "/v1/widget.js")
            .header("accept-encoding", "gzip");
        let compressed = crate::support::send(compressed).await;
        assert_eq!(compressed.header("content-encoding"), Some("gzip"));
        assert_eq!(script.header("content-encoding"), None);
        let version = client.get("/v1/widget.json").await.json();
        let pinned = client.get(version["script"].as_str().unwrap()).await;
        assert_eq!((pinned.status, &pinned.text), (200, &script.text));
        assert_eq!(
            pinned.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
        assert!(
            version["integrity"]
                .as_str()
                .unwrap()
                .starts_with("sha384-")
        );
        let other = client.get("/v1/widget/panel.0000000000000000.js").await;
        other.assert_problem(404, Some("NOT_FOUND"));
        assert_eq!(other.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn script_is_accepted_by_its_published_integrity_hash() {
    let organization = shop_saying("pinned").await;
    let url = &organization.service().public_urls()[0];
    let version = Client::new(url).get("/v1/widget.json").await.json();
    let (script, integrity) = (
        version["script"].as_str().unwrap(),
        version["integrity"].as_str().unwrap(),
    );
    let tag = format!(
        r#"<script async crossorigin="anonymous" integrity="{integrity}" src="{url}{script}" data-agent-id="{}"></script>"#,
        organization.shop()
    );
    let visitor = Visitor::at(served(document(&tag), None), Browser::open().await).await;
    visitor.opens().await;
    visitor.says("hello").await;
    visitor.is_answered("pinned").await;
}
