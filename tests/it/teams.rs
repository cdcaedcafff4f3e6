//! Team chat: routing a message to the member that answers it.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    FOREIGN_ORIGIN, Organization, OrganizationDocument, Reply, Script, front_desk, send,
};

#[tokio::test]
async fn round_robin_rotates_through_the_members() {
    let organization = front_desk("round-robin").await;
    let mut agents = vec![];
    for session in ["a", "b", "c", "d"] {
        let reply = organization.team_chat(session, "hi").await;
        reply.complete();
        agents.push(reply.required_header("x-agent-id"));
    }
    assert_eq!((&agents[0], &agents[1]), (&agents[2], &agents[3]));
    assert_ne!(agents[0], agents[1]);
}

#[tokio::test]
async fn random_picks_only_members() {
    let organization = front_desk("random").await;
    let members = [
        organization.agent("billing"),
        organization.agent("technical"),
    ];
    for session in ["a", "b", "c", "d", "e", "f"] {
        let reply = organization.team_chat(session, "hi").await;
        reply.complete();
        assert!(members.contains(&reply.required_header("x-agent-id").as_str()));
    }
}

#[tokio::test]
async fn conversation_is_readable_through_any_answering_member() {
    let organization = front_desk("intent").await;
    let client = organization.client();
    let question = "I want a refund for my last invoice";
    organization.team_chat("s", question).await.complete();
    let conversation = client.history(organization.agent("billing"), "s").await;
    assert_eq!(conversation["messages"][0]["content"], question);
    assert_eq!(
        conversation["messages"][1]["agentId"],
        organization.agent("billing")
    );
    assert_eq!(conversation["messages"][1]["agentName"], "Billing");
    let other = format!(
        "/api/public/agents/{}/conversations/s",
        organization.agent("technical")
    );
    client
        .get(&other)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn team_conversation_is_reached_by_id_beside_the_agents_own() {
    let organization = front_desk("intent").await;
    let client = organization.client();
    let billing = organization.agent("billing");
    let question = "I want a refund for my last invoice";
    let reply = organization.team_chat("s", question).await;
    let team_conversation = reply.required_header("x-conversation-id");
    client.chat(billing, "s", "for you alone").await.complete();
    let path = format!("/api/public/agents/{billing}/conversations/s");
    assert_eq!(
        client.get(&path).await.json()["messages"][0]["content"],
        "for you alone"
    );
    let named = format!("{path}?conversationId={team_conversation}");
    assert_eq!(
        client.get(&named).await.json()["messages"][0]["content"],
        question
    );
    assert_eq!(
        client.patch(&named, &json!({"rating": 4})).await.status,
        200
    );
    assert_eq!(client.get(&named).await.json()["metadata"]["rating"], 4);
    assert!(
        client.get(&path).await.json()["metadata"]
            .get("rating")
            .is_none()
    );
    let wrong = format!("{path}?conversationId=conv_{}", "0".repeat(26));
    client
        .get(&wrong)
        .await
        .assert_problem(404, Some("CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn message_length_limit_is_that_of_the_strictest_agent() {
    let short = json!({"limits": {"maxMessageLength": 10, "rateLimitPerMinute": 1000}});
    let organization = OrganizationDocument::new()
        .agent("billing", json!({}))
        .agent("general", short)
        .team("front", json!({"defaultAgent": "general", "members": [{"agent": "billing", "specialization": "all"}]}))
        .apply_to_shared().await;
    let reply = organization
        .team_reply(json!({"message": "0123456789", "sessionId": "s"}))
        .await;
    reply.complete();
    let refused = organization
        .team_reply(json!({"message": "0123456789a", "sessionId": "s"}))
        .await
        .into_answer();
    let problem = refused.assert_problem(400, None);
    assert_eq!(
        (&problem["param"], &problem["details"]),
        (&json!("message"), &json!({"max": 10, "actual": 11}))
    );
}

#[tokio::test]
async fn visitor_rate_limit_is_that_of_the_strictest_agent() {
    let strict = json!({"limits": {"maxMessageLength": 100, "rateLimitPerMinute": 2}});
    let organization = OrganizationDocument::new()
        .agent("billing", json!({}))
        .agent("general", strict)
        .team("front", json!({"defaultAgent": "general", "members": [{"agent": "billing", "specialization": "all"}]}))
        .apply_to_shared().await;
    let message =
        |visitor: &str| json!({"message": "hi", "sessionId": visitor, "visitorId": visitor});
    for _ in 0..2 {
        organization.team_reply(message("ada")).await.complete();
    }
    organization
        .team_reply(message("ada"))
        .await
        .into_answer()
        .assert_problem(429, Some("RATE_LIMITED"));
    organization.team_reply(message("bob")).await.complete();
}

#[tokio::test]
async fn retried_message_is_stored_and_rotated_once() {
    let organization = front_desk("round-robin").await;
    let path = organization.team_path();
    let mut agents = vec![];
    for session in ["a", "b", "c"] {
        let mut replies = vec![];
        for _ in 0..2 {
            let body = json!({"message": "hi", "sessionId": session});
            let request = organization
                .client()
                .request(Method::POST, &path)
                .header("idempotency-key", session);
            let reply = Reply::read(request.json(&body).send().await.unwrap()).await;
            reply.complete();
            replies.push((
                reply.required_header("x-message-id"),
                reply.required_header("x-agent-id"),
            ));
        }
        assert_eq!(replies[0], replies[1]);
        agents.push(replies.remove(0).1);
    }
    assert_eq!(agents[0], agents[2]);
    assert_ne!(agents[0], agents[1]);
}

#[tokio::test]
async fn conversation_id_must_belong_to_the_team_and_session() {
    let organization = front_desk("random").await;
    let first = organization
        .team_reply(json!({"message": "hi", "sessionId": "a"}))
        .await;
    first.complete();
    let conversation = first.required_header("x-conversation-id");
    let body = json!({"message": "hi", "sessionId": "a", "conversationId": conversation});
    let second = organization.team_reply(body).await;
    second.complete();
    assert_eq!(second.required_header("x-conversation-id"), conversation);
    let foreign = organization
        .client()
        .chat(organization.agent("billing"), "a", "hi")
        .await;
    for (session, id) in [
        ("b", conversation.as_str()),
        ("a", &foreign.required_header("x-conversation-id")),
        ("a", "conv_x"),
    ] {
        let body = json!({"message": "hi", "sessionId": session, "conversationId": id});
        organization
            .team_reply(body)
            .await
            .into_answer()
            .assert_problem(400, None);
    }
}

#[tokio::test]
async fn reply_has_its_message_id_and_percent_encoded_names() {
    let organization = front_desk("intent").await;
    let question = "The installation crashes with an error message";
    let reply = organization.team_chat("s", question).await;
    reply.complete();
    assert!(reply.required_header("x-message-id").starts_with("msg_"));
    assert_eq!(
        reply.required_header("x-agent-id"),
        organization.agent("technical")
    );
    assert_eq!(
        reply.required_header("x-agent-name"),
        "Technik f%C3%BCr alle"
    );
}

#[tokio::test]
async fn blank_team_id_is_404_and_only_invalid_json_has_a_400_code() {
    let organization = front_desk("random").await;
    let client = organization.client();
    let hi = json!({"message": "hi", "sessionId": "s"});
    for team in ["", "%20"] {
        client
            .post(&format!("/api/public/teams/{team}/chat"), &hi)
            .await
            .assert_problem(404, None);
    }
    let path = organization.team_path();
    for body in [
        json!([]),
        json!({"sessionId": "s"}),
        json!({"message": "hi"}),
        json!({"message": 5, "sessionId": "s"}),
        json!({"message": "hi", "sessionId": "a\nb"}),
    ] {
        client.post(&path, &body).await.assert_problem(400, None);
    }
    let malformed = client
        .request(Method::POST, &path)
        .header("idempotency-key", "")
        .json(&hi);
    send(malformed).await.assert_problem(400, None);
    let broken = client
        .request(Method::POST, &path)
        .header("content-type", "application/json")
        .body("{");
    send(broken).await.assert_problem(400, Some("INVALID_JSON"));
}

#[tokio::test]
async fn origins_are_not_checked_for_teams() {
    let organization = OrganizationDocument::new()
        .shop(json!({"allowedDomains": ["https://shop.example"]}))
        .team(
            "front",
            json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]}),
        )
        .apply_to_shared()
        .await;
    let path = organization.team_path();
    let request = organization
        .client()
        .request(Method::POST, &path)
        .header("origin", FOREIGN_ORIGIN);
    let answer = send(request.json(&json!({"message": "hi", "sessionId": "s"}))).await;
    answer.assert_status(200);
}

