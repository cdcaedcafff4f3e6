//! Section "5. GET /api/public/agents/{agentId}/conversations/{sessionId}".

use crate::support::shop_saying;

#[tokio::test]
async fn limit_defaults_to_50_of_at_most_100_and_offset_to_0() {
    let organization = shop_saying("answer").await;
    let client = organization.client();
    for turn in 0..51 {
        organization
            .chat("s", &format!("question {turn}"))
            .await
            .complete();
    }
    let path = organization.path("/conversations/s");
    for (query, returned, first) in [
        ("", 50, 0),
        ("?limit=100", 100, 0),
        ("?offset=2", 50, 1),
        ("?limit=102", 100, 0),
    ] {
        let page = client.get(&format!("{path}{query}")).await.json();
        assert_eq!(
            page["messages"].as_array().unwrap().len(),
            returned,
            "{query}"
        );
        assert_eq!(
            page["messages"][0]["content"],
            format!("question {first}"),
            "{query}"
        );
    }
}
