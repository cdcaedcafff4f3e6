//! Tests of the ids.

use super::*;

fn conversation() -> ConversationId {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org = OrgId::derive(&secret, "acme");
    let agent = AgentId::derive(&secret, &org, "shop");
    ConversationId::of_agent(&org, &agent, &"session".parse().unwrap())
}

#[test]
fn idempotency_key_with_another_body_is_another_message() {
    let named = |payload| {
        MessageId::from_idempotency_key(&conversation(), "sender", "chat", "order-1", payload)
    };
    assert_eq!(named("first"), named("first"));
    assert_ne!(named("first"), named("second"));
}

#[test]
fn message_id_contains_its_conversation_in_64_characters() {
    let message = MessageId::new_in(&conversation());
    assert_eq!(message.conversation(), conversation());
    assert_eq!(message.reply().conversation(), conversation());
    assert!(message.as_str().len() <= 64);
}

#[test]
fn idempotent_id_is_not_time_ordered() {
    assert!(MessageId::new_in(&conversation()).is_time_ordered());
    let secret = InstallationSecret::from_bytes([7; 32]);
    let key = KeyId::derive(&secret, &OrgId::derive(&secret, "acme"), "site", 0);
    for number in 0..200 {
        let id = MessageId::from_idempotency_key(
            &conversation(),
            key.as_str(),
            "chat",
            &number.to_string(),
            "says",
        );
        assert!(!id.is_time_ordered());
    }
}

#[test]
fn reply_id_is_the_same_in_every_process() {
    let message = MessageId::new_in(&conversation());
    assert_eq!(message.reply(), message.reply());
    assert_ne!(message.reply(), message);
}

#[test]
fn visitor_conversation_belongs_to_one_visitor() {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let org = OrgId::derive(&secret, "acme");
    let (agent, other_agent) = (
        AgentId::derive(&secret, &org, "shop"),
        AgentId::derive(&secret, &org, "help"),
    );
    let (ada, bob): (VisitorId, VisitorId) = ("ada".parse().unwrap(), "bob".parse().unwrap());
    let of = |visitor, session: &str| {
        ConversationId::of_visitor(&org, &agent, visitor, &session.parse().unwrap())
    };
    assert!(of(&ada, "session").is_of_visitor(&org, &agent, &ada));
    assert!(!of(&ada, "session").is_of_visitor(&org, &agent, &bob));
    assert!(!of(&ada, "session").is_of_visitor(&org, &other_agent, &ada));
    assert!(!conversation().is_of_visitor(&org, &agent, &ada));
    let ids = [
        of(&ada, "session"),
        of(&ada, "other"),
        of(&bob, "session"),
        conversation(),
    ];
    assert_eq!(
        ids.iter().collect::<std::collections::HashSet<_>>().len(),
        ids.len()
    );
    assert_eq!(MessageId::new_in(&ids[0]).reply().conversation(), ids[0]);
}

#[test]
fn audit_ids_contain_their_time_and_sort_by_it() {
    let (before, id, after) = (Timestamp::now(), AuditId::now(), Timestamp::now());
    assert!(id.created_at().micros() / 1000 >= before.micros() / 1000 && id.created_at() <= after);
    assert!(AuditId::now() > id);
}

#[test]
fn spellings_of_an_address_are_one_account() {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let id = |org: &str, text: &str| {
        let org = OrgId::derive(&secret, org);
        UserId::derive(&secret, &org, &text.parse().unwrap())
    };
    let ada = id("acme", "ada@example.org");
    assert_eq!(id("acme", "Ada@Example.org"), ada);
    assert_ne!(id("acme", "bob@example.org"), ada);
    assert_ne!(id("other", "ada@example.org"), ada);
}

#[test]
fn id_of_another_kind_is_rejected() {
    assert!(conversation().as_str().parse::<AgentId>().is_err());
    assert!("agt_".parse::<AgentId>().is_err());
    assert!("agt_é0000000000000000000000000".parse::<AgentId>().is_err());
}

#[test]
fn ids_of_differently_split_parts_differ() {
    assert_ne!(
        digest_bits("x", &["ab", "c"]),
        digest_bits("x", &["a", "bc"])
    );
}
