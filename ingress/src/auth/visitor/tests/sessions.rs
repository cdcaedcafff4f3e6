//! Isolation of sessions: a token reaches only those of its visitor.

use serde_json::{Value, json};
use switchboard_backends::store::{SessionLink, SessionLinkStore};
use switchboard_schemas::{
    conversation::{Conversation, ReplyStatus},
    conversation_job::{ConversationJob, ReplyJob},
    ids::{ConversationId, MessageId},
    reply_event::{IngressEnvelope, PatchOutcome},
    time::Timestamp,
    topics::Topic,
    turn::MessageSource,
    visitor_token::VisitorClaims,
};

use super::{CHAT, claims, problem, token_of};
use crate::testing::{Answer, World, agent_id, empty_conversation, org_id};

impl World {
    /// Stores a visitor's conversation of session `s` with a final reply.
    pub(super) async fn put_visitor_conversation(
        &self,
        claims: &VisitorClaims,
    ) -> (VisitorClaims, MessageId) {
        let session = "s".parse().unwrap();
        let id = ConversationId::of_visitor(&org_id(), &agent_id(), &claims.visitor_id, &session);
        self.store_conversation(&Conversation {
            id: id.clone(),
            ..empty_conversation(org_id())
        })
        .await;
        let reply = MessageId::new_in(&id).reply();
        self.put_final(&reply, ReplyStatus::Cancelled).await;
        (claims.clone(), reply)
    }

