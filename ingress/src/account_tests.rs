//! People over fakes: how they sign in, what other sites cannot make them do, what their roles allow, and how it ends.

use std::time::Duration;

use http::header;
use serde_json::{Value, json};
use switchboard_backends::catalog::Entry;
use switchboard_schemas::{
    ids::OrgId,
    user::{Role, UserState},
};

use crate::{
    IngressConfig,
    testing::{ADMIN_TOKEN, Answer, World, agent_id, org_id, secret},
};

const SESSION: &str = "/api/dashboard/session";
const LINK: &str = "/api/dashboard/link";
const PASSWORD: &str = "/api/dashboard/password";
const PASS: &str = "correct horse battery";
const NEW_PASS: &str = "quite another secret";
const JSON: (&str, &str) = ("content-type", "application/json");
const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");
/// How long a test waits for something that must happen.
const DEADLINE: Duration = Duration::from_secs(10);

/// Throttling has tests of its own; the others sign in as often as they need.
fn unthrottled() -> IngressConfig {
    IngressConfig {
        sign_ins_per_account: 0,
        sign_ins_per_address: 0,
        dashboard_url: "http://localhost:8080".into(),
        ..IngressConfig::default()
    }
}

/// A browser: it holds one cookie and says where its page comes from.
#[derive(Clone)]
struct Browser<'a> {
    world: &'a World,
    cookie: String,
}

impl<'a> Browser<'a> {
    const fn new(world: &'a World) -> Self {
        Self { world, cookie: String::new() }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        self.send_with(method, path, &[OURS, JSON], body).await
    }

    async fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let headers = [headers, &[("cookie", self.cookie.as_str())]].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.world.send_with(method, path, &headers, body).await
    }

    /// Sends, and keeps the cookie of the answer.
    async fn keep(&mut self, path: &str, body: Value) -> Answer {
        let answer = self.send("POST", path, body).await;
        if let Some(cookie) = answer.headers.get(header::SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        answer
    }

    async fn sign_in(&mut self, email: &str, password: &str) -> Answer {
        self.keep(SESSION, json!({ "email": email, "password": password })).await
    }

    async fn who(&self) -> Answer {
        self.send("GET", SESSION, Value::Null).await
    }

    async fn is_signed_in(&self) -> bool {
        self.who().await.status == 200
    }
}

async fn admin(world: &World, method: &str, path: &str, body: Value) -> Answer {
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send_with(method, &of(path), &[("authorization", &bearer)], body).await
}

/// The path of something of the world's organization.
fn of(path: &str) -> String {
    format!("/api/admin/organizations/{}{path}", org_id())
}

