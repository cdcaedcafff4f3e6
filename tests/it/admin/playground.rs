//! Playground runs: drafts of agents and teams answer through the real pipeline, and nothing is
//! stored.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Events, Organization, OrganizationDocument, PATIENCE, Script, eventually, shop_saying,
    shop_with,
};

async fn run_playground(organization: &Organization, agent: &str, body: Value) -> Events {
    let path = organization.admin_path(&format!("/agents/{agent}/try"));
    let response = organization
        .service()
        .admin()
        .request(Method::POST, &path)
        .json(&body)
        .send()
        .await
        .unwrap();
    Events::read(response).await
}

async fn run_team_playground(organization: &Organization, team: &str, body: Value) -> Answer {
    organization
        .service()
        .admin()
        .post(
            &organization.admin_path(&format!("/teams/{team}/try")),
            &body,
        )
        .await
}

/// Returns the text of each message in the last request to the organization's model.
fn last_prompt(organization: &Organization) -> Vec<String> {
    let request = organization.requests().pop().unwrap();
    request.messages.into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn draft_answers_as_edited_and_the_saved_agent_is_unchanged() {
    let organization = shop_saying("Ahoy there.").await;
    let draft = json!({"instructions": "Be a pirate.", "status": "draft", "public": false});
    let history =
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ahoy"}]);
    let body = json!({"message": "Who are you?", "draft": draft, "history": history});
    let events = run_playground(&organization, organization.shop(), body).await;
    assert_eq!(
        (events.status, events.names()),
        (200, vec!["start", "delta", "done"]),
        "{events:?}"
    );
    assert_eq!(events.text(), "Ahoy there.");
    assert_eq!(
        last_prompt(&organization),
        ["Be a pirate.", "Hi", "Ahoy", "Who are you?"]
    );
    let done = events.only("done");
    assert_eq!(done["status"], "completed");
    assert!(
        done["usage"]["completionTokens"].as_u64().unwrap() > 0 && done["responseTime"].is_u64(),
        "{done}"
    );

    let events = run_playground(
        &organization,
        organization.shop(),
        json!({"message": "And you?"}),
    )
    .await;
    assert_eq!(events.text(), "Ahoy there.");
    assert_eq!(
        last_prompt(&organization),
        ["Answer.", "And you?"],
        "without a draft the saved agent answers"
    );
}

#[tokio::test]
async fn draft_products_are_found_and_tool_calls_are_reported() {
    let organization = shop_with(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("One lamp."),
    ]))
    .await;
    let lamp = json!({"title": "Desk Lamp", "price": "$39", "image": "", "url": "https://shop.example/lamp"});
    let draft = json!({"ecommerce": {"enabled": true, "products": [lamp]}});
    let body = json!({"message": "A lamp?", "draft": draft});
    let events = run_playground(&organization, organization.shop(), body).await;
    assert_eq!(events.only("ui")["data"], json!([lamp]));
    let tools: Vec<_> = events
        .events
        .iter()
        .filter(|(name, ..)| name == "tool")
        .map(|(.., data)| data)
        .collect();
    let status = |status: &str| json!({"name": "search_products", "status": status});
    assert_eq!(tools, [&status("started"), &status("finished")]);
}

#[tokio::test]
async fn unsaved_agent_can_be_run_and_is_not_stored() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    organization.script(Script::says("New here."));
    let draft =
        json!({"slug": "idea", "name": "Idea", "provider": "main", "instructions": "Have ideas."});
    let body = json!({"message": "Hello", "draft": draft});
    let events = run_playground(&organization, "new", body).await;
    assert_eq!(
        (events.text().as_str(), &events.only("start")["agentName"]),
        ("New here.", &json!("Idea"))
    );
    let agents = organization
        .service()
        .admin()
        .get(&organization.admin_path("/agents"))
        .await
        .json();
    assert_eq!(agents["total"], 0);
}