    /// Sends a message with a token and returns the published job.
    async fn accepted_of(
        &self,
        claims: &VisitorClaims,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (Answer, Box<ReplyJob>) {
        let token = token_of(claims);
        let headers = [
            &[("x-api-key", token.as_str()), ("prefer", "respond-async")],
            headers,
        ]
        .concat();
        let answer = self
            .send_with(
                "POST",
                &Self::agent_path("/chat"),
                &headers,
                body.to_owned(),
            )
            .await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let Some(ConversationJob::Reply(job)) = self.jobs(Topic::Jobs).pop() else {
            panic!("a message is published")
        };
        (answer, job)
    }

    async fn read_as(&self, claims: &VisitorClaims, path: &str) -> Answer {
        self.send_as(&token_of(claims), "GET", path, "").await
    }
}

#[tokio::test]
async fn visitor_message_has_the_widget_source_and_its_own_session() {
    let world = World::new().await;
    let (ada, bob) = (claims(), claims());
    let (_, job) = world.accepted_of(&ada, &[], CHAT).await;
    assert_eq!(
        (job.turn.source, job.turn.session_id.as_str()),
        (MessageSource::Widget, "s")
    );
    assert_eq!(job.turn.visitor.id.as_ref(), Some(&ada.visitor_id));
    assert_eq!(job.turn.key_id, None);
    let (_, again) = world.accepted_of(&ada, &[], CHAT).await;
    assert_eq!(job.turn.conversation_id, again.turn.conversation_id);
    let (_, other) = world.accepted_of(&bob, &[], CHAT).await;
    assert_ne!(job.turn.conversation_id, other.turn.conversation_id);
    let by_key = ConversationId::of_agent(&org_id(), &agent_id(), &"s".parse().unwrap());
    assert_ne!(job.turn.conversation_id, by_key);
}

#[tokio::test]
async fn body_cannot_name_another_visitor() {
    let world = World::new().await;
    let ada = claims();
    let own = json!({ "message": "hi", "sessionId": "s", "visitorId": ada.visitor_id }).to_string();
    world.accepted_of(&ada, &[], &own).await;
    let other =
        json!({ "message": "hi", "sessionId": "s", "visitorId": claims().visitor_id }).to_string();
    let answer = world
        .send_as(&token_of(&ada), "POST", &World::agent_path("/chat"), &other)
        .await;
    assert_eq!(answer.problem(), problem(400, "INVALID_REQUEST_DATA"));
    assert_eq!(answer.json()["param"], "visitorId");
}

#[tokio::test]
async fn visitor_reads_only_its_own_session() {
    let world = World::new().await;
    let (ada, reply) = world.put_visitor_conversation(&claims()).await;
    let of_a_key = world.put_conversation(org_id()).await;
    let (bob, session) = (claims(), World::agent_path("/conversations/s"));
    let read = world.read_as(&ada, &session).await.json();
    assert_eq!(
        (read["id"].as_str(), read["sessionId"].as_str()),
        (Some(reply.conversation().as_str()), Some("s"))
    );
    for path in [
        session.clone(),
        format!("{session}?conversationId={}", reply.conversation()),
    ] {
        assert_eq!(
            world.read_as(&bob, &path).await.problem(),
            problem(404, "CONVERSATION_NOT_FOUND")
        );
    }
    for (id, expected) in [(reply.conversation(), 200), (of_a_key, 404)] {
        let path = format!("{session}?conversationId={id}");
        assert_eq!(world.read_as(&ada, &path).await.status, expected, "{path}");
    }
    let nobodys = world
        .read_as(&bob, &World::agent_path("/conversations/never"))
        .await;
    let adas = world.read_as(&bob, &session).await;
    let without_id = |answer: &Answer| {
        let mut body = answer.json();
        body.as_object_mut().unwrap().remove("requestId");
        body
    };
    assert_eq!(
        without_id(&nobodys),
        without_id(&adas),
        "the responses reveal which of them exists"
    );
}

#[tokio::test]
async fn visitor_follows_and_cancels_its_own_messages_only() {
    let world = World::new().await;
    let (ada, reply) = world.put_visitor_conversation(&claims()).await;
    let bob = claims();
    for (method, rest) in [("GET", ""), ("POST", "/cancel")] {
        let path = format!("/api/public/messages/{reply}{rest}");
        assert_eq!(
            world
                .send_as(&token_of(&ada), method, &path, "")
                .await
                .status,
            200,
            "{rest}"
        );
        let answer = world.send_as(&token_of(&bob), method, &path, "").await;
        assert_eq!(answer.problem(), problem(404, "MESSAGE_NOT_FOUND"));
    }
    let stream = format!("/api/public/messages/{reply}/stream");
    assert_eq!(
        world.read_as(&bob, &stream).await.problem(),
        problem(404, "MESSAGE_NOT_FOUND")
    );
    assert_ne!(
        world.read_as(&ada, &stream).await.problem().1,
        "MESSAGE_NOT_FOUND"
    );
}

#[tokio::test]
async fn accepted_message_is_visible_to_its_visitor_only() {
    let world = World::new().await;
    let ada = claims();
    let (answer, _) = world.accepted_of(&ada, &[], CHAT).await;
    let path = answer.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(world.read_as(&ada, &path).await.json()["status"], "queued");
    assert_eq!(
        world.read_as(&claims(), &path).await.problem(),
        problem(404, "MESSAGE_NOT_FOUND")
    );
}

#[tokio::test]
async fn organization_key_reads_a_visitor_session_after_an_answer() {
    let world = World::new().await;
    let (_, reply) = world.put_visitor_conversation(&claims()).await;
    let path = World::agent_path("/conversations/s");
    assert_eq!(
        world.send("GET", &path, "").await.problem(),
        problem(404, "CONVERSATION_NOT_FOUND")
    );
    let link = SessionLink {
        org_id: org_id(),
        agent_id: agent_id(),
        session_id: "s".parse().unwrap(),
        conversation_id: reply.conversation(),
        answered_at: Timestamp::from_micros(1),
    };
    world.store.link_session(&link).await.unwrap();
    assert_eq!(
        world.send("GET", &path, "").await.json()["id"],
        reply.conversation().as_str()
    );
    let own = world.put_conversation(org_id()).await;
    assert_eq!(
        world.send("GET", &path, "").await.json()["id"],
        own.as_str(),
        "the key's own comes first"
    );
}

#[tokio::test]
async fn change_of_a_visitor_applies_to_its_own_conversation() {
    let world = World::new().await;
    let (ada, reply) = world.put_visitor_conversation(&claims()).await;
    let (token, path) = (token_of(&ada), World::agent_path("/conversations/s"));
    let worker = async {
        world.published().await;
        let ConversationJob::Patch(job) = world.jobs(Topic::Jobs).remove(0) else {
            panic!("a change is asked for")
        };
        world.push(IngressEnvelope::Patch(
            job.event_id.clone(),
            PatchOutcome::Applied,
        ));
        job
    };
    let (answer, job) = tokio::join!(
        world.send_as(&token, "PATCH", &path, r#"{"rating":5}"#),
        worker
    );
    assert_eq!(
        answer.json(),
        json!({ "success": true, "updated": { "rating": 5 } })
    );
    assert_eq!(
        (job.actor.as_str(), &job.conversation_id),
        ("visitor", &reply.conversation())
    );
    let answer = world
        .send_as(&token_of(&claims()), "PATCH", &path, r#"{"rating":5}"#)
        .await;
    assert_eq!(answer.problem(), problem(404, "CONVERSATION_NOT_FOUND"));
}

#[tokio::test]
async fn idempotency_key_is_scoped_to_the_visitor() {
    let world = World::new().await;
    let (ada, bob) = (claims(), claims());
    let key = [("idempotency-key", "k")];
    let id = |answer: &Answer| answer.json()["messageId"].clone();
    let (first, _) = world.accepted_of(&ada, &key, CHAT).await;
    let other_text = r#"{"message":"something else","sessionId":"s"}"#;
    let (second, _) = world.accepted_of(&bob, &key, other_text).await;
    assert_ne!(id(&first), id(&second));
    let renewed = VisitorClaims {
        expires_at: ada.expires_at.after(std::time::Duration::from_secs(60)),
        ..ada
    };
    let (repeat, _) = world.accepted_of(&renewed, &key, CHAT).await;
    assert_eq!(id(&first), id(&repeat));
    assert_ne!(id(&first), Value::Null);
}

#[tokio::test]
async fn lookup_of_an_unstarted_session_is_no_guess() {
    let config = crate::IngressConfig {
        unknown_sessions_per_minute: 1,
        ..crate::IngressConfig::default()
    };
    let world = World::with(config).await;
    for _ in 0..3 {
        let answer = world
            .read_as(&claims(), &World::agent_path("/conversations/s"))
            .await;
        assert_eq!(answer.problem(), problem(404, "CONVERSATION_NOT_FOUND"));
    }
}
