//! Limits of signed-in persons.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};

use super::Person;
use crate::support::{Answer, OrganizationDocument, TestService};

fn retry_after(answer: &Answer) -> u64 {
    let text = answer.header("retry-after").expect("Retry-After");
    text.parse().expect("whole seconds")
}

#[tokio::test]
async fn person_has_one_exact_limit_on_all_ingresses() {
    const LIMIT: usize = 150;
    let setting = "SWITCHBOARD__INGRESS__ADMIN_REQUESTS_PER_MINUTE";
    let service = &TestService::start_with(&[(setting, "150")]).await;
    let organization = OrganizationDocument::new().apply(service).await;
    let person = Person::new(service, &organization, "viewer").await;
    let path = organization.admin_path("");
    let urls = service.admin_urls();
    let began = Instant::now();
    let requests = (0..LIMIT + 30).map(|number| {
        let browser = person.browser.moved_to(&urls[number % urls.len()]);
        let path = &path;
        async move { browser.get(path).await }
    });
    let answers: Vec<Answer> = stream::iter(requests).buffer_unordered(32).collect().await;
    let duration = began.elapsed();
    assert!(duration < Duration::from_secs(50), "too slow: {duration:?}");
    let admitted = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(admitted, LIMIT);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.assert_problem(429, Some("RATE_LIMITED"));
        assert!((1..=60).contains(&retry_after(refused)));
    }
    let other = Person::new(service, &organization, "viewer").await;
    assert_eq!(other.browser.get(&path).await.status, 200);
    assert_eq!(service.admin().get(&path).await.status, 200, "the token");
}

#[tokio::test]
async fn refused_person_is_admitted_after_retry_after() {
    let settings = [("SWITCHBOARD__INGRESS__ADMIN_REQUESTS_PER_MINUTE", "5")];
    let service = TestService::start_with(&settings).await;
    let organization = OrganizationDocument::new().apply(&service).await;
    let person = Person::new(&service, &organization, "viewer").await;
    let path = organization.admin_path("");
    for _ in 0..5 {
        assert_eq!(person.browser.get(&path).await.status, 200);
    }
    let refused = person.browser.get(&path).await;
    refused.assert_problem(429, Some("RATE_LIMITED"));
    tokio::time::sleep(Duration::from_secs(retry_after(&refused))).await;
    assert_eq!(person.browser.get(&path).await.status, 200);
}
