//! Section "Agent (public view)".

use serde_json::{Value, json};

use crate::support::{Organization, OrganizationDocument, SharedService};

async fn configured(service: &SharedService) -> Organization {
    let settings = json!({
        "name": "Shop ☕", "description": "Sells.", "instructions": "a secret prompt", "welcomeMessage": "Welcome!",
        "placeholderText": "Ask…",
        "features": {"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
            "enableRating": false, "enableLeadCapture": true},
        "limits": {"maxMessageLength": 321, "rateLimitPerMinute": 12}
    });
    OrganizationDocument::new()
        .agent("shop", settings)
        .apply(service)
        .await
}

async fn view(organization: &Organization) -> Value {
    let answer = organization
        .client()
        .get(&format!("/api/public/agents/{}", organization.shop()))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[tokio::test]
async fn public_agent_view_has_exactly_eight_fields() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
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
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    let agent = view(&organization).await;
    assert_eq!(agent["id"], organization.shop());
    assert_eq!(agent["name"], "Shop ☕");
    assert_eq!(agent["description"], "Sells.");
    assert_eq!(agent["welcomeMessage"], "Welcome!");
    assert_eq!(agent["placeholderText"], "Ask…");
}

#[tokio::test]
async fn features_are_five_boolean_flags() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    let expected = json!({"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
        "enableRating": false, "enableLeadCapture": true});
    assert_eq!(view(&organization).await["features"], expected);
}

#[tokio::test]
async fn limits_are_max_message_length_and_rate_limit_per_minute() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    assert_eq!(
        view(&organization).await["limits"],
        json!({"maxMessageLength": 321, "rateLimitPerMinute": 12})
    );
}
