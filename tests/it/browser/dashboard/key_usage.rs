//! Last use of a key in the dashboard.

use super::Person;
use crate::support::{Organization, PATIENCE, Script, SharedService, eventually};

#[tokio::test]
async fn key_shows_its_last_use_or_that_it_is_unused() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let person = Person::owner_at(&service, &organization, "/settings/keys").await;
    person
        .does("await shows('Last used'); await shows('Not yet');")
        .await;
    let agent = format!("/api/public/agents/{}", organization.shop());
    assert_eq!(organization.client().get(&agent).await.status, 200);
    eventually("the use is noted", PATIENCE, async || {
        let keys = service
            .admin()
            .get(&format!(
                "/api/admin/organizations/{}/keys",
                organization.id
            ))
            .await
            .json();
        keys["items"][0]["lastUsedAt"].is_string().then_some(())
    })
    .await;
    person.goes_to("/settings/keys").await;
    person
        .does("await shows('Last used'); await until('the time', () => !document.body.innerText.includes('Not yet'));")
        .await;
}
