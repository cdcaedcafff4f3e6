//! Replies of a real language model, which computes on the cores of this machine: beside other
//! tests, its first token would come too late.

use serde_json::json;

use super::super::message_events::{content, position, talk, valid_events};
use super::super::shared_cluster;
use crate::support::{OrganizationDocument, ScriptedModel, service_address};

#[tokio::test]
async fn real_model_reply_is_stored_as_streamed() {
    let base_url = service_address("SWITCHBOARD_TEST_MODEL");
    assert_ne!(base_url, ScriptedModel::get().base_url());
    let service = shared_cluster().await;
    let organization = OrganizationDocument::new()
        .provider(json!({"slug": "real", "baseUrl": base_url, "apiKey": "none", "model": "gemma"}))
        .shop(json!({"provider": "real", "instructions": "You are brief.", "maxOutputTokens": 60}))
        .apply(&service)
        .await;
    for (number, question) in ["Name three colours.", "Name one more."]
        .into_iter()
        .enumerate()
    {
        let reply = organization.chat("s", question).await;
        let text = reply.complete();
        assert!(!text.trim().is_empty());
        assert!(reply.chunks.len() > 1, "it is streamed");
        let history = organization.history("s").await;
        assert_eq!(history["messages"][2 * number + 1]["content"], text);
    }
}

#[tokio::test]
async fn five_real_model_turns_are_published_as_streamed() {
    let service = shared_cluster().await;
    let base_url = service_address("SWITCHBOARD_TEST_MODEL");
    let organization = OrganizationDocument::new()
        .provider(
            json!({"slug": "real", "baseUrl": base_url, "apiKey": "none", "model": "real", "continuesPrefix": true}),
        )
        .shop(json!({"provider": "real", "instructions": "You are brief.", "maxOutputTokens": 40}))
        .apply(&service)
        .await;
    let questions = [
        "Name three colours.",
        "Name one more.",
        "Which one is warm?",
        "Say it in German: «grün»?",
        "Thank you! ☕",
    ];
    let (said, last) = talk(&organization.client(), organization.shop(), &questions).await;
    let events = valid_events(&service, &last, 10).await;
    assert_eq!(events.iter().map(content).collect::<Vec<_>>(), said);
    let positions: Vec<_> = events.iter().map(position).collect();
    assert_eq!(positions, (0..10).map(Some).collect::<Vec<_>>());
    let history = organization.settled_history("s", 10).await;
    let stored: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(
        stored,
        said.iter().collect::<Vec<_>>(),
        "streamed, stored and announced are one text"
    );
}
