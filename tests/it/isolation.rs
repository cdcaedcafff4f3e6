//! Isolation of organizations: every route is called with ids of another organization, and no
//! response contains its data.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Organization, OrganizationDocument, Reply, Script, send, shop_saying,
};

const CANARY: &str = "canary";

type ExpectedRefusal = (u16, Option<&'static str>);

/// Creates an organization whose texts all contain the canary.
async fn canary_organization() -> (Organization, Value) {
    let organization = OrganizationDocument::new()
        .shop(json!({
                "name": "canary-name", "description": "canary-description", "instructions": "canary-instructions",
                "welcomeMessage": "canary-welcome", "placeholderText": "canary-placeholder",
                "allowedDomains": ["https://canary.example"],
                "widget": {"offlineMessage": "canary-offline", "triggerText": "canary-trigger"}
            }),
        )
        .agent(
            "off",
            json!({"name": "canary-off", "status": "inactive", "widget": {"offlineMessage": "canary-offline"}}),
        )
        .team(
            "front",
            json!({
                "name": "canary-team", "routing": "random",
                "members": [{"agent": "shop", "specialization": "canary-specialization"}]
            }),
        )
        .apply_to_shared().await;
    organization.script(Script::says("canary-reply"));
    let body = json!({
        "message": "canary-message", "sessionId": "s", "visitorId": "canary-visitor",
        "visitorEmail": "canary@example.org", "visitorName": "canary-visitor-name", "metadata": {"canary": "canary"}
    });
    let reply = Reply::read(organization.open_chat(&body).await).await;
    reply.complete();
    let team = organization.team_chat("s", "canary-message").await;
    team.complete();
    let known = json!({
        "conversation": reply.required_header("x-conversation-id"), "message": reply.required_header("x-message-id"),
        "teamConversation": team.required_header("x-conversation-id")
    });
    (organization, known)
}

/// Returns every request with an id of the other organization, and its expected response.
fn requests(
    ours: &Organization,
    theirs: &Organization,
    known: &Value,
) -> Vec<(RequestBuilder, u16, Option<&'static str>)> {
    let client = ours.client();
    let text = |name: &str| known[name].as_str().unwrap().to_owned();
    let (mismatch, unknown) = (
        (403, Some("ORG_MISMATCH")),
        (404, Some("CONVERSATION_NOT_FOUND")),
    );
    let no_message = (404, Some("MESSAGE_NOT_FOUND"));
    let mut requests = vec![];
    for agent in ["shop", "off"] {
        let agent = format!("/api/public/agents/{}", theirs.agent(agent));
        requests.extend([
            (Method::POST, format!("{agent}/chat"), mismatch),
            (Method::GET, agent.clone(), mismatch),
            (Method::GET, format!("{agent}/widget"), mismatch),
            (Method::GET, format!("{agent}/conversations/s"), mismatch),
            (Method::PATCH, format!("{agent}/conversations/s"), mismatch),
        ]);
    }
    let own = format!("/api/public/agents/{}/conversations/s", ours.shop());
    let message = format!("/api/public/messages/{}", text("message"));
    requests.extend([
        (
            Method::GET,
            format!("{own}?conversationId={}", text("conversation")),
            unknown,
        ),
        (
            Method::PATCH,
            format!("{own}?conversationId={}", text("teamConversation")),
            unknown,
        ),
        (
            Method::POST,
            format!("/api/public/teams/{}/chat", theirs.team("front")),
            (404, None),
        ),
        (Method::GET, message.clone(), no_message),
        (Method::GET, format!("{message}/stream"), no_message),
        (Method::POST, format!("{message}/cancel"), no_message),
    ]);
    let body = json!({"message": "hi", "sessionId": "s", "rating": 1});
    let built = requests.into_iter().map(
        |(method, path, (status, code)): (Method, String, ExpectedRefusal)| {
            (client.request(method, &path).json(&body), status, code)
        },
    );
    built.collect()
}

#[tokio::test]
async fn no_route_reveals_data_of_another_organization() {
    let (theirs, known) = canary_organization().await;
    let ours = Organization::with_agent(theirs.service(), Script::says("ok")).await;
    ours.client().chat(ours.shop(), "s", "hi").await.complete();
    for (request, status, code) in requests(&ours, &theirs, &known) {
        let answer = send(request).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        answer.assert_problem(status, code);
        assert_silent(&answer, &theirs);
    }
    let named =
        json!({"message": "hi", "sessionId": "s", "conversationId": known["teamConversation"]});
    let answer = ours
        .client()
        .post(
            &format!("/api/public/teams/{}/chat", theirs.team("front")),
            &named,
        )
        .await;
    assert_silent(&answer, &theirs);
}

fn assert_silent(answer: &Answer, theirs: &Organization) {
    let response = format!("{:?} {}", answer.headers, answer.text);
    for word in [CANARY, theirs.id.as_str(), theirs.key_text("all")] {
        assert!(!response.contains(word), "{word} in {response}");
    }
}

#[tokio::test]
async fn writes_of_another_organization_change_nothing() {
    let (theirs, known) = canary_organization().await;
    let ours = Organization::with_agent(theirs.service(), Script::says("ok")).await;
    let before = theirs.client().history(theirs.shop(), "s").await;
    for (request, ..) in requests(&ours, &theirs, &known) {
        send(request).await;
    }
    assert_eq!(theirs.client().history(theirs.shop(), "s").await, before);
    assert!(
        crate::support::ScriptedModel::get()
            .requests(&ours.model)
            .is_empty(),
        "and no model was asked"
    );
}

#[tokio::test]
async fn equal_session_ids_of_two_organizations_are_separate() {
    let (one, two) = tokio::join!(shop_saying("canary-one"), shop_saying("two"));
    let chat = async |client: Client, agent: String| {
        let reply = client.chat(&agent, "the same", "hi").await;
        reply.complete();
        reply.required_header("x-conversation-id")
    };
    let first = chat(one.client(), one.shop().to_owned()).await;
    assert_ne!(first, chat(two.client(), two.shop().to_owned()).await);
    let history = two.client().history(two.shop(), "the same").await;
    assert!(!history.to_string().contains(CANARY), "{history}");
}