#[tokio::test]
async fn team_of_another_organization_is_404_like_an_unknown_one() {
    let ours = front_desk("random").await;
    let theirs = front_desk("random").await;
    let foreign = ours
        .client()
        .team_chat(theirs.team("front"), "s", "hi")
        .await
        .into_answer();
    let unknown = ours
        .client()
        .team_chat(&format!("team_{}", "0".repeat(26)), "s", "hi")
        .await
        .into_answer();
    let (foreign, unknown) = (
        foreign.assert_problem(404, None),
        unknown.assert_problem(404, None),
    );
    assert_eq!(
        (&foreign["title"], &foreign["detail"]),
        (&unknown["title"], &unknown["detail"])
    );
}

#[tokio::test]
async fn failing_model_has_its_error_code_on_the_team_route() {
    let organization = front_desk("random").await;
    for (status, answered, code) in [(400, 502, "MODEL_ERROR"), (503, 503, "UNAVAILABLE")] {
        organization.script(Script::refuses(status));
        let reply = organization.team_chat(&format!("s{status}"), "hi").await;
        reply.into_answer().assert_problem(answered, Some(code));
    }
}

/// Returns the agent that answers a message, and the reason.
async fn routed(organization: &Organization, session: &str, message: &str) -> (String, String) {
    let reply = organization.team_chat(session, message).await;
    reply.complete();
    (
        reply.required_header("x-agent-id"),
        reply.required_header("x-routing-reason"),
    )
}

