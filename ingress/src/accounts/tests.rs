//! Tests of dashboard accounts over embedded backends: sign-in, cross-site requests, roles and
//! sign-out.

mod links;
mod roles;
mod sessions;

use std::time::Duration;

use http::header;
use serde_json::{Value, json};

use crate::{
    IngressConfig,
    testing::{ADMIN_TOKEN, Answer, World, agent_id, org_path as of},
};

const SESSION: &str = "/api/dashboard/session";
const LINK: &str = "/api/dashboard/link";
const PASSWORD: &str = "/api/dashboard/password";
const PASS: &str = "correct horse battery";
const NEW_PASS: &str = "quite another secret";
const JSON: (&str, &str) = ("content-type", "application/json");
const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");
/// Timeout for events that must happen.
const DEADLINE: Duration = Duration::from_secs(10);

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
async fn invitation_sets_the_password_that_signs_in() {
    let world = World::with(unthrottled()).await;
    let user = invited(&world, "Ada@Example.org", "owner").await;
    assert_eq!(
        (&user["email"], &user["state"]),
        (&json!("ada@example.org"), &json!("invited"))
    );
    let mut browser = Browser::new(&world);
    assert_eq!(
        browser.sign_in("ada@example.org", PASS).await.status,
        401,
        "sign-in before the invitation"
    );
    let asked = browser.keep(LINK, json!({ "link": link_of(&user) })).await;
    assert_eq!(
        (asked.problem().0, asked.json()["param"].clone()),
        (400, json!("password"))
    );
    assert_eq!(asked.json()["details"]["email"], "ada@example.org");
    assert_eq!(
        browser
            .keep(LINK, json!({ "link": link_of(&user), "password": "short" }))
            .await
            .status,
        400
    );
    let welcome = browser
        .keep(LINK, json!({ "link": link_of(&user), "password": PASS }))
        .await;
    assert_eq!(welcome.status, 200, "{}", welcome.text);
    let mut other = Browser::new(&world);
    let answer = other.sign_in(" ADA@example.org ", PASS).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(
        cookie.starts_with("switchboard=") && cookie.contains("; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let who = other.who().await.json();
    assert_eq!(
        (&who["user"]["role"], &who["organization"]["slug"]),
        (&json!("owner"), &json!("acme"))
    );
    assert!(
        who["rights"]
            .as_array()
            .unwrap()
            .contains(&json!("manageUsers")),
        "{who}"
    );
    assert!(!who.to_string().contains("argon2"), "{who}");
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
async fn failed_sign_ins_have_one_answer() {
    let world = World::with(unthrottled()).await;
    let (_, id) = person(&world, "ada@example.org", "viewer").await;
    invited(&world, "invited@example.org", "viewer").await;
    let mut answers = Vec::new();
    for email in [
        "ada@example.org",
        "unknown@example.org",
        "invited@example.org",
        "no address",
    ] {
        answers.push(
            Browser::new(&world)
                .sign_in(email, "a wrong password")
                .await,
        );
    }
    assert_eq!(
        admin(
            &world,
            "PATCH",
            &format!("/users/{id}"),
            json!({ "state": "disabled" })
        )
        .await
        .status,
        200
    );
    answers.push(Browser::new(&world).sign_in("ada@example.org", PASS).await);
    let told = |answer: &Answer| {
        let mut body = answer.json();
        body.as_object_mut().unwrap().remove("requestId");
        (
            answer.status.as_u16(),
            body,
            answer.headers.get(header::SET_COOKIE).cloned(),
        )
    };
    assert!(
        answers
            .iter()
            .all(|answer| told(answer) == told(&answers[0])),
        "{answers:?}"
    );
    assert_eq!(
        (
            answers[0].status.as_u16(),
            answers[0].headers.contains_key(header::SET_COOKIE)
        ),
        (401, false)
    );
}

#[tokio::test]
async fn sign_in_attempts_are_limited_by_account_and_by_address() {
    let config = IngressConfig {
        sign_ins_per_account: 3,
        sign_ins_per_address: 9,
        ..unthrottled()
    };
    let world = World::with(config).await;
    for email in ["ada@example.org", "bob@example.org"] {
        for _ in 0..3 {
            assert_eq!(
                Browser::new(&world)
                    .sign_in(email, "a wrong password")
                    .await
                    .status,
                401
            );
        }
        let refused = Browser::new(&world)
            .sign_in(email, "a wrong password")
            .await;
        assert_eq!(refused.problem(), (429, "RATE_LIMITED".into()));
        assert!(refused.headers.contains_key(header::RETRY_AFTER));
    }
    // Eight attempts so far; the ninth is the last one of the address for any account.
    assert_eq!(
        Browser::new(&world)
            .sign_in("eve@example.org", "a wrong password")
            .await
            .status,
        401
    );
    assert_eq!(
        Browser::new(&world)
            .sign_in("joe@example.org", "a wrong password")
            .await
            .status,
        429
    );
}

#[tokio::test]
async fn concurrent_attempts_do_not_exceed_the_limit() {
    let world = World::with(IngressConfig {
        sign_ins_per_account: 2,
        ..unthrottled()
    })
    .await;
    let attempts = (0..12).map(async |_| {
        Browser::new(&world)
            .sign_in("ada@example.org", "wrong password")
            .await
            .status
    });
    let answers = futures::future::join_all(attempts).await;
    assert_eq!(
        answers.iter().filter(|status| **status == 401).count(),
        2,
        "{answers:?}"
    );
}

#[tokio::test]
async fn sign_in_creates_a_new_token_and_ends_the_old_session() {
    let world = World::with(unthrottled()).await;
    let (first, _) = person(&world, "ada@example.org", "owner").await;
    let mut second = first.clone();
    assert_eq!(second.sign_in("ada@example.org", PASS).await.status, 200);
    assert_ne!(first.cookie, second.cookie);
    assert!(second.is_signed_in().await && !first.is_signed_in().await);
    // A token chosen by somebody else never becomes valid.
    let chosen = format!("switchboard={}", "0".repeat(52));
    let mut victim = Browser {
        world: &world,
        cookie: chosen.clone(),
    };
    assert_eq!(victim.sign_in("ada@example.org", PASS).await.status, 200);
    assert!(
        victim.is_signed_in().await
            && !Browser {
                world: &world,
                cookie: chosen
            }
            .is_signed_in()
            .await
    );
}
