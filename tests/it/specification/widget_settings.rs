//! Section "Widget settings".

use serde_json::{Value, json};

use crate::support::shop_with_settings;

async fn read_settings(settings: Value) -> Value {
    let organization = shop_with_settings(settings).await;
    let answer = organization
        .client()
        .get(&organization.path("/widget"))
        .await;
    answer.assert_status(200);
    answer.json()["widget"].clone()
}

#[tokio::test]
async fn settings_are_exactly_fifteen_typed_fields() {
    let settings = json!({
        "features": {"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true,
            "enableRating": false, "enableLeadCapture": true},
        "limits": {"maxMessageLength": 321, "rateLimitPerMinute": 12},
        "widget": {"position": "top-left", "size": "large", "showAvatar": false, "showTimestamp": true,
            "showPoweredBy": false, "autoOpen": true, "autoOpenDelay": 1234, "triggerText": "Talk",
            "offlineMessage": "Gone."}
    });
    let expected = json!({
        "position": "top-left", "size": "large", "showAvatar": false, "showTimestamp": true, "enableMarkdown": false,
        "enableFileUpload": true, "enableEmailCapture": true, "enableRating": false, "showPoweredBy": false,
        "maxMessageLength": 321, "rateLimitPerMinute": 12, "autoOpen": true, "autoOpenDelay": 1234,
        "triggerText": "Talk", "offlineMessage": "Gone."
    });
    assert_eq!(read_settings(settings).await, expected);
}

#[tokio::test]
async fn position_is_one_of_the_four_corners() {
    for position in ["bottom-right", "bottom-left", "top-right", "top-left"] {
        assert_eq!(
            read_settings(json!({"widget": {"position": position}})).await["position"],
            position
        );
    }
    assert_refused(json!({"position": "middle"})).await;
}

#[tokio::test]
async fn size_is_small_medium_or_large() {
    for size in ["small", "medium", "large"] {
        assert_eq!(
            read_settings(json!({"widget": {"size": size}})).await["size"],
            size
        );
    }
    assert_refused(json!({"size": "huge"})).await;
}

async fn assert_refused(widget: Value) {
    let organization = shop_with_settings(json!({})).await;
    let document = organization.changed_agent("shop", json!({"widget": widget}));
    let answer = organization.service().apply(&document).await;
    answer.assert_status(400);
}
