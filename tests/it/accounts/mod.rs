//! Dashboard accounts over HTTP: sign-in, sessions, links, roles, cross-site requests and the audit
//! log.

mod audit_log;
mod cross_site;
mod limits;
mod lists;
mod provider_addresses;
mod roles;
mod sessions;
mod sign_in;
mod sign_in_links;

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Organization, TestService, send, unique};

const SESSION: &str = "/api/dashboard/session";
const LINK: &str = "/api/dashboard/link";
const PASSWORD: &str = "/api/dashboard/password";
const PASS: &str = "correct horse battery staple";

/// A browser with one cookie that sends same-origin requests.
#[derive(Clone)]
struct Browser {
    base: String,
    cookie: String,
}

impl Browser {
    fn at(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            cookie: String::new(),
        }
    }

    /// Returns a browser with the same cookie for another ingress.
    fn moved_to(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.send_from(&[("sec-fetch-site", "same-origin")], method, path, body)
            .await
    }

    async fn send_from(
        &self,
        page: &[(&str, &str)],
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Client::new(&self.base)
            .request(method, path)
            .header("cookie", &self.cookie);
        for (name, value) in page {
            request = request.header(*name, *value);
        }
        send(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    /// Sends a request and keeps the cookie of the response.
    async fn keep(&mut self, path: &str, body: &Value) -> Answer {
        let answer = self.send(Method::POST, path, Some(body)).await;
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        answer
    }

    async fn sign_in(&mut self, login: &Login, password: &str) -> Answer {
        self.keep(SESSION, &login.with(password)).await
    }

    async fn is_signed_in(&self) -> bool {
        self.get(SESSION).await.status == 200
    }
}

/// Signs in through the proxy that the test acts as, and returns the status and the time.
async fn sign_in_from(
    client: &Client,
    address: &str,
    login: &Login,
    password: &str,
) -> (u16, Duration) {
    let began = Instant::now();
    let request = client
        .request(Method::POST, SESSION)
        .header("sec-fetch-site", "same-origin")
        .header("x-forwarded-for", address)
        .json(&login.with(password));
    (send(request).await.status, began.elapsed())
}

/// Organization and address of an account.
#[derive(Clone)]
struct Login {
    organization: String,
    email: String,
}

impl Login {
    /// Returns the login of another address in the same organization.
    fn of_another(&self, email: &str) -> Self {
        Self {
            email: email.to_owned(),
            ..self.clone()
        }
    }

    fn with(&self, password: &str) -> Value {
        json!({"email": self.email, "password": password, "organization": self.organization})
    }
}

/// An account that signed in by its invitation.
struct Person {
    id: String,
    login: Login,
    browser: Browser,
}

impl Person {
    async fn new(service: &TestService, organization: &Organization, role: &str) -> Self {
        let user = invited(service, organization, role).await;
        let mut browser = Browser::at(&service.public_urls()[0]);
        let answer = browser
            .keep(LINK, &json!({"link": link_of(&user), "password": PASS}))
            .await;
        answer.assert_status(200);
        let text = |field: &str| user[field].as_str().unwrap().to_owned();
        let organization = organization.slug().to_owned();
        Self {
            id: text("id"),
            login: Login {
                organization,
                email: text("email"),
            },
            browser,
        }
    }
}

/// Invites an account with a unique address.
async fn invited(service: &TestService, organization: &Organization, role: &str) -> Value {
    let user = json!({"email": format!("{}@people.example", unique("p")), "role": role, "name": "A Person"});
    let answer = service
        .admin()
        .post(&organization.admin_path("/users"), &user)
        .await;
    answer.assert_status(201);
    let user = answer.json();
    assert_eq!(user["state"], "invited");
    user
}

/// Returns the secret after the `#` of a link.
fn link_of(user: &Value) -> String {
    user["link"]["url"]
        .as_str()
        .unwrap()
        .split_once('#')
        .unwrap()
        .1
        .to_owned()
}