#[tokio::test]
async fn shared_words_decide_without_a_model() {
    let organization = front_desk("intent").await;
    organization.script(Script::says("Sure."));
    for (session, message, member) in [
        ("a", "You sent me two invoices for one payment", "billing"),
        ("b", "the instalation crashed, what now?", "technical"),
    ] {
        let (agent, reason) = routed(&organization, session, message).await;
        assert_eq!(agent, organization.agent(member), "{message}");
        assert!(reason.ends_with("(by words)"), "{reason}");
    }
    let requests = organization.requests();
    assert_eq!(requests.len(), 2, "only the replies: no model was asked");
}

#[tokio::test]
async fn model_decides_messages_in_other_words_and_languages() {
    let organization = front_desk("intent").await;
    organization.script(Script::says(r#"{"member": "1-billing"}"#));
    for (session, message) in [
        ("en", "you took it twice"),
        ("de", "Ich will mein Geld zurück"),
    ] {
        let (agent, reason) = routed(&organization, session, message).await;
        assert_eq!(agent, organization.agent("billing"), "{message}");
        assert!(reason.ends_with("(by a model)"), "{reason}");
    }
}

/// A message that matches no word of any member.
const PUZZLING: &str = "the thing from last week does it again, what now?";

#[tokio::test]
async fn model_decides_uncertain_cases_and_the_reason_says_so() {
    let organization = front_desk("intent").await;
    organization.script(Script::says(r#"{"member": "2-technical"}"#));
    let reply = organization.team_chat("s", PUZZLING).await;
    reply.complete();
    assert_eq!(
        reply.required_header("x-agent-id"),
        organization.agent("technical")
    );
    let reason = reply.required_header("x-routing-reason");
    assert!(
        reason.contains("model") && reason.contains("Technik"),
        "{reason}"
    );
    let requests = organization.requests();
    assert!(
        requests[0].body["response_format"]["json_schema"]["schema"].is_object(),
        "{}",
        requests[0].body
    );
}

#[tokio::test]
async fn local_stage_decides_when_the_model_names_no_member() {
    let organization = front_desk("intent").await;
    for (session, said) in [
        ("a", "Technical, I would say."),
        ("b", r#"{"member": "9-sales"}"#),
    ] {
        organization.script(Script::says(&format!("{said} ")));
        let reply = organization.team_chat(session, PUZZLING).await;
        assert_eq!(reply.complete(), format!("{said} "));
        assert_eq!(
            reply.required_header("x-agent-id"),
            organization.agent("general"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn new_agent_gets_the_whole_conversation_after_a_topic_change() {
    let organization = front_desk("intent").await;
    let ask = async |message: &str| routed(&organization, "s", message).await;
    organization.script(Script::says("Your refund is on its way."));
    let question = "I want a refund for my last invoice";
    assert_eq!(ask(question).await.0, organization.agent("billing"));
    let (agent, reason) =
        ask("Something else: the installation crashes with an error message").await;
    assert_eq!(agent, organization.agent("technical"));
    assert!(reason.starts_with("topic change"), "{reason}");
    let request = organization.requests().pop().unwrap();
    let said = request.texts();
    let past = said
        .windows(2)
        .any(|pair| pair == [question, "Your refund is on its way."]);
    assert!(past, "{said:?}");
}
