//! Message events for analytics on Kafka: the streamed text, valid against the schema.

use std::path::Path;

use serde_json::json;
use switchboard_schemas::message_event::{EventBody, MessageEvent};

use super::{kafka::Witness, shared_cluster};
use crate::support::{Client, Organization, OrganizationDocument, Reply, Script, TestService};

/// Sends `questions` in one session and returns the texts of both sides and the last reply.
pub(super) async fn talk(client: &Client, agent: &str, questions: &[&str]) -> (Vec<String>, Reply) {
    let (mut said, mut last) = (vec![], None);
    for question in questions {
        let reply = client.chat(agent, "s", question).await;
        said.extend([(*question).to_owned(), reply.complete()]);
        last = Some(reply);
    }
    (said, last.unwrap())
}

/// Returns the facts of the reply's conversation, each validated against the committed schema.
pub(super) async fn valid_events(
    service: &TestService,
    reply: &Reply,
    count: usize,
) -> Vec<MessageEvent> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/json/chat.messages.v1.schema.json");
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let conversation = reply.required_header("x-conversation-id");
    let events = Witness::at_shared()
        .events_of(service, &conversation, count)
        .await;
    for (record, _) in &events {
        let errors: Vec<_> = validator
            .iter_errors(record)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?} in {record:#}");
    }
    events.into_iter().map(|(_, event)| event).collect()
}

#[tokio::test]
async fn messages_are_published_in_order_as_streamed() {
    let service = shared_cluster().await;
    let organization =
        Organization::with_agent(&service, Script::says("answer ☕ «ok»").chunk_chars(1)).await;
    let questions = ["question 1", "question 2", "question 3"];
    let (said, last) = talk(&organization.client(), organization.shop(), &questions).await;
    let events = valid_events(&service, &last, 6).await;
    assert_eq!(events.iter().map(content).collect::<Vec<_>>(), said);
    for event in &events {
        assert_eq!(event.org_id.as_str(), organization.id);
        assert_eq!(event.agent_id.as_str(), organization.shop());
    }
}

#[tokio::test]
async fn rating_is_published_after_its_messages() {
    let service = shared_cluster().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    let client = organization.client();
    let (_, reply) = talk(&client, organization.shop(), &["hi"]).await;
    let path = organization.path("/conversations/s");
    assert_eq!(
        client
            .patch(&path, &json!({"rating": 5, "metadata": {"plan": "pro"}}))
            .await
            .status,
        200
    );
    let events = valid_events(&service, &reply, 3).await;
    let EventBody::ConversationUpdated(update) = &events[2].body else {
        panic!("{:?}", events[2])
    };
    assert_eq!(update.changes["rating"], 5);
}

#[tokio::test]
async fn lead_is_published_after_the_change_that_brought_it() {
    let service = shared_cluster().await;
    let field = json!({"name": "mail", "label": "E-mail", "type": "email"});
    let form =
        json!({"consent": {"text": "Yes"}, "fields": [field], "trigger": "before-first-message"});
    let organization = OrganizationDocument::new()
        .shop(json!({"features": {"enableLeadCapture": true}, "leadForm": form}))
        .apply(&service)
        .await;
    organization.script(Script::says("ok"));
    let lead = |mail: &str| json!({"mail": mail, "consent": true});
    let body = json!({"message": "hi", "sessionId": "s", "lead": lead("ada@shop.example")});
    let reply = Reply::read(organization.open_chat(&body).await).await;
    let path = organization.path("/conversations/s");
    let change = json!({"lead": lead("grace@shop.example")});
    organization
        .client()
        .patch(&path, &change)
        .await
        .assert_status(200);
    let events = valid_events(&service, &reply, 6).await;
    let mails: Vec<_> = events
        .iter()
        .enumerate()
        .filter_map(|(at, event)| match &event.body {
            EventBody::LeadCaptured(fact) => Some((at, fact.lead.values["mail"].clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        mails,
        [
            (2, json!("ada@shop.example")),
            (5, json!("grace@shop.example"))
        ],
        "{events:?}"
    );
}

pub(super) fn content(event: &MessageEvent) -> &str {
    match &event.body {
        EventBody::UserMessage(fact) => &fact.content,
        EventBody::AssistantMessage(fact) => &fact.content,
        EventBody::ConversationUpdated(_) | EventBody::LeadCaptured(_) => {
            panic!("nobody changed anything")
        }
    }
}

pub(super) fn position(event: &MessageEvent) -> Option<u64> {
    match &event.body {
        EventBody::UserMessage(fact) => Some(fact.position),
        EventBody::AssistantMessage(fact) => fact.position,
        EventBody::ConversationUpdated(_) | EventBody::LeadCaptured(_) => None,
    }
}
