//! Sign-in to the dashboard: valid on every ingress, uniform refusals, and delayed guesses.

use std::time::{Duration, Instant};

use futures::{StreamExt, future::join_all, stream};
use reqwest::Method;
use serde_json::json;

use super::{Browser, LINK, Login, PASS, Person, SESSION, invited, link_of, sign_in_from};
use crate::support::{Client, OrganizationDocument, SharedService, TestService, send, unique};

#[tokio::test]
async fn session_is_valid_on_every_ingress() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "editor").await;
    let urls = service.public_urls();
    let mut browser = Browser::at(urls.last().unwrap());
    let spelled = person
        .login
        .of_another(&format!(" {} ", person.login.email.to_uppercase()));
    let answer = browser.sign_in(&spelled, PASS).await;
    answer.assert_status(200);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("switchboard=") && cookie.contains("; HttpOnly; SameSite=Lax; "),
        "{cookie}"
    );
    for url in urls {
        let who = browser.moved_to(&url).get(SESSION).await;
        who.assert_status(200);
        let who = who.json();
        assert_eq!(
            (&who["user"]["email"], &who["user"]["role"]),
            (&json!(person.login.email), &json!("editor"))
        );
        assert_eq!(who["organization"]["id"], organization.id.as_str());
        assert!(
            who["rights"]
                .as_array()
                .unwrap()
                .contains(&json!("configure")),
            "{who}"
        );
    }
}

#[tokio::test]
async fn wrong_password_and_unknown_address_get_the_same_answer() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "owner").await;
    let waiting = invited(service, &organization, "owner").await;
    let mut refusals = vec![];
    let elsewhere = Login {
        organization: unique("none"),
        ..person.login.clone()
    };
    let unknown = ["unknown@people.example", "no address"];
    let others = [waiting["email"].as_str().unwrap()]
        .into_iter()
        .chain(unknown);
    let others = others.map(|email| person.login.of_another(email));
    for login in others.chain([person.login.clone(), elsewhere]) {
        let answer = Browser::at(&service.public_urls()[0])
            .sign_in(&login, WRONG)
            .await;
        let problem = answer.assert_problem(401, None);
        assert_eq!(answer.header("set-cookie"), None);
        refusals.push((problem["title"].clone(), problem["detail"].clone()));
    }
    assert!(refusals.iter().all(|it| *it == refusals[0]), "{refusals:?}");
}

/// An owner could find out who else uses the installation if invitations differed.
#[tokio::test]
async fn address_in_two_organizations_has_two_accounts() {
    let service = SharedService::get().await;
    let first = OrganizationDocument::new().apply(&service).await;
    let second = OrganizationDocument::new().apply(&service).await;
    let here = Person::new(&service, &first, "owner").await;
    let body = json!({"email": here.login.email, "role": "viewer"});
    let admin = service.admin();
    let invitation = admin.post(&second.admin_path("/users"), &body).await;
    invitation.assert_status(201);
    let invitation = invitation.json();
    assert_ne!(invitation["id"], here.id.as_str());
    let again = admin.post(&second.admin_path("/users"), &body).await;
    again.assert_problem(409, Some("CONFLICT"));
    let other_pass = "another correct horse";
    let mut browser = Browser::at(&service.public_urls()[0]);
    let body = json!({"link": link_of(&invitation), "password": other_pass});
    browser.keep(LINK, &body).await.assert_status(200);
    assert!(here.browser.is_signed_in().await);
    let there = Login {
        organization: second.slug().to_owned(),
        ..here.login.clone()
    };
    for (login, right, wrong, role) in [
        (&here.login, PASS, other_pass, "owner"),
        (&there, other_pass, PASS, "viewer"),
    ] {
        assert_eq!(browser.sign_in(login, wrong).await.status, 401);
        let session = browser.sign_in(login, right).await.json();
        assert_eq!(session["organization"]["slug"], login.organization.as_str());
        assert_eq!(session["user"]["role"], role);
    }
    // Without an organization both are refused: an answer would tell which came first.
    for pass in [PASS, other_pass] {
        let body = json!({"email": here.login.email, "password": pass});
        let refused = browser.keep(SESSION, &body).await;
        let refused = refused.assert_problem(401, None);
        assert_eq!(refused["param"], "organization", "{refused}");
    }
}

/// The test acts as the proxy that sets the addresses.
const TRUSTED: (&str, &str) = ("SWITCHBOARD__INGRESS__TRUSTED_PROXIES", "127.0.0.1");
const WRONG: &str = "quite a wrong one";