#[tokio::test]
async fn playground_run_is_neither_listed_nor_counted() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let client = organization.client();
    let trial = run_playground(
        &organization,
        organization.shop(),
        json!({"message": "a trial"}),
    )
    .await;
    assert_eq!(trial.text(), "ok");
    organization.chat("s", "a visitor").await.complete();
    // This message came later, so a stored playground run would be visible by now.
    let listed = eventually(
        "the visitor's conversation is listed",
        PATIENCE,
        async || {
            let listed = service
                .admin()
                .get(&organization.admin_path("/conversations"))
                .await
                .json();
            (!listed["items"].as_array().unwrap().is_empty()).then_some(listed)
        },
    )
    .await;
    let items = listed["items"].as_array().unwrap();
    assert_eq!(
        (items.len(), &items[0]["sessionId"]),
        (1, &json!("s")),
        "{listed}"
    );
    let conversation = trial.only("start")["conversationId"].as_str().unwrap();
    let path = organization.admin_path(&format!("/conversations/{conversation}"));
    assert_eq!(service.admin().get(&path).await.status, 404);
    let message = trial.only("start")["messageId"].as_str().unwrap();
    assert_eq!(
        client
            .get(&format!("/api/public/messages/{message}"))
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn leaving_a_playground_run_stops_its_model_call() {
    // Longer than the test waits, so that the call does not end on its own.
    let organization = shop_with(Script::counts(4000, Duration::from_millis(50))).await;
    let path = organization.admin_path(&format!("/agents/{}/try", organization.shop()));
    let body = json!({"message": "count"});
    let mut response = organization
        .service()
        .admin()
        .request(Method::POST, &path)
        .json(&body)
        .send()
        .await
        .unwrap();
    let is_open = || {
        organization
            .requests()
            .iter()
            .any(|request| request.is_open())
    };
    while !is_open() {
        response.chunk().await.unwrap().expect("the answer goes on");
    }
    drop(response);
    eventually("the model call stops", PATIENCE, async || {
        (!is_open()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn invalid_draft_is_rejected_before_any_model_call() {
    let organization = shop_saying("never").await;
    for (agent, body, status, param) in [
        (
            organization.shop(),
            json!({"message": "m", "draft": {"temperature": 9}}),
            400,
            Some("temperature"),
        ),
        (
            organization.shop(),
            json!({"message": "m", "draft": {"provider": "gone"}}),
            400,
            Some("provider"),
        ),
        (
            organization.shop(),
            json!({"message": "m", "draft": {"slug": "other"}}),
            400,
            Some("slug"),
        ),
        (
            organization.shop(),
            json!({"message": ""}),
            400,
            Some("message"),
        ),
        ("new", json!({"message": "m"}), 400, Some("draft")),
        (
            "agt_00000000000000000000000000",
            json!({"message": "m"}),
            404,
            None,
        ),
    ] {
        let path = organization.admin_path(&format!("/agents/{agent}/try"));
        let answer = organization.service().admin().post(&path, &body).await;
        assert_eq!(
            (answer.status, answer.json()["param"].as_str()),
            (status, param),
            "{body} {}",
            answer.text
        );
    }
    assert!(organization.requests().is_empty());
}

#[tokio::test]
async fn team_run_scores_each_member_without_a_conversation() {
    let members = json!([
        {"agent": "orders", "specialization": "orders, delivery, refunds"},
        {"agent": "wine", "specialization": "red and white wine"},
        {"agent": "away", "specialization": "nothing"}
    ]);
    let organization = OrganizationDocument::new()
        .agent("orders", json!({"name": "Orders"}))
        .agent("wine", json!({"name": "Wine"}))
        .agent("away", json!({"status": "inactive"}))
        .team(
            "desk",
            json!({"members": members.clone(), "status": "draft", "public": false}),
        )
        .apply_to_shared()
        .await;
    let service = organization.service();
    organization.script(Script::says("{}"));
    let team = organization.team("desk");
    let body = json!({"message": "Where is the delivery of my order?"});
    let answer = run_team_playground(&organization, team, body).await;
    answer.assert_status(200);
    let verdict = answer.json();
    assert_eq!(
        (&verdict["agent"]["slug"], &verdict["agent"]["name"]),
        (&json!("orders"), &json!("Orders"))
    );
    assert!(
        !verdict["reason"].as_str().unwrap().is_empty() && verdict["stage"].is_string(),
        "{verdict}"
    );
    let scores: Vec<_> = verdict["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["permille"].as_u64())
        .collect();
    assert!(
        scores[0] > scores[1] && scores[1].is_some() && scores[2].is_none(),
        "{verdict}"
    );
    assert_eq!(verdict["members"][2]["canAnswer"], false);
    let first = &verdict["members"][0];
    assert_eq!(first["agent"], verdict["agent"], "{verdict}");
    assert_eq!(
        (&first["specialization"], &first["canAnswer"]),
        (&members[0]["specialization"], &json!(true))
    );

    let draft = json!({"routing": "round-robin"});
    let body = json!({"message": "Where is the delivery of my order?", "draft": draft});
    let drafted = run_team_playground(&organization, team, body).await.json();
    assert_eq!(
        (&drafted["stage"], &drafted["members"][0]["permille"]),
        (&json!("strategy"), &Value::Null),
        "{drafted}"
    );
    assert_eq!(
        service
            .admin()
            .get(&organization.admin_path("/conversations"))
            .await
            .json()["items"],
        json!([])
    );
    let keys = service
        .admin()
        .get(&organization.admin_path("/keys"))
        .await
        .json();
    assert_eq!(keys["total"], 1, "the document's own key alone");
}

#[tokio::test]
async fn team_run_continues_the_given_conversation() {
    let members = json!([
        {"agent": "orders", "specialization": "orders, delivery, refunds"},
        {"agent": "wine", "specialization": "red and white wine"}
    ]);
    let organization = OrganizationDocument::new()
        .agent("orders", json!({}))
        .agent("wine", json!({}))
        .team("desk", json!({"members": members}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("{}"));
    let history = json!([
        {"role": "user", "content": "A wine for fish?"},
        {"role": "assistant", "content": "White or red?", "agentId": organization.agent("wine")}
    ]);
    let body = json!({"message": "the first one", "history": history});
    let answer = run_team_playground(&organization, organization.team("desk"), body).await;
    assert_eq!(answer.json()["agent"]["slug"], "wine", "{}", answer.text);
}
