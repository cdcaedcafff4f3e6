//! The widget on pages that change without a reload, with the libraries that do so.

use axum::{
    Router,
    extract::Path,
    http::{Uri, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use super::page::{Visitor, tag};
use crate::support::{Browser, Organization, Page, shop_saying};

const TURBO: &str = "@hotwired/turbo/dist/turbo.es2017-umd.js";
/// Version 2, and version 4 in which attributes are inherited only with `:inherited`.
const HTMX: [&str; 2] = ["htmx.org/dist/htmx.min.js", "htmx4/dist/htmx.min.js"];
const REACT: &str = "react/umd/react.production.min.js";
const REACT_DOM: &str = "react-dom/umd/react-dom.production.min.js";

const HEADING: &str = "document.querySelector('h1')?.innerText";

/// State of the widget as the visitor sees it, and the number of its elements.
const STATE: &str = "({
    elements: document.querySelectorAll('switchboard-widget').length,
    isSame: window.before === host,
    isOpen: shown($('.panel')),
    messages: all('.row.user .bubble').map(bubble => bubble.innerText),
    draft: $('.field textarea')?.value,
    top: $('.log')?.scrollTop,
})";

/// Returns a file of a library as npm has installed it.
fn library(file: &str) -> String {
    let path = format!(
        "{}/web/widget/node_modules/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{path}: {error}; run `npm ci` in web/widget"))
}

async fn serve_library(Path(file): Path<String>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/javascript")];
    (kind, library(&file)).into_response()
}

/// Serves a site of which each page has its path as heading and a link to `/other`.
fn site(libraries: &[&str], head: &str, body: &str) -> Page {
    let scripts: String = libraries
        .iter()
        .map(|file| format!("<script src='/library/{file}'></script>"))
        .collect();
    let head = format!("<meta charset=utf-8><title>A shop</title>{scripts}{head}");
    let body = body.to_owned();
    let page = async move |uri: Uri| {
        let path = uri.path();
        Html(format!(
            "<!doctype html><html lang=en><head>{head}</head><body hx-boost=true hx-boost:inherited=true>\
             <h1>{path}</h1><a href=/other>Other</a>{body}</body></html>"
        ))
    };
    Page::answer(
        Router::new()
            .route("/library/{*file}", get(serve_library))
            .fallback(page),
    )
}

fn tag_of(organization: &Organization) -> String {
    let url = &organization.service().public_urls()[0];
    tag(url, organization.shop(), "")
}

/// Returns an organization whose replies are longer than the window.
async fn talkative_shop() -> Organization {
    shop_saying(&"one line\n\n".repeat(60)).await
}

/// Opens a page, and leaves the widget with a message, a draft and a scrolled log.
async fn visitor_amid_a_conversation(page: Page) -> Visitor {
    let visitor = Visitor::at(page, Browser::open().await).await;
    visitor.opens().await;
    visitor.says("hello").await;
    let is_scrollable = "!$('.send.stop') && $('.log').scrollHeight > 1500";
    visitor.sees("the long reply", is_scrollable).await;
    visitor.writes("half a thou").await;
    let scroll = "
        window.before = host;
        $('.log').scrollTop = 321;
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));";
    visitor.run(scroll, Value::Null).await;
    visitor.reads(STATE, state(&["hello"])).await;
    visitor
}

fn state(messages: &[&str]) -> Value {
    json!({
        "elements": 1, "isSame": true, "isOpen": true, "messages": messages, "draft": "half a thou", "top": 321
    })
}

/// Follows the link of the page, returns, and finds the widget as it was each time.
async fn keeps_its_widget(visitor: &Visitor) {
    for (step, heading) in [
        ("document.querySelector('a').click();", "/other"),
        ("history.back();", "/"),
        ("history.forward();", "/other"),
    ] {
        visitor.run(step, Value::Null).await;
        visitor.reads(HEADING, json!(heading)).await;
        visitor.reads(STATE, state(&["hello"])).await;
    }
    works(visitor).await;
}

/// Sends a message, closes the window and opens it again.
async fn works(visitor: &Visitor) {
    visitor.says("still there?").await;
    visitor
        .reads("!$('.send.stop') && all('.row.assistant').length", json!(3))
        .await;
    visitor.clicks(".header .plain:last-child").await;
    visitor.opens().await;
}

#[tokio::test]
async fn turbo_visits_keep_the_widget() {
    let organization = talkative_shop().await;
    let tag = tag_of(&organization);
    // A pause, as for an animation, makes Turbo copy the page with the widget in it.
    let pause = "<script>addEventListener('turbo:before-render', event => {
        event.preventDefault();
        setTimeout(event.detail.resume, 50);
    });</script>";
    let paused = format!("{pause}{tag}");
    // In the body, each visit runs the tag again.
    for (head, body) in [(paused.as_str(), ""), ("", tag.as_str())] {
        let visitor = visitor_amid_a_conversation(site(&[TURBO], head, body)).await;
        keeps_its_widget(&visitor).await;
    }
}