async fn invited(world: &World, email: &str, role: &str) -> Value {
    let answer = admin(world, "POST", "/users", json!({ "email": email, "role": role })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()
}

fn link_of(user: &Value) -> String {
    user["link"]["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
}

/// Somebody who has come by an invitation; with the id of the account.
async fn person<'a>(world: &'a World, email: &str, role: &str) -> (Browser<'a>, String) {
    let user = invited(world, email, role).await;
    let mut browser = Browser::new(world);
    let answer = browser.keep(LINK, json!({ "link": link_of(&user), "password": PASS })).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    (browser, user["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_invitation_sets_the_password_and_the_password_signs_in() {
    let world = World::with(unthrottled()).await;
    let user = invited(&world, "Ada@Example.org", "owner").await;
    assert_eq!((&user["email"], &user["state"]), (&json!("ada@example.org"), &json!("invited")));
    let mut browser = Browser::new(&world);
    assert_eq!(browser.sign_in("ada@example.org", PASS).await.status, 401, "nobody signs in before the invitation");
    let asked = browser.keep(LINK, json!({ "link": link_of(&user) })).await;
    assert_eq!((asked.problem().0, asked.json()["param"].clone()), (400, json!("password")));
    assert_eq!(asked.json()["details"]["email"], "ada@example.org");
    assert_eq!(browser.keep(LINK, json!({ "link": link_of(&user), "password": "short" })).await.status, 400);
    let welcome = browser.keep(LINK, json!({ "link": link_of(&user), "password": PASS })).await;
    assert_eq!(welcome.status, 200, "{}", welcome.text);
    let mut other = Browser::new(&world);
    let answer = other.sign_in(" ADA@example.org ", PASS).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("switchboard=") && cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
    let who = other.who().await.json();
    assert_eq!((&who["user"]["role"], &who["organization"]["slug"]), (&json!("owner"), &json!("acme")));
    assert!(who["rights"].as_array().unwrap().contains(&json!("manageUsers")), "{who}");
    assert!(!who.to_string().contains("argon2"), "{who}");
}

#[tokio::test]
async fn over_https_the_cookie_is_bound_to_the_host() {
    let world = World::with(IngressConfig { dashboard_url: "https://chat.example".into(), ..unthrottled() }).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    assert!(browser.cookie.starts_with("__Host-switchboard="), "{}", browser.cookie);
    assert!(browser.is_signed_in().await);
    let planted = Browser { cookie: browser.cookie.replace("__Host-", ""), ..browser.clone() };
    assert!(!planted.is_signed_in().await, "a sister domain could have planted it");
}

#[tokio::test]
async fn a_wrong_password_an_unknown_address_and_a_disabled_account_have_one_answer() {
    let world = World::with(unthrottled()).await;
    let (_, id) = person(&world, "ada@example.org", "viewer").await;
    invited(&world, "invited@example.org", "viewer").await;
    let mut answers = Vec::new();
    for email in ["ada@example.org", "unknown@example.org", "invited@example.org", "no address"] {
        answers.push(Browser::new(&world).sign_in(email, "a wrong password").await);
    }
    assert_eq!(admin(&world, "PATCH", &format!("/users/{id}"), json!({ "state": "disabled" })).await.status, 200);
    answers.push(Browser::new(&world).sign_in("ada@example.org", PASS).await);
    let told = |answer: &Answer| {
        let mut body = answer.json();
        body.as_object_mut().unwrap().remove("requestId");
        (answer.status.as_u16(), body, answer.headers.get(header::SET_COOKIE).cloned())
    };
    assert!(answers.iter().all(|answer| told(answer) == told(&answers[0])), "{answers:?}");
    assert_eq!((answers[0].status.as_u16(), answers[0].headers.contains_key(header::SET_COOKIE)), (401, false));
}

#[tokio::test]
async fn attempts_are_counted_by_account_whether_it_exists_or_not_and_by_address() {
    let config = IngressConfig { sign_ins_per_account: 3, sign_ins_per_address: 9, ..unthrottled() };
    let world = World::with(config).await;
    for email in ["ada@example.org", "bob@example.org"] {
        for _ in 0..3 {
            assert_eq!(Browser::new(&world).sign_in(email, "a wrong password").await.status, 401);
        }
        let refused = Browser::new(&world).sign_in(email, "a wrong password").await;
        assert_eq!(refused.problem(), (429, "RATE_LIMITED".into()));
        assert!(refused.headers.contains_key(header::RETRY_AFTER));
    }
    // Eight so far; the ninth is the address's last, whoever is asked for.
    assert_eq!(Browser::new(&world).sign_in("eve@example.org", "a wrong password").await.status, 401);
    assert_eq!(Browser::new(&world).sign_in("joe@example.org", "a wrong password").await.status, 429);
}

#[tokio::test]
async fn attempts_at_once_do_not_slip_past_the_limit() {
    let world = World::with(IngressConfig { sign_ins_per_account: 2, ..unthrottled() }).await;
    let attempts =
        (0..12).map(async |_| Browser::new(&world).sign_in("ada@example.org", "wrong password").await.status);
    let answers = futures::future::join_all(attempts).await;
    assert_eq!(answers.iter().filter(|status| **status == 401).count(), 2, "{answers:?}");
}

#[tokio::test]
async fn signing_in_gives_a_new_token_and_ends_the_one_that_was_held() {
    let world = World::with(unthrottled()).await;
    let (first, _) = person(&world, "ada@example.org", "owner").await;
    let mut second = first.clone();
    assert_eq!(second.sign_in("ada@example.org", PASS).await.status, 200);
    assert_ne!(first.cookie, second.cookie);
    assert!(second.is_signed_in().await && !first.is_signed_in().await);
    // A token that somebody else chose stays nobody's.
    let chosen = format!("switchboard={}", "0".repeat(52));
    let mut victim = Browser { world: &world, cookie: chosen.clone() };
    assert_eq!(victim.sign_in("ada@example.org", PASS).await.status, 200);
    assert!(victim.is_signed_in().await && !Browser { world: &world, cookie: chosen }.is_signed_in().await);
}

#[tokio::test]
async fn a_session_is_kept_only_as_a_hash_and_its_token_opens_nothing_as_a_key() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let token = browser.cookie.split_once('=').unwrap().1;
    let kept = format!("{:?}{:?}", world.accounts.sessions.lock().unwrap(), world.catalog.entries.lock().unwrap());
    assert!(!kept.contains(token));
    let bearer = format!("Bearer {token}");
    for path in [World::agent_path(""), of("/agents"), SESSION.to_owned()] {
        let answer = world.send_with("GET", &path, &[("authorization", &bearer)], "").await;
        assert_eq!(answer.status, 401, "{path}");
    }
    for key in [world.key.as_str(), ADMIN_TOKEN] {
        let cookie = format!("switchboard={key}; __Host-switchboard={key}");
        assert_eq!(world.send_with("GET", SESSION, &[("cookie", &cookie)], "").await.status, 401);
        assert_eq!(world.send_with("GET", SESSION, &[("x-api-key", key)], "").await.status, 401);
        assert_eq!(world.send_with("GET", &of("/agents"), &[("cookie", &cookie)], "").await.status, 401);
    }
    assert_eq!(browser.send("GET", &World::agent_path(""), Value::Null).await.status, 401, "no cookie opens the API");
}

#[tokio::test]
async fn another_site_can_make_a_signed_in_browser_do_nothing() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let (before, agent) = (world.catalog.entries.lock().unwrap().clone(), of(&format!("/agents/{}", agent_id())));
    let new_agent = json!({ "slug": "evil", "name": "Evil" });
    for (method, path, body) in [
        ("POST", of("/agents"), new_agent.clone()),
        ("PATCH", agent.clone(), json!({ "name": "Evil" })),
        ("PUT", agent.clone(), json!({ "slug": "shop", "name": "Evil" })),
        ("DELETE", agent.clone(), Value::Null),
        ("POST", of("/users"), json!({ "email": "eve@example.org", "role": "owner" })),
        ("POST", PASSWORD.to_owned(), json!({ "currentPassword": PASS, "newPassword": NEW_PASS })),
        ("POST", SESSION.to_owned(), json!({ "email": "ada@example.org", "password": PASS })),
        ("DELETE", SESSION.to_owned(), Value::Null),
    ] {
        for foreign in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example"), ("host", "localhost:8080")],
            &[],
        ] {
            let headers = [foreign, &[JSON]].concat();
            let answer = browser.send_with(method, &path, &headers, body.clone()).await;
            assert_eq!(answer.problem(), (403, "DOMAIN_NOT_ALLOWED".into()), "{method} {path} {foreign:?}");
        }
    }
    for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let headers = [OURS, ("content-type", form)];
        let answer = browser.send_with("POST", &of("/agents"), &headers, new_agent.clone()).await;
        assert_eq!(answer.problem(), (415, "UNSUPPORTED_MEDIA_TYPE".into()), "{form}");
    }
    assert_eq!(*world.catalog.entries.lock().unwrap(), before);
    assert!(browser.is_signed_in().await);
    assert_eq!(browser.send("POST", &of("/agents"), new_agent).await.status, 201);
}

