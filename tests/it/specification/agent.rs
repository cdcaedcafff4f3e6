//! Section "Agent (public view)".

use serde_json::{Value, json};

use crate::support::{Organization, shop_with_settings};

async fn configured() -> Organization {
    let settings = json!({
        "name": "Shop ☕", "description": "Sells.", "instructions": "a secret prompt", "welcomeMessage": "Welcome!",
        "placeholderText": "Ask…",
        "features": {"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
            "enableRating": false, "enableLeadCapture": true},
        "limits": {"maxMessageLength": 321, "rateLimitPerMinute": 12}
    });
    shop_with_settings(settings).await
}

async fn view(organization: &Organization) -> Value {
    let answer = organization.client().get(&organization.path("")).await;
    answer.assert_status(200);
    answer.json()
}

#[tokio::test]
async fn public_agent_view_has_exactly_eight_fields() {
    let organization = configured().await;
    let agent = view(&organization).await;
    let mut fields: Vec<_> = agent
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    let specified = [
        "description",
        "features",
        "id",
        "limits",
        "name",
        "placeholderText",
        "theme",
        "welcomeMessage",
    ];
    assert_eq!(fields, specified);
    assert!(!agent.to_string().contains("secret prompt"));
}

#[tokio::test]
async fn texts_of_the_agent_are_strings() {
    let organization = configured().await;
    let agent = view(&organization).await;
    assert_eq!(agent["id"], organization.shop());
    assert_eq!(agent["name"], "Shop ☕");
    assert_eq!(agent["description"], "Sells.");
    assert_eq!(agent["welcomeMessage"], "Welcome!");
    assert_eq!(agent["placeholderText"], "Ask…");
}

#[tokio::test]
async fn features_are_five_boolean_flags() {
    let organization = configured().await;
    let expected = json!({"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
        "enableRating": false, "enableLeadCapture": true});
    assert_eq!(view(&organization).await["features"], expected);
}

#[tokio::test]
async fn limits_are_max_message_length_and_rate_limit_per_minute() {
    let organization = configured().await;
    assert_eq!(
        view(&organization).await["limits"],
        json!({"maxMessageLength": 321, "rateLimitPerMinute": 12})
    );
}
