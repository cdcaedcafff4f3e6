//! Section "2. POST /api/public/teams/{teamId}/chat".

use serde_json::json;

use crate::support::{
    Events, Organization, OrganizationDocument, PATIENCE, Reply, eventually, front_desk,
};

async fn ask(organization: &Organization, session: &str, message: &str) -> Reply {
    let reply = organization
        .team_reply(json!({"message": message, "sessionId": session}))
        .await;
    reply.complete();
    reply
}

#[tokio::test]
async fn response_is_streamed_text_as_in_agent_chat() {
    let organization = front_desk("intent").await;
    let of_team = ask(&organization, "s", "refund").await;
    let of_agent = organization
        .client()
        .chat(organization.agent("billing"), "s", "refund")
        .await;
    assert_eq!(of_team.complete(), of_agent.complete());
    for name in ["content-type", "transfer-encoding"] {
        assert_eq!(
            of_team.required_header(name),
            of_agent.required_header(name)
        );
    }
}

#[tokio::test]
async fn x_routing_reason_explains_the_choice_of_agent() {
    let organization = front_desk("intent").await;
    let matched = ask(&organization, "a", "I want a refund for my invoice")
        .await
        .required_header("x-routing-reason");
    let fallen_back = ask(&organization, "b", "xylophone zebra quartz").await;
    assert_eq!(
        fallen_back.required_header("x-agent-id"),
        organization.agent("general")
    );
    assert_eq!(matched, "asks about refunds, invoices (by words)");
    assert_eq!(
        fallen_back.required_header("x-routing-reason"),
        "no member matches (by words): the default agent answers"
    );
}

#[tokio::test]
async fn x_conversation_id_is_the_conversation_id() {
    let organization = front_desk("intent").await;
    let reply = ask(&organization, "s", "I want a refund for my last invoice").await;
    let history = organization
        .client()
        .history(organization.agent("billing"), "s")
        .await;
    assert_eq!(history["id"], reply.required_header("x-conversation-id"));
}

#[tokio::test]
async fn intent_is_matched_to_the_best_member() {
    let organization = front_desk("intent").await;
    for (session, message, member, name) in [
        (
            "a",
            "I want a refund for my last invoice",
            "billing",
            "Billing",
        ),
        (
            "b",
            "The installation crashes with an error message",
            "technical",
            "Technik f%C3%BCr alle",
        ),
    ] {
        let reply = ask(&organization, session, message).await;
        assert_eq!(
            reply.required_header("x-agent-id"),
            organization.agent(member)
        );
        assert_eq!(reply.required_header("x-agent-name"), name);
    }
}

#[tokio::test]
async fn later_messages_stay_with_the_member_until_the_topic_changes() {
    let organization = front_desk("intent").await;
    let other = async |message: &str| {
        ask(&organization, "t", message)
            .await
            .required_header("x-agent-id")
    };
    for message in ["The installation crashes with an error message", "thanks"] {
        assert_eq!(
            other(message).await,
            organization.agent("technical"),
            "{message}"
        );
    }
    let agent = async |message: &str| {
        ask(&organization, "s", message)
            .await
            .required_header("x-agent-id")
    };
    assert_eq!(
        agent("I want a refund for my last invoice").await,
        organization.agent("billing")
    );
    for message in ["thanks", "and how long does it take?"] {
        assert_eq!(
            agent(message).await,
            organization.agent("billing"),
            "{message}"
        );
    }
    let other_topic = "Something else: the installation crashes with an error message";
    assert_eq!(agent(other_topic).await, organization.agent("technical"));
}

#[tokio::test]
async fn unknown_non_public_or_inactive_team_is_404_without_a_code() {
    let member = json!([{"agent": "shop", "specialization": "all"}]);
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("hidden", json!({"public": false, "members": member}))
        .team("off", json!({"status": "inactive", "members": member}))
        .team("draft", json!({"status": "draft", "members": member}))
        .apply_to_shared()
        .await;
    let unknown = format!("team_{}", "0".repeat(26));
    for team in [
        organization.team("hidden"),
        organization.team("off"),
        organization.team("draft"),
        &unknown,
        "nope",
    ] {
        organization
            .client()
            .team_chat(team, "s", "hi")
            .await
            .into_answer()
            .assert_problem(404, None);
    }
}

#[tokio::test]
async fn internal_error_is_500_without_a_code() {
    let shop = json!({"routing": "round-robin", "members": [{"agent": "shop"}]});
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("front", shop)
        .apply_to_shared()
        .await;
    // The team loses its only agent afterwards.
    let inactive = organization.changed_agent("shop", json!({"status": "inactive"}));
    let applied = organization.service().apply(&inactive).await;
    applied.assert_status(200);
    let path = organization.team_path();
    let body = json!({"message": "hi", "sessionId": "first"});
    eventually("the change is known", PATIENCE, async || {
        let answer = organization.client().post(&path, &body).await;
        (answer.status == 500).then_some(())
    })
    .await;
    let reply = organization
        .team_reply(json!({"message": "hi", "sessionId": "s"}))
        .await;
    reply.into_answer().assert_problem(500, None);
    let request = organization
        .client()
        .request(reqwest::Method::POST, &path)
        .header("accept", "text/event-stream");
    let response = request
        .json(&json!({"message": "hi", "sessionId": "events"}))
        .send()
        .await
        .unwrap();
    let events = Events::read(response).await;
    let error = events.only("error");
    assert_eq!(
        (&error["status"], error.get("code")),
        (&json!(500), None),
        "{error}"
    );
}
