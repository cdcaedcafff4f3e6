//! Section "States and transitions".

use serde_json::json;

use crate::support::shop_saying;

#[tokio::test]
async fn first_chat_message_of_a_session_creates_the_conversation() {
    let organization = shop_saying("ok").await;
    let path = organization.path("/conversations/s");
    organization
        .client()
        .get(&path)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    organization
        .client()
        .patch(&path, &json!({"rating": 5}))
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
    organization.chat("s", "hi").await.complete();
    assert_eq!(organization.client().get(&path).await.status, 200);
}