#[tokio::test]
async fn guesses_slow_an_account_at_one_address_only() {
    let free = ("SWITCHBOARD__INGRESS__SIGN_INS_PER_ACCOUNT", "3");
    let service = TestService::start_with(&[TRUSTED, free]).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let person = Person::new(&service, &organization, "owner").await;
    let clients: Vec<Client> = service
        .public_urls()
        .iter()
        .map(|url| Client::new(url))
        .collect();
    let guess = async |login: &Login, address: &str| {
        let mut times = vec![];
        for round in 0..7 {
            let client = &clients[round % clients.len()];
            let (status, time) = sign_in_from(client, address, login, WRONG).await;
            assert_eq!(status, 401, "attempt {round} for {}", login.email);
            times.push(time);
        }
        times
    };
    let unknown = person.login.of_another("unknown@people.example");
    let (known, unknown) = tokio::join!(
        guess(&person.login, "203.0.113.1"),
        guess(&unknown, "203.0.113.2"),
    );
    for times in [known, unknown] {
        let delays = [0, 0, 0, 500, 1_000, 2_000, 4_000].map(Duration::from_millis);
        let waited = times.iter().zip(delays).all(|(time, delay)| *time >= delay);
        assert!(waited, "{times:?}");
    }
    let full = Duration::from_secs(8);
    let (status, time) = sign_in_from(&clients[0], "203.0.113.3", &person.login, PASS).await;
    assert!(status == 200 && time < full, "{status} after {time:?}");
    let (status, time) = sign_in_from(&clients[0], "203.0.113.1", &person.login, PASS).await;
    assert!(status == 200 && time >= full, "{status} after {time:?}");
    assert!(person.browser.is_signed_in().await, "who is in stays in");
}

/// The default limits: neither the address nor the account of a guess is refused.
#[tokio::test]
async fn administrator_signs_in_during_a_thousand_guesses() {
    let service = TestService::start_with(&[
        TRUSTED,
        ("SWITCHBOARD__INGRESS__SIGN_INS_PER_ADDRESS", "100"),
    ])
    .await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .key("unused", &[])
        .apply(&service)
        .await;
    let person = Person::new(&service, &organization, "owner").await;
    // One client, because creating a thousand would take longer than the guesses.
    let client = Client::new(&service.public_urls()[0]);
    let guesses = stream::iter(0..1_000).map(async |number| {
        let address = format!("198.51.100.{}", number % 50);
        sign_in_from(&client, &address, &person.login, WRONG)
            .await
            .0
    });
    let began = Instant::now();
    let guessing = guesses.buffer_unordered(100).collect::<Vec<u16>>();
    let administrator = async {
        let mut times = vec![];
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (status, time) = sign_in_from(&client, "203.0.113.1", &person.login, PASS).await;
            assert_eq!(status, 200, "after {time:?}");
            times.push(time);
            let key = client.with_key(organization.key_text("unused"));
            key.get(&organization.path("")).await.assert_status(200);
            let organizations = service.admin().get("/api/admin/organizations").await;
            organizations.assert_status(200);
            for (_, url) in service.ops_urls() {
                Client::new(&url).get("/healthz").await.assert_status(200);
            }
        }
        (times, began.elapsed())
    };
    let (statuses, (times, administrator_ended)) = tokio::join!(guessing, administrator);
    println!(
        "{times:?} of the administrator, {:?} in all",
        began.elapsed()
    );
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    assert!(administrator_ended < began.elapsed(), "guesses ended early");
    // One attempt of each address is in the queue before it: a twentieth of all guesses.
    let slowest = times.iter().max().unwrap();
    assert!(*slowest < began.elapsed() / 4, "{times:?}");
}

#[tokio::test]
async fn known_browser_is_not_delayed_by_guesses_at_its_address() {
    const GUESSES: usize = 60;
    let free = ("SWITCHBOARD__INGRESS__SIGN_INS_PER_ACCOUNT", "2");
    let service = TestService::start_with(&[TRUSTED, free]).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let person = Person::new(&service, &organization, "owner").await;
    let client = Client::new(&service.public_urls()[0]);
    let begin = |cookies: &str, password| {
        client
            .request(Method::POST, SESSION)
            .header("sec-fetch-site", "same-origin")
            .header("x-forwarded-for", "203.0.113.1")
            .header("cookie", cookies)
            .json(&person.login.with(password))
    };
    let first = send(begin("", PASS)).await;
    let cookies = first.headers.get_all("set-cookie").into_iter();
    let cookies: Vec<_> = cookies
        .map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap())
        .collect();
    let guesses = join_all((0..GUESSES).map(|_| send(begin("", WRONG))));
    let knows = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let began = Instant::now();
        let answer = send(begin(cookies[1], PASS)).await;
        (answer.status, began.elapsed())
    };
    // Guesses that wait for a place end with the client.
    let (status, time) = tokio::select! {
        biased;
        known = knows => known,
        _ = guesses => panic!("the guesses ended early"),
    };
    let longest = Duration::from_secs(8);
    assert!(status == 200 && time < longest, "{status} after {time:?}");
}

#[tokio::test]
async fn sign_in_never_reuses_an_existing_session_token() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let person = Person::new(organization.service(), &organization, "owner").await;
    let before = person.browser.clone();
    let mut after = before.clone();
    assert_eq!(after.sign_in(&person.login, PASS).await.status, 200);
    assert_ne!(before.cookie, after.cookie);
    assert!(after.is_signed_in().await && !before.is_signed_in().await);
    let planted = Browser {
        cookie: format!("switchboard={}", "0".repeat(52)),
        ..before
    };
    let mut victim = planted.clone();
    assert_eq!(victim.sign_in(&person.login, PASS).await.status, 200);
    assert!(victim.is_signed_in().await && !planted.is_signed_in().await);
}
