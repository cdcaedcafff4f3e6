//! Tests of dashboard accounts over embedded backends: sign-in, cross-site requests, roles and
//! sign-out.

mod users;

use http::header;
use serde_json::{Value, json};

use crate::{
    IngressConfig,
    testing::{Answer, World, org_path as of},
};

const SESSION: &str = "/api/dashboard/session";
const LINK: &str = "/api/dashboard/link";
const PASSWORD: &str = "/api/dashboard/password";
const PASS: &str = "correct horse battery";
const NEW_PASS: &str = "quite another secret";
const JSON: (&str, &str) = ("content-type", "application/json");
const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");
/// Returns a configuration without sign-in limits, which have tests of their own.
fn unthrottled() -> IngressConfig {
    IngressConfig {
        sign_ins_per_account: 0,
        sign_ins_per_address: 0,
        dashboard_url: "http://localhost:8080".into(),
        ..IngressConfig::default()
    }
}

/// A browser with one cookie, whose requests name the site of their page.
#[derive(Clone)]
struct Browser<'a> {
    world: &'a World,
    cookie: String,
}

impl<'a> Browser<'a> {
    const fn new(world: &'a World) -> Self {
        Self {
            world,
            cookie: String::new(),
        }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        self.send_with(method, path, &[OURS, JSON], body).await
    }

    async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let headers = [headers, &[("cookie", self.cookie.as_str())]].concat();
        self.world.send_json(method, path, &headers, &body).await
    }

    /// Sends a request and stores the cookie of the response.
    async fn keep(&mut self, path: &str, body: Value) -> Answer {
        let answer = self.send("POST", path, body).await;
        if let Some(cookie) = answer.headers.get(header::SET_COOKIE) {
            self.cookie = cookie
                .to_str()
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .to_owned();
        }
        answer
    }

    async fn sign_in(&mut self, email: &str, password: &str) -> Answer {
        self.keep(SESSION, json!({ "email": email, "password": password }))
            .await
    }

    async fn who(&self) -> Answer {
        self.send("GET", SESSION, Value::Null).await
    }

    async fn is_signed_in(&self) -> bool {
        self.who().await.status == 200
    }
}

async fn admin(world: &World, method: &str, path: &str, body: Value) -> Answer {
    world.admin(method, &of(path), &[], body).await
}

async fn invited(world: &World, email: &str, role: &str) -> Value {
    let answer = admin(
        world,
        "POST",
        "/users",
        json!({ "email": email, "role": role }),
    )
    .await;
    answer.expect(201)
}

fn link_of(user: &Value) -> String {
    user["link"]["url"]
        .as_str()
        .unwrap()
        .split_once('#')
        .unwrap()
        .1
        .to_owned()
}

/// Creates a user by an invitation and returns it with the id of its account.
async fn person<'a>(world: &'a World, email: &str, role: &str) -> (Browser<'a>, String) {
    let user = invited(world, email, role).await;
    let mut browser = Browser::new(world);
    let answer = browser
        .keep(LINK, json!({ "link": link_of(&user), "password": PASS }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    (browser, user["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn https_cookie_is_bound_to_its_host() {
    let world = World::with(IngressConfig {
        dashboard_url: "https://chat.example".into(),
        ..unthrottled()
    })
    .await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    assert!(
        browser.cookie.starts_with("__Host-switchboard="),
        "{}",
        browser.cookie
    );
    assert!(browser.is_signed_in().await);
    let planted = Browser {
        cookie: browser.cookie.replace("__Host-", ""),
        ..browser.clone()
    };
    assert!(
        !planted.is_signed_in().await,
        "a sibling domain could have set it"
    );
}

#[tokio::test]
async fn parallel_guesses_wait_and_are_compared() {
    let world = World::with(IngressConfig {
        sign_ins_per_account: 2,
        ..unthrottled()
    })
    .await;
    person(&world, "ada@example.org", "owner").await;
    tokio::time::pause();
    let attempt = async |password| {
        let began = tokio::time::Instant::now();
        let answer = Browser::new(&world)
            .sign_in("ada@example.org", password)
            .await;
        (answer.status.as_u16(), began.elapsed().as_secs())
    };
    let mut answers = futures::future::join_all(["wrong password"; 12].map(attempt)).await;
    assert!(answers.iter().all(|(status, _)| *status == 401));
    answers.sort_unstable();
    let seconds: Vec<u64> = answers.iter().map(|(_, seconds)| *seconds).collect();
    assert_eq!(seconds, [0, 0, 0, 1, 2, 4, 8, 8, 8, 8, 8, 8]);
    assert_eq!(attempt(PASS).await, (200, 8));
}

#[tokio::test]
async fn session_token_is_stored_as_a_hash() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let token = browser.cookie.split_once('=').unwrap().1;
    assert!(!world.is_stored(token), "the plain token is stored");
}

#[tokio::test]
async fn password_change_invalidates_earlier_links() {
    let world = World::with(unthrottled()).await;
    let (mut browser, id) = person(&world, "ada@example.org", "viewer").await;
    let made = admin(&world, "POST", &format!("/users/{id}/link"), json!({}))
        .await
        .json();
    let body = json!({ "currentPassword": PASS, "newPassword": NEW_PASS });
    assert_eq!(browser.keep(PASSWORD, body).await.status, 200);
    let used = Browser::new(&world)
        .keep(LINK, json!({ "link": link_of(&made), "password": PASS }))
        .await;
    assert_eq!(used.status, 401, "{}", used.text);
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn link_is_not_redeemed_without_the_relay() {
    let world = World::with(unthrottled()).await;
    let user = invited(&world, "ada@example.org", "owner").await;
    let body = json!({ "link": link_of(&user), "password": PASS });
    world.relay.faults.set_down(true);
    assert_eq!(
        Browser::new(&world)
            .keep(LINK, body.clone())
            .await
            .problem(),
        (503, "UNAVAILABLE".into())
    );
    world.relay.faults.set_down(false);
    assert_eq!(Browser::new(&world).keep(LINK, body).await.status, 200);
}