#[tokio::test]
async fn a_session_ends_when_it_is_unused_or_old_and_use_keeps_it_going() {
    let idle = World::with(IngressConfig { session_idle_ms: 1500, ..unthrottled() }).await;
    let (browser, _) = person(&idle, "ada@example.org", "owner").await;
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_millis(3000) {
        assert!(browser.is_signed_in().await, "used all the time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    idle.accounts.sessions.lock().unwrap().values_mut().for_each(|session| {
        session.seen_at = switchboard_schemas::time::Timestamp::from_micros(session.seen_at.micros() - 1_600_000);
    });
    assert!(!browser.is_signed_in().await, "unused for long enough");

    let old = World::with(IngressConfig { session_lifetime_ms: 1500, ..unthrottled() }).await;
    let (browser, _) = person(&old, "ada@example.org", "owner").await;
    let began = tokio::time::Instant::now();
    while browser.is_signed_in().await {
        assert!(began.elapsed() < DEADLINE, "a session that is used ends too");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() > Duration::from_millis(1000));
}

#[tokio::test]
async fn signing_out_ends_the_session_on_the_server() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let answer = browser.send("DELETE", SESSION, Value::Null).await;
    assert_eq!(answer.status, 204);
    let cookies: Vec<_> = answer.headers.get_all(header::SET_COOKIE).iter().collect();
    assert!(cookies.iter().any(|cookie| cookie.to_str().unwrap().starts_with("switchboard=; ")), "{cookies:?}");
    assert!(!browser.is_signed_in().await);
    assert_eq!(browser.send("DELETE", SESSION, Value::Null).await.status, 204, "again");
}

