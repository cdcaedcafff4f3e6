//! Section "4. GET /api/public/agents/{agentId}/widget".

use serde_json::json;

use crate::support::shop_with_settings;

#[tokio::test]
async fn response_has_exactly_seven_fields() {
    let settings = json!({
        "name": "Shop", "description": "Sells.", "instructions": "a secret prompt", "welcomeMessage": "Welcome!",
        "placeholderText": "Ask…"
    });
    let organization = shop_with_settings(settings).await;
    let answer = organization
        .client()
        .get(&organization.path("/widget"))
        .await;
    answer.assert_status(200);
    let configuration = answer.json();
    let mut fields: Vec<_> = configuration
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "description",
            "id",
            "name",
            "placeholderText",
            "theme",
            "welcomeMessage",
            "widget"
        ]
    );
    assert_eq!(configuration["id"], organization.shop());
    assert_eq!(configuration["name"], "Shop");
    assert_eq!(configuration["description"], "Sells.");
    assert_eq!(configuration["welcomeMessage"], "Welcome!");
    assert_eq!(configuration["placeholderText"], "Ask…");
    assert!(!answer.text.contains("secret prompt"));
}
