//! Sign-in to the dashboard: valid on every ingress, uniform refusals, and throttled guesses.

use serde_json::json;

use super::{Browser, PASS, Person, SESSION, invited};
use crate::support::OrganizationDocument;

#[tokio::test]
async fn session_is_valid_on_every_ingress() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "editor").await;
    let urls = service.public_urls();
    let mut browser = Browser::at(urls.last().unwrap());
    let answer = browser
        .sign_in(&format!(" {} ", person.email.to_uppercase()), PASS)
        .await;
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
            (&json!(person.email), &json!("editor"))
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
    for email in [
        person.email.as_str(),
        "unknown@people.example",
        waiting["email"].as_str().unwrap(),
        "no address",
    ] {
        let answer = Browser::at(&service.public_urls()[0])
            .sign_in(email, "quite a wrong one")
            .await;
        let problem = answer.assert_problem(401, None);
        assert_eq!(answer.header("set-cookie"), None);
        refusals.push((problem["title"].clone(), problem["detail"].clone()));
    }
    assert!(refusals.iter().all(|it| *it == refusals[0]), "{refusals:?}");
}

#[tokio::test]
async fn guesses_are_counted_across_ingresses_for_any_account() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::new(service, &organization, "owner").await;
    let urls = service.public_urls();
    let unknown = crate::support::unique("unknown") + "@people.example";
    for email in [&person.email, &unknown] {
        let mut statuses = vec![];
        for round in 0..24 {
            let mut browser = Browser::at(&urls[round % urls.len()]);
            statuses.push(browser.sign_in(email, "quite a wrong one").await.status);
        }
        let wrong = statuses.iter().take_while(|status| **status == 401).count();
        assert_eq!(wrong, 20, "{statuses:?}");
        assert!(
            statuses[wrong..].iter().all(|status| *status == 429),
            "{statuses:?}"
        );
    }
    let refused = Browser::at(&urls[0]).sign_in(&person.email, PASS).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    assert!(refused.header("retry-after").is_some());
    assert!(person.browser.is_signed_in().await, "who is in stays in");
}

#[tokio::test]
async fn sign_in_never_reuses_an_existing_session_token() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let person = Person::new(organization.service(), &organization, "owner").await;
    let before = person.browser.clone();
    let mut after = before.clone();
    assert_eq!(after.sign_in(&person.email, PASS).await.status, 200);
    assert_ne!(before.cookie, after.cookie);
    assert!(after.is_signed_in().await && !before.is_signed_in().await);
    let planted = Browser {
        cookie: format!("switchboard={}", "0".repeat(52)),
        ..before
    };
    let mut victim = planted.clone();
    assert_eq!(victim.sign_in(&person.email, PASS).await.status, 200);
    assert!(victim.is_signed_in().await && !planted.is_signed_in().await);
}
