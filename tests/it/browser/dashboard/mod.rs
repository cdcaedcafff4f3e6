//! The dashboard in a real browser, on live data of the real service.

mod agents;
mod conversation_actions;
mod conversations;
mod door;
mod key_uses;
mod keys;
mod looks;
mod playground;
mod serving;
mod sessions;
mod team_trials;
mod teams;

use serde_json::Value;

use crate::support::{Browser, Organization, SharedService};

const PAGE: &str = include_str!("page.js");

/// A person at the dashboard.
struct Person {
    browser: Browser,
    url: String,
}

impl Person {
    /// Signed in with these rights, and at this page.
    async fn at(service: &SharedService, organization: &Organization, rights: &[&str], path: &str) -> Self {
        let url = door::open(service, organization, rights);
        let browser = Browser::at(&format!("{url}/dashboard{path}")).await;
        Self { browser, url }
    }

    /// An owner at this page.
    async fn owner_at(service: &SharedService, organization: &Organization, path: &str) -> Self {
        Self::at(service, organization, door::OWNER, path).await
    }

    async fn goes_to(&self, path: &str) {
        self.browser.visit(&format!("{}/dashboard{path}", self.url)).await;
    }

    /// Does something as `page.js` has it, and tells what came of it.
    async fn does(&self, steps: &str) -> Value {
        self.does_with(steps, Value::Null).await
    }

    /// The same with something to use as `input`.
    async fn does_with(&self, steps: &str, input: Value) -> Value {
        self.browser.run(&format!("{PAGE}\n{steps}"), input).await
    }
}
