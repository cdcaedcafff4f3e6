//! One-time links: invitations, password resets, the first start and the `admin link` command.

use serde_json::json;

use super::{Browser, LINK, PASS, Person, SESSION, invited, link_of};
use crate::support::{OrganizationDocument, PATIENCE, Profile, TestService, eventually};

#[tokio::test]
async fn link_used_on_two_ingresses_at_once_signs_in_one_user() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let urls = service.public_urls();
    for _ in 0..5 {
        let user = invited(service, &organization, "viewer").await;
        let body = json!({"link": link_of(&user), "password": PASS});
        let (mut one, mut two) = (Browser::at(&urls[0]), Browser::at(urls.last().unwrap()));
        let (left, right) = tokio::join!(one.keep(LINK, &body), two.keep(LINK, &body));
        let mut statuses = [left.status, right.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401], "{} {}", left.text, right.text);
        assert_ne!(one.is_signed_in().await, two.is_signed_in().await);
        for url in &urls {
            Browser::at(url)
                .keep(LINK, &body)
                .await
                .assert_problem(401, None);
        }
    }
    assert!(
        !service
            .logs()
            .contains(&link_of(&invited(service, &organization, "viewer").await))
    );
}

#[tokio::test]
async fn reset_link_sets_a_password_and_replaces_earlier_links() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "viewer").await;
    let path = organization.admin_path(&format!("/users/{}/link", person.id));
    let (first, second) = (
        service.admin().post(&path, &json!({})).await,
        service.admin().post(&path, &json!({})).await,
    );
    assert_eq!((first.status, second.status), (201, 201), "{}", second.text);
    assert!(
        person.browser.is_signed_in().await,
        "a link changes nothing before it is used"
    );
    let mut browser = Browser::at(&service.public_urls()[0]);
    let body = |link: &str| json!({"link": link, "password": "another correct horse"});
    browser
        .keep(LINK, &body(&link_of(&first.json())))
        .await
        .assert_problem(401, None);
    let short = json!({"link": link_of(&second.json()), "password": "short"});
    assert_eq!(browser.keep(LINK, &short).await.status, 400);
    let asked = browser
        .keep(LINK, &json!({"link": link_of(&second.json())}))
        .await;
    let asked = asked.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(
        (&asked["param"], &asked["details"]["email"]),
        (&json!("password"), &json!(person.login.email))
    );
    assert_eq!(
        browser
            .keep(LINK, &body(&link_of(&second.json())))
            .await
            .status,
        200
    );
    assert!(browser.is_signed_in().await && !person.browser.is_signed_in().await);
    assert_eq!(
        Browser::at(&service.public_urls()[0])
            .sign_in(&person.login, PASS)
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn expired_link_is_refused() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__INGRESS__INVITATION_LIFETIME_MS", "1")]).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let user = invited(&service, &organization, "owner").await;
    let body = json!({"link": link_of(&user), "password": PASS});
    Browser::at(&service.public_urls()[0])
        .keep(LINK, &body)
        .await
        .assert_problem(401, None);
}

#[tokio::test]
async fn right_link_is_accepted_after_wrong_ones() {
    let limit = (
        "SWITCHBOARD__INGRESS__FAILED_AUTHENTICATIONS_PER_MINUTE",
        "3",
    );
    let service = TestService::start_with(&[limit]).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let user = invited(&service, &organization, "owner").await;
    let mut browser = Browser::at(&service.public_urls()[0]);
    let wrong = json!({"link": format!("{}x", link_of(&user)), "password": PASS});
    for _ in 0..3 {
        browser.keep(LINK, &wrong).await.assert_problem(401, None);
    }
    let refused = browser.keep(LINK, &wrong).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    assert!(refused.header("retry-after").is_some());
    let right = json!({"link": link_of(&user), "password": PASS});
    browser.keep(LINK, &right).await.assert_status(200);
    browser
        .keep(LINK, &wrong)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
}

