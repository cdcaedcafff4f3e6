//! Hostile text of models, catalogs and configurations: the widget shows it as text, runs nothing
//! and sends no requests.

use serde_json::{Value, json};

use super::{
    canary::Canary,
    page::{Visitor, document, served},
    stub_service::{Stub, event, reply},
};
use crate::support::{Browser, Client, Script, SharedService, shop_with_settings};

const CORPUS: &str = include_str!("xss_corpus.json");
const CASES_MIN: usize = 300;
/// Number of cases in one real reply.
const BATCH: usize = 40;

/// Returns elements and attributes outside the allow-list of message content.
const AUDIT: &str = r"
    const audit = root => {
        const names = new Set('P BR STRONG EM S CODE PRE UL OL LI A H3 BLOCKQUOTE HR TABLE THEAD TBODY TR TH TD DIV SPAN'.split(' '));
        const attributes = new Set('class dir tabindex start href target rel hidden'.split(' '));
        const found = [];
        for (const element of root.querySelectorAll('*')) {
            if (!names.has(element.tagName)) found.push(element.tagName);
            for (const {name} of element.attributes) if (!attributes.has(name)) found.push(element.tagName + '@' + name);
            if (element.href && !['http:', 'https:', 'mailto:'].includes(element.protocol)) found.push(element.href);
            if (element.tagName === 'A' && (element.target !== '_blank' || !element.rel.includes('noopener'))) found.push('bare link');
        }
        return found;
    };
    window.executed ??= 0;
    for (const name of ['alert', 'confirm', 'prompt', 'print']) window[name] = () => executed += 1;";

fn corpus(canary: &Canary) -> Vec<String> {
    let host = canary.url.trim_start_matches("http://");
    let cases: Vec<String> = serde_json::from_str(CORPUS).unwrap();
    let cases: Vec<_> = cases
        .iter()
        .map(|case| {
            case.replace("{canaryhost}", host)
                .replace("{canary}", &canary.url)
        })
        .collect();
    assert!(cases.len() >= CASES_MIN, "only {} cases", cases.len());
    cases
}

#[tokio::test]
async fn hostile_texts_run_nothing_and_send_no_requests() {
    let service = SharedService::get().await;
    let canary = Canary::start();
    let cases = corpus(&canary);
    let url = &service.public_urls()[0];
    let script = Client::new(url).get("/v1/widget.js").await.text;
    let at = script.find("markdown.").unwrap();
    let part = format!(
        "{url}/v1/widget/{}",
        &script[at..at + "markdown.0123456789abcdef.js".len()]
    );
    let browser = Browser::at(&served(document(""), None).origin()).await;
    let draw = format!(
        "{AUDIT}
        const {{render}} = await import(input.part);
        const found = [];
        for (const text of input.cases) {{
            const box = document.createElement('div');
            document.body.append(box);
            const began = performance.now();
            // As streamed: first half, then the whole text.
            render(box, text.slice(0, text.length / 2));
            render(box, text);
            const took = performance.now() - began;
            const whole = document.createElement('div');
            render(whole, text);
            if (whole.innerHTML !== box.innerHTML) found.push('differs when streamed: ' + text.slice(0, 99));
            if (took > 500) found.push('took ' + took + ' ms: ' + text.slice(0, 99));
            for (const element of box.querySelectorAll('p, code, li')) {{
                for (const name of ['click', 'mouseover', 'focus', 'pointerenter']) element.dispatchEvent(new Event(name, {{bubbles: true}}));
            }}
            found.push(...audit(box).map(what => what + ' in ' + text.slice(0, 99)));
        }}
        await new Promise(resolve => setTimeout(resolve, 300));
        return {{executed, found, shown: document.querySelectorAll('div').length}};"
    );
    let outcome = browser
        .run(&draw, json!({"part": part, "cases": cases}))
        .await;
    assert_eq!(outcome["found"], json!([]));
    assert_eq!(outcome["executed"], 0);
    assert!(outcome["shown"].as_u64().unwrap() >= cases.len() as u64);
    assert_eq!(canary.request_count(), 0, "somebody asked the canary");
}

#[tokio::test]
async fn hostile_replies_stay_text_in_the_widget() {
    let canary = Canary::start();
    let organization = shop_with_settings(json!({})).await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.run(AUDIT, Value::Null).await;
    for (turn, cases) in corpus(&canary).chunks(BATCH).enumerate() {
        let text = cases.join("\n\n---\n\n");
        let short: String = text
            .chars()
            .filter(|character| *character != '\0')
            .take(12_000)
            .collect();
        organization.script(Script::says(&short).chunk_chars(500));
        visitor.says(&format!("turn {turn}")).await;
        let over = format!(
            "!$('.send.stop') && all('.row.user').length === {}",
            turn + 1
        );
        visitor.sees("the reply", &over).await;
    }
    let outcome = visitor.run(&format!("{AUDIT} return {{executed, found: all('.row').flatMap(audit).filter(what => !/^(SPAN@aria|BUTTON|TIME|I$|DIV@aria|SPAN@aria-hidden)/.test(what))}};"), Value::Null).await;
    assert_eq!(outcome, json!({"executed": 0, "found": []}));
    assert_eq!(canary.request_count(), 0, "somebody asked the canary");
}

#[tokio::test]
async fn hostile_products_names_and_themes_do_nothing() {
    let service = SharedService::get().await;
    let canary = Canary::start();
    let evil = "<img src=x onerror=alert(1)>";
    let products = json!({"type": "product-grid", "data": [
        {"title": evil, "price": evil, "image": "javascript:alert(1)", "url": "javascript:alert(1)"},
        {"title": {"a": 1}, "price": null, "image": "data:image/svg+xml,<svg onload=alert(1)>", "url": "data:text/html,x"},
        "no product", null
    ]});
    let mut theme = json!({});
    for field in [
        "primaryColor",
        "backgroundColor",
        "textColor",
        "borderRadius",
        "fontFamily",
        "chatHeaderColor",
    ] {
        theme[field] = json!(format!("red; background: url({}/theme)", canary.url));
    }
    theme["botMessageColor"] = json!(format!("url({}/theme)", canary.url));
    let configuration = json!({
        "configuration": {
            "name": evil, "welcomeMessage": format!("{evil} ![x]({}/w) [x](javascript:alert(1))", canary.url), "placeholderText": evil,
            "widget": {"enableMarkdown": true, "triggerText": evil, "offlineMessage": evil, "position": "</style>", "size": "javascript:"}
        },
        "theme": theme
    });
    let stub = Stub {
        configuration,
        ..Stub::says(reply(&event("ui", "0.0", &products), "ok"))
    };
    let visitor = stub.visitor(&service).await;
    visitor.run(AUDIT, Value::Null).await;
    visitor.opens().await;
    visitor.says("hi").await;
    visitor.is_answered("ok").await;
    let state = "({executed, images: all('img').length, links: all('a').map(link => link.href), title: $('h2').textContent, place: $('.root').className.includes('at-bottom at-right medium')})";
    let expected = json!({"executed": 0, "images": 0, "links": [format!("{}/w", canary.url)], "title": evil, "place": true});
    assert_eq!(visitor.read(state).await, expected);
    assert_eq!(canary.request_count(), 0, "somebody asked the canary");
}
