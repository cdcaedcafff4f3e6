//! Dashboard sessions: storage, cross-site requests, expiry and sign-out.

use super::*;

#[tokio::test]
async fn session_is_stored_as_a_hash_and_its_token_is_no_key() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let token = browser.cookie.split_once('=').unwrap().1;
    assert!(!world.is_stored(token), "the plain token is stored");
    let bearer = format!("Bearer {token}");
    for path in [World::agent_path(""), of("/agents"), SESSION.to_owned()] {
        let answer = world
            .send_with("GET", &path, &[("authorization", &bearer)], "")
            .await;
        assert_eq!(answer.status, 401, "{path}");
    }
    for key in [world.key.as_str(), ADMIN_TOKEN] {
        let cookie = format!("switchboard={key}; __Host-switchboard={key}");
        assert_eq!(
            world
                .send_with("GET", SESSION, &[("cookie", &cookie)], "")
                .await
                .status,
            401
        );
        assert_eq!(
            world
                .send_with("GET", SESSION, &[("x-api-key", key)], "")
                .await
                .status,
            401
        );
        assert_eq!(
            world
                .send_with("GET", &of("/agents"), &[("cookie", &cookie)], "")
                .await
                .status,
            401
        );
    }
    assert_eq!(
        browser
            .send("GET", &World::agent_path(""), Value::Null)
            .await
            .status,
        401,
        "no cookie opens the API"
    );
}

/// Returns a request of every kind that would change something, as method, path and body.
fn changes() -> [(&'static str, String, Value); 8] {
    let agent = of(&format!("/agents/{}", agent_id()));
    let named = |slug: &str| json!({ "slug": slug, "name": "Evil" });
    let user = json!({ "email": "eve@example.org", "role": "owner" });
    let password = json!({ "currentPassword": PASS, "newPassword": NEW_PASS });
    let sign_in = json!({ "email": "ada@example.org", "password": PASS });
    [
        ("POST", of("/agents"), named("evil")),
        ("PATCH", agent.clone(), json!({ "name": "Evil" })),
        ("PUT", agent.clone(), named("shop")),
        ("DELETE", agent, Value::Null),
        ("POST", of("/users"), user),
        ("POST", PASSWORD.to_owned(), password),
        ("POST", SESSION.to_owned(), sign_in),
        ("DELETE", SESSION.to_owned(), Value::Null),
    ]
}

#[tokio::test]
async fn cross_site_requests_of_a_signed_in_browser_are_refused() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let before = world.catalog_entries().await;
    for (method, path, body) in changes() {
        for foreign in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[
                ("origin", "https://evil.example"),
                ("host", "localhost:8080"),
            ],
            &[],
        ] {
            let headers = [foreign, &[JSON]].concat();
            let answer = browser
                .send_with(method, &path, &headers, body.clone())
                .await;
            assert_eq!(
                answer.problem(),
                (403, "DOMAIN_NOT_ALLOWED".into()),
                "{method} {path} {foreign:?}"
            );
        }
    }
    assert_eq!(world.catalog_entries().await, before);
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn html_form_of_a_signed_in_browser_is_refused() {
    let world = World::with(unthrottled()).await;
    let (browser, _) = person(&world, "ada@example.org", "owner").await;
    let before = world.catalog_entries().await;
    let agent = json!({ "slug": "evil", "name": "Evil" });
    for form in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let headers = [OURS, ("content-type", form)];
        let answer = browser
            .send_with("POST", &of("/agents"), &headers, agent.clone())
            .await;
        assert_eq!(
            answer.problem(),
            (415, "UNSUPPORTED_MEDIA_TYPE".into()),
            "{form}"
        );
    }
    assert_eq!(world.catalog_entries().await, before);
    assert!(browser.is_signed_in().await);
    assert_eq!(
        browser.send("POST", &of("/agents"), agent).await.status,
        201,
        "the same request as JSON is accepted"
    );
}

#[tokio::test]
async fn session_ends_when_idle_or_old_and_use_extends_it() {
    let idle = World::with(IngressConfig {
        session_idle_ms: 60_000,
        ..unthrottled()
    })
    .await;
    let (browser, _) = person(&idle, "ada@example.org", "owner").await;
    for _ in 0..3 {
        idle.age_sessions(40_000_000).await;
        assert!(browser.is_signed_in().await, "used in time");
    }
    idle.age_sessions(61_000_000).await;
    assert!(!browser.is_signed_in().await, "unused for long enough");

    let old = World::with(IngressConfig {
        session_lifetime_ms: 1500,
        ..unthrottled()
    })
    .await;
    let (browser, _) = person(&old, "ada@example.org", "owner").await;
    let began = tokio::time::Instant::now();
    while browser.is_signed_in().await {
        assert!(
            began.elapsed() < DEADLINE,
            "a session that is used ends too"
        );
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
    assert!(
        cookies
            .iter()
            .any(|cookie| cookie.to_str().unwrap().starts_with("switchboard=; ")),
        "{cookies:?}"
    );
    assert!(!browser.is_signed_in().await);
    assert_eq!(
        browser.send("DELETE", SESSION, Value::Null).await.status,
        204,
        "again"
    );
}

#[tokio::test]
async fn password_change_ends_all_other_sessions() {
    let world = World::with(unthrottled()).await;
    let (mut first, _) = person(&world, "ada@example.org", "viewer").await;
    let mut second = Browser::new(&world);
    second.sign_in("ada@example.org", PASS).await;
    let old = first.clone();
    let body = |current: &str| json!({ "currentPassword": current, "newPassword": NEW_PASS });
    assert_eq!(
        first.keep(PASSWORD, body("not the password")).await.status,
        400
    );
    assert!(second.is_signed_in().await);
    assert_eq!(first.keep(PASSWORD, body(PASS)).await.status, 200);
    assert!(
        first.is_signed_in().await && !second.is_signed_in().await && !old.is_signed_in().await
    );
    assert_eq!(second.sign_in("ada@example.org", PASS).await.status, 401);
    assert_eq!(
        second.sign_in("ada@example.org", NEW_PASS).await.status,
        200
    );
}

#[tokio::test]
async fn disabling_or_removing_a_user_ends_all_sessions_at_once() {
    let world = World::with(unthrottled()).await;
    let second = world.second_ingress().await;
    for (email, removal) in [("ada@example.org", false), ("bob@example.org", true)] {
        let (browser, id) = person(&world, email, "editor").await;
        let elsewhere = Browser {
            world: &second,
            cookie: browser.cookie.clone(),
        };
        assert!(elsewhere.is_signed_in().await);
        let path = format!("/users/{id}");
        let answer = if removal {
            admin(&world, "DELETE", &path, Value::Null).await
        } else {
            admin(&world, "PATCH", &path, json!({ "state": "disabled" })).await
        };
        assert!(answer.status.is_success(), "{}", answer.text);
        assert!(
            !browser.is_signed_in().await && !elsewhere.is_signed_in().await,
            "{email}"
        );
        if removal {
            // The next account of this address is a different one.
            let (next, _) = person(&world, email, "viewer").await;
            assert!(next.is_signed_in().await && !browser.is_signed_in().await);
        } else {
            assert_eq!(
                admin(&world, "PATCH", &path, json!({ "state": "active" }))
                    .await
                    .json()["state"],
                "active"
            );
            assert!(
                !browser.is_signed_in().await,
                "an ended session does not become valid again"
            );
        }
    }
}
