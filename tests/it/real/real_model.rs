//! A real language model through the whole path: it says what no script thought of.

use serde_json::json;

use crate::support::{OrganizationDocument, ScriptedModel, SharedService, service_address};

#[tokio::test]
async fn a_real_model_streams_a_reply_that_is_stored_as_it_was_streamed() {
    let base_url = service_address("SWITCHBOARD_TEST_MODEL");
    assert_ne!(base_url, ScriptedModel::get().base_url());
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .provider(json!({"slug": "real", "baseUrl": base_url, "apiKey": "none", "model": "gemma"}))
        .agent("shop", json!({"provider": "real", "instructions": "You are brief.", "maxOutputTokens": 60}))
        .apply(&service)
        .await;
    let client = organization.client();
    for (number, question) in ["Name three colours.", "Name one more."].into_iter().enumerate() {
        let reply = client.chat(organization.shop(), "s", question).await;
        let text = reply.complete();
        assert!(!text.trim().is_empty());
        assert!(reply.chunks.len() > 1, "it is streamed");
        let history = client.history(organization.shop(), "s").await;
        assert_eq!(history["messages"][2 * number + 1]["content"], text);
    }
}