#[tokio::test]
async fn another_password_ends_all_sessions_but_the_one_that_set_it() {
    let world = World::with(unthrottled()).await;
    let (mut first, _) = person(&world, "ada@example.org", "viewer").await;
    let mut second = Browser::new(&world);
    second.sign_in("ada@example.org", PASS).await;
    let old = first.clone();
    let body = |current: &str| json!({ "currentPassword": current, "newPassword": NEW_PASS });
    assert_eq!(first.keep(PASSWORD, body("not the password")).await.status, 400);
    assert!(second.is_signed_in().await);
    assert_eq!(first.keep(PASSWORD, body(PASS)).await.status, 200);
    assert!(first.is_signed_in().await && !second.is_signed_in().await && !old.is_signed_in().await);
    assert_eq!(second.sign_in("ada@example.org", PASS).await.status, 401);
    assert_eq!(second.sign_in("ada@example.org", NEW_PASS).await.status, 200);
}

#[tokio::test]
async fn whoever_is_disabled_or_removed_is_out_at_once_everywhere() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    for (email, removal) in [("ada@example.org", false), ("bob@example.org", true)] {
        let (browser, id) = person(&world, email, "editor").await;
        let elsewhere = Browser { world: &second, cookie: browser.cookie.clone() };
        assert!(elsewhere.is_signed_in().await);
        let path = format!("/users/{id}");
        let answer = if removal {
            admin(&world, "DELETE", &path, Value::Null).await
        } else {
            admin(&world, "PATCH", &path, json!({ "state": "disabled" })).await
        };
        assert!(answer.status.is_success(), "{}", answer.text);
        assert!(!browser.is_signed_in().await && !elsewhere.is_signed_in().await, "{email}");
        if removal {
            // The address's next account is another one.
            let (next, _) = person(&world, email, "viewer").await;
            assert!(next.is_signed_in().await && !browser.is_signed_in().await);
        } else {
            assert_eq!(admin(&world, "PATCH", &path, json!({ "state": "active" })).await.json()["state"], "active");
            assert!(!browser.is_signed_in().await, "what has ended does not begin again");
        }
    }
}

#[tokio::test]
async fn a_link_works_once_and_only_the_last_one() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    let user = invited(&world, "ada@example.org", "owner").await;
    let path = format!("/users/{}/link", user["id"].as_str().unwrap());
    let newer = admin(&world, "POST", &path, json!({})).await;
    assert_eq!((newer.status.as_u16(), &newer.json()["link"]["purpose"]), (201, &json!("invitation")));
    let body = |link: &str| json!({ "link": link, "password": PASS });
    let (mut one, mut two) = (Browser::new(&world), Browser::new(&second));
    assert_eq!(one.keep(LINK, body(&link_of(&user))).await.status, 401, "it was replaced");
    let link = link_of(&newer.json());
    let (left, right) = tokio::join!(one.keep(LINK, body(&link)), two.keep(LINK, body(&link)));
    let mut statuses = [left.status.as_u16(), right.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401], "of two at once, on two processes, one is used");
    assert_eq!(one.keep(LINK, body(&link)).await.status, 401);
    let reset = admin(&world, "POST", &path, json!({})).await.json();
    assert_eq!(reset["link"]["purpose"], "reset");
    let mut third = Browser::new(&world);
    let answer = third.keep(LINK, json!({ "link": link_of(&reset), "password": NEW_PASS })).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!one.is_signed_in().await && !two.is_signed_in().await && third.is_signed_in().await);
}

