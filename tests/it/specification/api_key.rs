//! Section "API key".

use serde_json::{Value, json};

use crate::support::{OrganizationDocument, shop_saying, shop_with_settings};

#[tokio::test]
async fn name_is_a_label_given_at_creation() {
    let organization = OrganizationDocument::new()
        .key("a label, of any kind", &[])
        .apply_to_shared()
        .await;
    let keys = organization.answer["organizations"][0]["keys"]
        .as_array()
        .unwrap();
    assert!(
        keys.iter().any(|key| key["name"] == "a label, of any kind"),
        "{keys:?}"
    );
}

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
async fn key_is_bound_to_the_owning_organization() {
    let (ours, theirs) = tokio::join!(shop_saying("ours"), shop_saying("theirs"));
    assert_eq!(
        ours.client()
            .get(&format!("/api/public/agents/{}", ours.shop()))
            .await
            .status,
        200
    );
    let foreign = ours
        .client()
        .get(&format!("/api/public/agents/{}", theirs.shop()))
        .await;
    foreign.assert_problem(403, Some("ORG_MISMATCH"));
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

#[tokio::test]
async fn value_is_displayed_once_at_creation() {
    let organization = shop_with_settings(json!({})).await;
    assert!(organization.key_text("all").starts_with("svc_live_"));
    let again = organization
        .service()
        .admin()
        .post("/api/admin/apply", &organization.document)
        .await;
    again.assert_status(200);
    assert!(
        !again.text.contains("svc_live_"),
        "a value is returned again"
    );
    assert_eq!(
        organization
            .client()
            .get(&organization.path(""))
            .await
            .status,
        200
    );
}
