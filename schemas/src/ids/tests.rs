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
    let named =
        |payload| MessageId::idempotent(&conversation(), "sender", "chat", "order-1", payload);
    assert_eq!(named("first"), named("first"));
    assert_ne!(named("first"), named("second"));
}

#[test]
fn a_message_id_names_its_conversation_and_fits_64_characters() {
    let message = MessageId::new_in(&conversation());
    assert_eq!(message.conversation(), conversation());
    assert_eq!(message.reply().conversation(), conversation());
    assert!(message.as_str().len() <= 64);
}

#[test]
fn an_id_that_a_client_named_is_never_taken_for_a_drawn_one() {
    assert!(MessageId::new_in(&conversation()).is_time_ordered());
    let secret = InstallationSecret::from_bytes([7; 32]);
    let key = KeyId::derive(&secret, &OrgId::derive(&secret, "acme"), "site", 0);
    for number in 0..200 {
        let id = MessageId::idempotent(
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
fn a_reply_id_is_the_same_for_every_process() {
    let message = MessageId::new_in(&conversation());
    assert_eq!(message.reply(), message.reply());
    assert_ne!(message.reply(), message);
}

#[test]
fn a_visitors_conversation_is_its_own_and_nobody_elses() {
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
fn an_audit_id_tells_its_moment_and_a_later_one_is_greater() {
    let (before, id, after) = (Timestamp::now(), AuditId::now(), Timestamp::now());
    assert!(id.made_at().micros() / 1000 >= before.micros() / 1000 && id.made_at() <= after);
    assert!(AuditId::now() > id);
}

#[test]
fn one_address_is_one_account_in_any_spelling() {
    let secret = InstallationSecret::from_bytes([7; 32]);
    let id = |text: &str| UserId::derive(&secret, &text.parse().unwrap());
    assert_eq!(id("Ada@Example.org"), id("ada@example.org"));
    assert_ne!(id("ada@example.org"), id("bob@example.org"));
}

#[test]
fn an_id_of_another_kind_is_refused() {
    assert!(conversation().as_str().parse::<AgentId>().is_err());
    assert!("agt_".parse::<AgentId>().is_err());
    assert!("agt_é0000000000000000000000000".parse::<AgentId>().is_err());
}

#[test]
fn parts_that_join_to_the_same_text_make_different_ids() {
    assert_ne!(
        digest_bits("x", &["ab", "c"]),
        digest_bits("x", &["a", "bc"])
    );
}
