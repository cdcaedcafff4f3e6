//! Last use of a key in the dashboard.

use super::Person;
use crate::support::{PATIENCE, eventually, shop_saying};

#[tokio::test]
async fn key_shows_its_last_use_or_that_it_is_unused() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person
        .does("await shows('Last used'); await shows('Not yet');")
        .await;
    let agent = organization.path("");
    assert_eq!(organization.client().get(&agent).await.status, 200);
    eventually("the use is noted", PATIENCE, async || {
        let keys = service
            .admin()
            .get(&organization.admin_path("/keys"))
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
