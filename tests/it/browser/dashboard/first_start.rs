//! From the one-time link of a fresh installation to a reply in a widget, using only the dashboard.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{Router, response::Html};
use serde_json::json;

use super::{PASSWORD, Person, person::secret_of};
use crate::{
    browser::widget::page::{Visitor, document},
    support::{Browser, PATIENCE, Page, Profile, TestService, eventually},
};

/// Longest time for the scripted path from the first link to a reply.
const ALL_MAX: Duration = Duration::from_secs(120);
/// Most clicks from the first page to a reply in a widget on another origin.
const CLICKS_MAX: usize = 12;

/// Starts a fresh installation and returns its first link.
async fn installed() -> (TestService, String) {
    let (service, arguments) = match Profile::from_environment() {
        Profile::Embedded => {
            let service = TestService::start_with(&[("SWITCHBOARD__DEMO", "true")]).await;
            (service, &["admin", "link"][..])
        }
        Profile::Cluster => {
            let service = TestService::start().await;
            let document = json!({"organizations": [{"slug": "first", "name": "First", "agents": [], "teams": [], "keys": []}]});
            service.apply(&document).await.assert_status(200);
            let email = "first@people.example";
            (service, &["admin", "link", "--email", email][..])
        }
    };
    let (status, output) = service.command(arguments);
    assert!(status.success(), "{output}");
    (service, secret_of(&output).unwrap())
}

/// Serves a page whose content can be replaced by a pasted snippet.
fn site() -> (Page, Arc<OnceLock<String>>) {
    let snippet = Arc::new(OnceLock::new());
    let pasted = Arc::clone(&snippet);
    let answer = move || {
        let pasted = Arc::clone(&pasted);
        async move { Html(document(pasted.get().map_or("", String::as_str))) }
    };
    (Page::answer(Router::new().fallback(answer)), snippet)
}

#[tokio::test]
async fn first_link_to_first_widget_reply_takes_under_two_minutes() {
    let (service, link) = installed().await;
    let (site, snippet) = site();
    let began = Instant::now();
    let owner = Person::with_link_that_signs_in(&service, link).await;
    owner
        .does("await openAccountMenu(); await press('Set a password');")
        .await;
    owner
        .does_with(
            "await type('New password', input); await press('Save'); await shows('Password set');",
            json!(PASSWORD),
        )
        .await;
    let begins = "await press('New agent'); await press('Shop'); await type('Name', 'Tea shop');";
    let configures = "
        await press('Create'); await press('Publish'); await press('Install it');
        await type('Domain to allow', input); await press('Add'); await press('Save'); await shows('Saved.');
        return [sessionStorage.hits, (await until('the snippet', () => document.querySelector('pre'))).textContent];";
    owner.does("sessionStorage.hits = 0;").await;
    owner.does(begins).await;
    owner.browser.keep_picture("walk-1-new-agent").await;
    let made = owner.does_with(configures, json!(site.origin())).await;
    owner.browser.keep_picture("walk-2-installed").await;
    let hits: usize = made[0].as_str().unwrap().parse().unwrap();
    // A visitor needs two more: to open the widget and to send.
    assert!(hits + 2 <= CLICKS_MAX, "{hits}");
    snippet.set(made[1].as_str().unwrap().to_owned()).unwrap();
    let visitor = Visitor::at(site, Browser::open().await).await;
    visitor.opens().await;
    visitor.says("Hello, who are you?").await;
    visitor
        .sees(
            "an answer",
            "!$('.send.stop') && all('.row.assistant').at(-1)?.innerText.includes('demo model')",
        )
        .await;
    visitor.browser.keep_picture("walk-3-widget").await;
    assert!(began.elapsed() < ALL_MAX, "{:?}", began.elapsed());
    owner
        .does("await press('Install'); await shows('Last seen on 127.0.0.1');")
        .await;
    // A page outside the list has no widget, and the new password signs in.
    visitor.browser.visit(&visitor.page.other_origin()).await;
    eventually("the page is refused", PATIENCE, async || {
        visitor
            .browser
            .console()
            .await
            .iter()
            .any(|line| line.contains("DOMAIN_NOT_ALLOWED"))
            .then_some(())
    })
    .await;
    let again = owner.in_another_browser("/sign-in").await;
    let signs_in = "await type('Email', input[0]); await type('Password', input[1]); await press('Sign in'); await shows('Tea shop');";
    again
        .does_with(signs_in, json!([owner.email, PASSWORD]))
        .await;
}
