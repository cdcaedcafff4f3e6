//! Providers in the dashboard: the test of a connection in words, and its accessibility.

use super::Person;
use crate::support::{Script, shop_with};

#[tokio::test]
async fn connection_test_says_what_the_provider_said() {
    let organization = shop_with(Script::refuses(401)).await;
    let person = Person::owner_at(&organization, "/settings/providers").await;
    person
        .does("await press('Edit main'); await press('Test connection'); await shows('Agents cannot answer with this provider.'); await shows('refused by script');")
        .await;
    assert!(
        person
            .browser
            .findings("provider-test-failed")
            .await
            .is_empty()
    );
    organization.script(Script::says("OK"));
    person
        .does(
            "await press('Test connection'); await shows('Agents can answer with this provider.');",
        )
        .await;
}