#[tokio::test]
async fn admin_link_command_works_while_the_service_runs() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let slug = organization.document["organizations"][0]["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    let link = |arguments: &[&str]| {
        let (status, output) = service.command(&[&["admin", "link"], arguments].concat());
        (status.success(), output)
    };
    let (made, output) = link(&["--organization", &slug]);
    assert!(!made && output.contains("--email"), "{output}");
    let email = format!("{slug}@people.example");
    for arguments in [
        &["--organization", slug.as_str(), "--email", email.as_str()][..],
        &["--organization", organization.id.as_str()],
    ] {
        let (made, output) = link(arguments);
        assert!(made, "{output}");
        let text = output.trim().split_once("/dashboard/link#").unwrap().1;
        let mut browser = Browser::at(service.public_urls().last().unwrap());
        let answer = browser.keep(LINK, &json!({"link": text})).await;
        answer.assert_status(200);
        let who = browser.get(SESSION).await.json();
        assert_eq!(
            (&who["user"]["email"], &who["user"]["role"]),
            (&json!(email), &json!("owner"))
        );
        Browser::at(&service.public_urls()[0])
            .keep(LINK, &json!({"link": text}))
            .await
            .assert_problem(401, None);
    }
    let (made, output) = link(&["--organization", "no-such-organization", "--email", &email]);
    assert!(!made && output.contains("no-such-organization"), "{output}");
}

/// The first start exists in the embedded profile only; the cluster shows nothing before it is
/// configured.
#[tokio::test]
async fn terminal_shows_a_working_link_at_every_start() {
    let variables = [("SWITCHBOARD__DEMO", "true"), ("TESTED_TERMINAL", "1")];
    let service = TestService::start_as(Profile::Embedded, &variables).await;
    let mut used = vec![];
    for start in 0..2 {
        let shown = eventually("a link is shown", PATIENCE, async || {
            let logs = service.logs();
            let links = logs.lines().filter_map(|line| {
                line.split_once("/dashboard/link#")
                    .map(|(_, text)| text.trim())
            });
            let links: Vec<String> = links.map(str::to_owned).collect();
            (links.len() > start).then(|| links.last().unwrap().clone())
        })
        .await;
        assert!(!used.contains(&shown));
        let browser = first_owner(&service, &shown).await;
        used.push(shown);
        service.with_process("all", |process| process.kill());
        service.restart("all").await;
        assert!(browser.is_signed_in().await, "a session outlives a restart");
    }
}

#[tokio::test]
async fn piped_start_prints_no_sign_in_link() {
    let service = TestService::start_as(Profile::Embedded, &[("SWITCHBOARD__DEMO", "true")]).await;
    let mut shown = String::new();
    for _ in 0..2 {
        eventually("the start is complete", PATIENCE, async || {
            let logs = service.logs();
            logs.contains("switchboard admin link").then_some(())
        })
        .await;
        assert!(!service.logs().contains("/dashboard/link#"));
        if shown.is_empty() {
            let (status, output) = service.command(&["admin", "link"]);
            assert!(status.success(), "{output}");
            let (_, link) = output.trim().split_once("/dashboard/link#").unwrap();
            shown = link.to_owned();
            service.with_process("all", |process| process.kill());
            service.restart("all").await;
        }
    }
    // A restart does not replace a link that somebody created.
    first_owner(&service, &shown).await;
}

/// Uses a link of the first account, which works once.
async fn first_owner(service: &TestService, link: &str) -> Browser {
    let mut browser = Browser::at(&service.public_urls()[0]);
    let answer = browser.keep(LINK, &json!({"link": link})).await;
    answer.assert_status(200);
    let who = browser.get(SESSION).await.json();
    assert_eq!(
        (&who["organization"]["slug"], &who["user"]["role"]),
        (&json!("demo"), &json!("owner"))
    );
    let mut other = browser.moved_to(&service.public_urls()[0]);
    let again = other.keep(LINK, &json!({"link": link})).await;
    assert_eq!(again.status, 401, "it works once");
    browser
}
