//! Section "Agent (public view)".

use serde_json::json;

use crate::support::shop_with_settings;

#[tokio::test]
async fn public_agent_view_has_exactly_eight_fields() {
    let features = json!({"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
        "enableRating": false, "enableLeadCapture": true});
    let mut settings = json!({
        "name": "Shop ☕", "description": "Sells.", "welcomeMessage": "Welcome!", "placeholderText": "Ask…",
        "features": features, "limits": {"maxMessageLength": 321, "rateLimitPerMinute": 12}
    });
    let mut expected = settings.clone();
    settings["instructions"] = json!("a secret prompt");
    let organization = shop_with_settings(settings).await;
    let answer = organization.client().get(&organization.path("")).await;
    answer.assert_status(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let agent = answer.json();
    expected["id"] = json!(organization.shop());
    expected["theme"] = agent["theme"].clone();
    assert_eq!(agent, expected);
}