#[tokio::test]
async fn a_link_is_not_used_while_nobody_can_promise_that_it_works_once() {
    let world = World::with(unthrottled()).await;
    let user = invited(&world, "ada@example.org", "owner").await;
    let body = json!({ "link": link_of(&user), "password": PASS });
    world.relay.away.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(Browser::new(&world).keep(LINK, body.clone()).await.problem(), (503, "UNAVAILABLE".into()));
    world.relay.away.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(Browser::new(&world).keep(LINK, body).await.status, 200);
}

#[tokio::test]
async fn each_role_may_over_http_what_the_matrix_says() {
    let world = World::with(unthrottled()).await;
    let (_, keeper) = person(&world, "keeper@example.org", "owner").await;
    let agent = of(&format!("/agents/{}", agent_id()));
    for (number, role) in ["viewer", "operator", "editor", "owner"].into_iter().enumerate() {
        let (browser, _) = person(&world, &format!("{role}@example.org"), role).await;
        let slug = format!("made-by-{role}");
        for (least, method, path, body) in [
            (0, "GET", "/api/admin/organizations".to_owned(), Value::Null),
            (0, "GET", of(""), Value::Null),
            (0, "GET", of("/agents"), Value::Null),
            (0, "GET", of("/keys"), Value::Null),
            (0, "GET", of("/conversations"), Value::Null),
            (2, "POST", of("/agents"), json!({ "slug": slug, "name": role })),
            (2, "PATCH", agent.clone(), json!({ "name": role })),
            (2, "PUT", agent.clone(), json!({ "slug": "shop", "name": role })),
            (2, "POST", of("/providers"), json!({ "slug": slug })),
            (2, "POST", of("/teams"), json!({ "slug": slug, "name": role })),
            (2, "PATCH", of(""), json!({ "name": role })),
            (2, "GET", of("/audit"), Value::Null),
            (3, "POST", of("/keys"), json!({ "name": slug })),
            (3, "GET", of("/users"), Value::Null),
            (3, "GET", of(&format!("/users/{keeper}")), Value::Null),
            (3, "PATCH", of(&format!("/users/{keeper}")), json!({ "name": role })),
            (3, "POST", of(&format!("/users/{keeper}/link")), json!({})),
            (3, "POST", of("/users"), json!({ "email": format!("new-{role}@example.org"), "role": "owner" })),
            (4, "POST", "/api/admin/organizations".to_owned(), json!({ "slug": slug, "name": role })),
            (4, "POST", "/api/admin/apply".to_owned(), json!({ "organizations": [] })),
            (4, "DELETE", of(""), Value::Null),
        ] {
            let answer = browser.send(method, &path, body).await;
            if number < least {
                assert_eq!(answer.problem(), (403, "INSUFFICIENT_SCOPE".into()), "{role} {method} {path}");
            } else {
                assert!(answer.status.is_success(), "{role} {method} {path} {}", answer.text);
            }
        }
    }
}

#[tokio::test]
async fn another_organization_is_not_there_for_anybody_of_this_one() {
    let world = World::with(unthrottled()).await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let other = json!({ "slug": "other", "name": "Canary" }).to_string();
    assert_eq!(world.send_with("POST", "/api/admin/organizations", &headers, other).await.status, 201);
    let other = OrgId::derive(&secret(), "other");
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let unknown = OrgId::derive(&secret(), "unknown");
    for (method, rest, body) in [
        ("GET", "", Value::Null),
        ("PATCH", "", json!({ "name": "Taken" })),
        ("DELETE", "", Value::Null),
        ("GET", "/agents", Value::Null),
        ("POST", "/agents", json!({ "slug": "a", "name": "A" })),
        ("POST", "/keys", json!({ "name": "k" })),
        ("GET", "/users", Value::Null),
        ("POST", "/users", json!({ "email": "eve@example.org", "role": "owner" })),
        ("GET", "/audit", Value::Null),
        ("GET", "/conversations", Value::Null),
    ] {
        let answers = [other.as_str(), unknown.as_str()].map(|org| {
            let (browser, path, body) =
                (browser.clone(), format!("/api/admin/organizations/{org}{rest}"), body.clone());
            async move { browser.send(method, &path, body).await }
        });
        let [foreign, absent] = answers;
        let (foreign, absent) = (foreign.await, absent.await);
        let expected = if (method, rest) == ("DELETE", "") { (403, "INSUFFICIENT_SCOPE") } else { (404, "NOT_FOUND") };
        for answer in [&foreign, &absent] {
            assert_eq!(answer.problem(), (expected.0, expected.1.to_owned()), "{method} {rest}");
        }
        assert!(!foreign.text.contains("Canary"));
    }
    let listed = browser.send("GET", "/api/admin/organizations", Value::Null).await.json();
    assert_eq!((&listed["total"], &listed["items"][0]["slug"]), (&json!(1), &json!("acme")));
}

