//! Section "API key".

use serde_json::{Value, json};

use crate::support::OrganizationDocument;

#[tokio::test]
async fn scopes_are_a_subset_of_chat_config_and_conversations() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let apply = async |scopes: Value| {
        let mut document = organization.document.clone();
        document["organizations"][0]["keys"] = json!([{"name": "k", "scopes": scopes}]);
        organization.service().apply(&document).await.status
    };
    for good in [
        json!([]),
        json!(["chat"]),
        json!(["config", "conversations"]),
        json!(["chat", "config", "conversations"]),
    ] {
        assert_eq!(apply(good.clone()).await, 200, "{good}");
    }
    for bad in [json!(["everything"]), json!(["Chat"]), json!("chat")] {
        assert_eq!(apply(bad.clone()).await, 400, "{bad}");
    }
}

#[tokio::test]
async fn value_is_svc_live_and_32_random_characters() {
    let organization = OrganizationDocument::new()
        .key("second", &[])
        .apply_to_shared()
        .await;
    let values = ["all", "second"].map(|name| organization.key_text(name).to_owned());
    for value in &values {
        let random = value.strip_prefix("svc_live_").unwrap();
        assert_eq!(random.len(), 32);
        assert!(
            random.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{random}"
        );
    }
    assert_ne!(values[0], values[1]);
}