#[tokio::test]
async fn turbo_refresh_that_morphs_the_page_keeps_the_widget() {
    let organization = talkative_shop().await;
    let morph = "<meta name=turbo-refresh-method content=morph>";
    let page = site(&[TURBO], morph, &tag_of(&organization));
    let visitor = visitor_amid_a_conversation(page).await;
    let refresh = "
        const morphed = new Promise(resolve => addEventListener('turbo:morph', resolve, {once: true}));
        Turbo.visit(location.href, {action: 'replace'});
        await morphed;";
    visitor.run(refresh, Value::Null).await;
    visitor.reads(STATE, state(&["hello"])).await;
    works(&visitor).await;
}

#[tokio::test]
async fn boosted_links_of_htmx_keep_the_widget() {
    let organization = talkative_shop().await;
    let tag = tag_of(&organization);
    for library in HTMX {
        for (head, body) in [(tag.as_str(), ""), ("", tag.as_str())] {
            let visitor = visitor_amid_a_conversation(site(&[library], head, body)).await;
            keeps_its_widget(&visitor).await;
        }
    }
}

#[tokio::test]
async fn react_application_in_the_body_keeps_the_widget() {
    let organization = talkative_shop().await;
    let page = site(&[REACT, REACT_DOM], &tag_of(&organization), "");
    let visitor = visitor_amid_a_conversation(page).await;
    let begin = "
        const h = React.createElement;
        const App = () => {
            const [path, go] = React.useState('/app');
            React.useEffect(() => {
                const read = () => go(location.pathname);
                addEventListener('popstate', read);
                return () => removeEventListener('popstate', read);
            }, []);
            const visit = event => { event.preventDefault(); history.pushState(null, '', '/other'); go('/other'); };
            return h('main', {key: path}, h('h1', null, path), h('a', {href: '/other', onClick: visit}, 'Other'));
        };
        window.app = ReactDOM.createRoot(document.body);
        app.render(h(App));";
    visitor.run(begin, Value::Null).await;
    visitor.reads(HEADING, json!("/app")).await;
    visitor.reads(STATE, state(&["hello"])).await;
    keeps_its_widget(&visitor).await;
}

#[tokio::test]
async fn react_document_that_is_rendered_anew_keeps_the_widget() {
    let organization = talkative_shop().await;
    let page = site(&[REACT, REACT_DOM], &tag_of(&organization), "");
    let visitor = visitor_amid_a_conversation(page).await;
    // The page is not what React expects, which makes it replace the whole document.
    let render = "
        const h = React.createElement;
        window.root = document.documentElement;
        const html = h('html', null, h('head'), h('body', null, h('h1', null, 'anew')));
        ReactDOM.hydrateRoot(document, html, {onRecoverableError: () => {}});";
    visitor.run(render, Value::Null).await;
    visitor.reads(HEADING, json!("anew")).await;
    assert_eq!(
        visitor.read("document.documentElement === root").await,
        false
    );
    visitor.reads(STATE, state(&["hello"])).await;
    works(&visitor).await;
}

#[tokio::test]
async fn create_never_returns_a_detached_widget() {
    let organization = talkative_shop().await;
    let visitor = visitor_amid_a_conversation(site(&[], &tag_of(&organization), "")).await;
    let create = "
        host.remove();
        SwitchboardWidget.create({agentId: input});
        return host.isConnected;";
    assert_eq!(visitor.run(create, json!(organization.shop())).await, true);
    visitor.reads(STATE, state(&["hello"])).await;
    let replace = "
        document.body = document.createElement('body');
        SwitchboardWidget.destroy();
        SwitchboardWidget.create({agentId: input});";
    visitor.run(replace, json!(organization.shop())).await;
    // The new widget opens by itself, because the visitor had left the window open.
    let new = "document.querySelectorAll('switchboard-widget').length === 1 && host !== window.before && shown($('.panel'))";
    visitor.sees("another widget", new).await;
}

#[tokio::test]
async fn page_that_always_removes_the_widget_stays_usable() {
    let organization = talkative_shop().await;
    let visitor = visitor_amid_a_conversation(site(&[], &tag_of(&organization), "")).await;
    let fight = "
        window.removed = 0;
        const remove = () => {
            for (const element of document.querySelectorAll('switchboard-widget')) {
                removed += 1;
                element.remove();
            }
        };
        window.cleaner = new MutationObserver(remove);
        cleaner.observe(document.body, {childList: true});
        remove();
        await new Promise(resolve => setTimeout(resolve, 300));
        return removed;";
    assert_eq!(
        visitor.run(fight, Value::Null).await,
        11,
        "the first removal and ten more in a second"
    );
    visitor
        .sees("that the widget tries again", "removed > 11")
        .await;
    visitor.run("cleaner.disconnect();", Value::Null).await;
    visitor.reads(STATE, state(&["hello"])).await;
    visitor
        .run("SwitchboardWidget.destroy();", Value::Null)
        .await;
    let rest = "
        document.body.append('text');
        await new Promise(resolve => setTimeout(resolve, 1200));
        return document.querySelectorAll('switchboard-widget').length;";
    assert_eq!(visitor.run(rest, Value::Null).await, 0, "it was destroyed");
}