#[tokio::test]
async fn the_last_owner_cannot_go_and_two_cannot_send_each_other_away_at_once() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    let (_, ada) = person(&world, "ada@example.org", "owner").await;
    invited(&world, "never-came@example.org", "owner").await;
    let path = |id: &str| format!("/users/{id}");
    for change in [json!({ "role": "editor" }), json!({ "state": "disabled" })] {
        assert_eq!(admin(&world, "PATCH", &path(&ada), change).await.problem(), (409, "CONFLICT".into()));
    }
    assert_eq!(admin(&world, "DELETE", &path(&ada), Value::Null).await.problem(), (409, "CONFLICT".into()));
    for round in 0..5 {
        let (_, bob) = person(&world, &format!("bob{round}@example.org"), "owner").await;
        let owners: Vec<String> = world
            .catalog
            .entries
            .lock()
            .unwrap()
            .values()
            .filter_map(|entry| match entry {
                Entry::User(account) if account.user.role == Role::Owner && account.user.state == UserState::Active => {
                    Some(account.user.id.as_str().to_owned())
                }
                _ => None,
            })
            .collect();
        assert_eq!(owners.len(), 2, "with {bob}");
        let demote = json!({ "role": "viewer" });
        let (one, two) = (path(&owners[0]), path(&owners[1]));
        let (left, right) =
            tokio::join!(admin(&world, "PATCH", &one, demote.clone()), admin(&second, "PATCH", &two, demote.clone()));
        let mut statuses = [left.status.as_u16(), right.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
}

#[tokio::test]
async fn users_are_made_read_changed_and_removed_with_the_usual_care() {
    let world = World::with(unthrottled()).await;
    person(&world, "keeper@example.org", "owner").await;
    let user = invited(&world, "ada@example.org", "viewer").await;
    let path = format!("/users/{}", user["id"].as_str().unwrap());
    for (body, param) in [
        (json!({ "role": "viewer" }), "email"),
        (json!({ "email": "b@example.org" }), "role"),
        (json!({ "email": "nobody", "role": "viewer" }), "email"),
        (json!({ "email": "b@example.org", "role": "god" }), "role"),
        (json!({ "email": "b@example.org", "role": "viewer", "password": "x" }), "password"),
        (json!({ "email": "b@example.org", "role": "viewer", "name": "\u{7}" }), "name"),
    ] {
        let answer = admin(&world, "POST", "/users", body).await;
        assert_eq!((answer.problem().0, &answer.json()["param"]), (400, &json!(param)), "{}", answer.text);
    }
    let again = admin(&world, "POST", "/users", json!({ "email": "ADA@example.org", "role": "owner" })).await;
    assert_eq!(again.problem(), (409, "CONFLICT".into()));
    let read = admin(&world, "GET", &path, Value::Null).await.json();
    assert_eq!((read.get("link"), &read["hasPassword"]), (None, &json!(false)), "a link is shown once");
    let stale = json!({ "name": "Ada", "version": "0" });
    assert_eq!(admin(&world, "PATCH", &path, stale).await.problem(), (409, "CONFLICT".into()));
    assert_eq!(
        admin(&world, "PATCH", &path, json!({ "state": "active" })).await.status,
        400,
        "only the link does that"
    );
    let changed = admin(&world, "PATCH", &path, json!({ "name": "Ada", "version": read["version"] })).await.json();
    assert_eq!((&changed["name"], &changed["role"]), (&json!("Ada"), &json!("viewer")));
    let listed = admin(&world, "GET", "/users", Value::Null).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(admin(&world, "DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(admin(&world, "GET", &path, Value::Null).await.status, 404);
    assert_eq!(admin(&world, "DELETE", &path, Value::Null).await.status, 404);
}
