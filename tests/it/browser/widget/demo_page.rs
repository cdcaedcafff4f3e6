//! The demo page of an unconfigured installation.

use serde_json::json;

use super::page::Visitor;
use crate::support::{Browser, PATIENCE, Profile, SharedService, TestService, VIEWS, eventually};

#[tokio::test]
async fn first_start_has_a_demo_page_whose_widget_answers() {
    let service = TestService::start_as(Profile::Embedded, &[("SWITCHBOARD__DEMO", "true")]).await;
    let url = service.public_urls()[0].clone();
    let shown = async || {
        service
            .logs()
            .contains(&format!("{url}/demo"))
            .then_some(())
    };
    eventually("the first screen names the page", PATIENCE, shown).await;
    let browser = Browser::at(&format!("{url}/demo")).await;
    let visitor = Visitor {
        browser,
        page: super::page::served(String::new(), None),
    };
    visitor.sees("the button", "shown($('.launcher'))").await;
    assert_eq!(
        visitor
            .read("document.querySelector('h1').innerText.startsWith('Slow mornings')")
            .await,
        true
    );
    visitor.opens().await;
    visitor.says("hello").await;
    visitor.sees("an answer", "!$('.send.stop') && all('.row.assistant').length === 2 && all('.row.assistant .bubble').at(-1).innerText.length > 20").await;
    visitor.says("Do you have tea?").await;
    visitor
        .sees(
            "products",
            "!$('.send.stop') && all('.row.assistant').length === 3 && $('.cards')",
        )
        .await;
    let mut findings = Vec::new();
    for (view, width, height, scheme) in VIEWS {
        visitor.browser.looks_like(width, height, scheme).await;
        findings.extend(visitor.browser.findings(&format!("demo-{view}")).await);
    }
    assert_eq!(findings, [""; 0]);
}

#[tokio::test]
async fn installation_without_a_demo_has_no_demo_page() {
    let service = SharedService::get().await;
    for url in service.public_urls() {
        let answer = crate::support::Client::new(&url).get("/demo").await;
        assert_eq!(
            answer.assert_problem(404, Some("NOT_FOUND"))["status"],
            json!(404)
        );
    }
}
