//! Reading conversations through the admin API: list filters, transcripts and routing decisions.

use serde_json::{Value, json};

use crate::support::{Client, Organization, OrganizationDocument, PATIENCE, Script, eventually};

async fn items(admin: &Client, organization: &Organization, query: &str) -> Vec<Value> {
    let answer = admin
        .get(&organization.admin_path(&format!("/conversations{query}")))
        .await;
    answer.assert_status(200);
    answer.json()["items"].as_array().unwrap().clone()
}

fn sessions(items: &[Value]) -> Vec<&str> {
    items
        .iter()
        .map(|item| item["sessionId"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn conversations_are_filtered_and_listed_latest_first() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("help", json!({}))
        .apply_to_shared()
        .await;
    let service = organization.service();
    organization.script(Script::says("canary answer"));
    let client = organization.client();
    for (agent, session) in [("shop", "one"), ("help", "two"), ("shop", "three")] {
        client
            .chat(organization.agent(agent), session, "hi")
            .await
            .complete();
    }
    let path = organization.path("/conversations/one");
    let changes = json!({"rating": 2, "visitorEmail": "a@shop.example"});
    assert_eq!(client.patch(&path, &changes).await.status, 200);
    let admin = service.admin();
    let all = items(&admin, &organization, "").await;
    assert_eq!(sessions(&all), ["three", "two", "one"]);
    let began = |number: usize| all[number]["createdAt"].as_str().unwrap();
    for (query, expected) in [
        (
            format!("?agent={}", organization.shop()),
            vec!["three", "one"],
        ),
        (format!("?since={}", began(1)), vec!["three", "two"]),
        (format!("?until={}", began(1)), vec!["one"]),
        ("?maxRating=2".to_owned(), vec!["one"]),
        ("?minRating=3".to_owned(), vec![]),
        ("?visitorEmail=a@shop.example".to_owned(), vec!["one"]),
    ] {
        assert_eq!(
            sessions(&items(&admin, &organization, &query).await),
            expected,
            "{query}"
        );
    }
    let mut walked = vec![];
    let mut query = "?limit=1".to_owned();
    while walked.len() < 3 {
        let page = admin
            .get(&organization.admin_path(&format!("/conversations{query}")))
            .await
            .json();
        walked.extend(page["items"].as_array().unwrap().clone());
        query = format!(
            "?limit=1&cursor={}",
            page["nextCursor"].as_str().unwrap_or_default()
        );
    }
    assert_eq!(walked, all);
    let other = OrganizationDocument::new().apply(service).await;
    assert_eq!(items(&admin, &other, "").await, [] as [Value; 0]);
    let id = all[0]["id"].as_str().unwrap();
    let foreign = admin
        .get(&other.admin_path(&format!("/conversations/{id}")))
        .await;
    foreign.assert_problem(404, Some("NOT_FOUND"));
    assert!(!foreign.text.contains("canary"));
}

#[tokio::test]
async fn transcript_names_the_answering_agent_and_the_reason() {
    let organization = OrganizationDocument::new()
        .agent("billing", json!({}))
        .agent("technical", json!({}))
        .team("front", json!({"routing": "round-robin", "members": [{"agent": "billing"}, {"agent": "technical"}]}))
        .apply_to_shared().await;
    organization.script(Script::says("answered"));
    organization.team_chat("s", "hi").await.complete();
    let admin = organization.service().admin();
    let listed = items(
        &admin,
        &organization,
        &format!("?team={}", organization.team("front")),
    )
    .await;
    assert_eq!(listed[0]["teamId"], organization.team("front"));
    let path = organization.admin_path(&format!(
        "/conversations/{}",
        listed[0]["id"].as_str().unwrap()
    ));
    let transcript = eventually("both messages are there", PATIENCE, async || {
        let transcript = admin.get(&path).await.json();
        (transcript["messages"]["total"] == 2).then_some(transcript)
    })
    .await;
    let messages = transcript["messages"]["items"].as_array().unwrap();
    assert_eq!(
        (&messages[0]["role"], &messages[0]["content"]),
        (&json!("user"), &json!("hi"))
    );
    assert_eq!(
        (&messages[1]["role"], &messages[1]["content"]),
        (&json!("assistant"), &json!("answered"))
    );
    let answered_by = messages[1]["agentId"].as_str().unwrap();
    assert!(
        [
            organization.agent("billing"),
            organization.agent("technical")
        ]
        .contains(&answered_by)
    );
    assert!(
        messages[1]["routingReason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{transcript}"
    );
    assert!(
        messages[1]["usage"]["completionTokens"].is_u64(),
        "{transcript}"
    );
    let page = admin.get(&format!("{path}?limit=1&offset=1")).await.json();
    assert_eq!(page["messages"]["items"], json!([messages[1]]));
}

#[tokio::test]
async fn transcript_shows_the_routing_decision_of_each_reply() {
    let organization = OrganizationDocument::new()
        .agent("billing", json!({}))
        .agent("technical", json!({}))
        .team(
            "front",
            json!({"routing": "intent", "members": [
                {"agent": "billing", "specialization": "Invoices, refunds and payments"},
                {"agent": "technical", "specialization": "Crashes, installation and error messages"}
            ]}),
        )
        .apply_to_shared()
        .await;
    let front = organization.team("front");
    organization
        .client()
        .team_chat(front, "s", "I want a refund for my last invoice")
        .await
        .complete();
    let admin = organization.service().admin();
    let listed = items(&admin, &organization, &format!("?team={front}")).await;
    let path = organization.admin_path(&format!(
        "/conversations/{}",
        listed[0]["id"].as_str().unwrap()
    ));
    let transcript = eventually("both messages are there", PATIENCE, async || {
        let transcript = admin.get(&path).await.json();
        (transcript["messages"]["total"] == 2).then_some(transcript)
    })
    .await;
    let routing = &transcript["messages"]["items"][1]["routing"];
    assert_eq!(routing["stage"], "words", "{transcript}");
    assert!(routing["tookMs"].is_u64(), "{transcript}");
    let score = |slug: &str| {
        let scores = routing["scores"].as_array().unwrap();
        let of_agent = scores
            .iter()
            .find(|score| score["agentId"] == organization.agent(slug))
            .unwrap();
        of_agent["permille"].as_u64().unwrap()
    };
    assert!(score("billing") > score("technical"), "{transcript}");
}
