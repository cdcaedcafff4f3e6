//! Section "Conversation metadata".

use serde_json::{Value, json};

use crate::support::{Reply, shop_saying};

async fn metadata_after(body: Value) -> Value {
    let organization = shop_saying("ok").await;
    Reply::read(organization.open_chat(&body).await)
        .await
        .complete();
    organization.history("s").await["metadata"].clone()
}

#[tokio::test]
async fn standard_keys_are_strings() {
    let metadata = metadata_after(json!({
        "message": "hi", "sessionId": "s", "visitorId": "v-1", "visitorEmail": "ada@example.org", "visitorName": "Ada"
    }))
    .await;
    assert_eq!(metadata["visitorId"], "v-1");
    assert_eq!(metadata["visitorEmail"], "ada@example.org");
    assert_eq!(metadata["visitorName"], "Ada");
    assert!(
        metadata["source"].is_string() && metadata["ipAddress"].is_string(),
        "{metadata}"
    );
}

#[tokio::test]
async fn further_keys_of_clients_are_arbitrary_json() {
    let attached =
        json!({"page": "/cart", "items": [1, 2.5, null], "deep": {"a": {"b": true}}, "日本": "☕"});
    let metadata =
        metadata_after(json!({"message": "hi", "sessionId": "s", "metadata": attached})).await;
    for (key, value) in attached.as_object().unwrap() {
        assert_eq!(&metadata[key], value, "{key} in {metadata}");
    }
}
