//! Conformance tests of session links, through which an agent's team conversations are found.

use switchboard_schemas::{
    client_text::SessionId,
    ids::{AgentId, ConversationId, OrgId, TeamId},
    secret::InstallationSecret,
};

use super::{Subject, noon_and};
use crate::store::SessionLink;

/// An organization with agents and teams.
struct Office {
    secret: InstallationSecret,
    org: OrgId,
    session: SessionId,
}

impl Office {
    fn new() -> Self {
        let secret = InstallationSecret::from_bytes(rand::random());
        Self {
            org: OrgId::derive(&secret, "acme"),
            secret,
            session: "séance 1".parse().unwrap(),
        }
    }

    fn agent(&self, slug: &str) -> AgentId {
        AgentId::derive(&self.secret, &self.org, slug)
    }

    fn conversation(&self, team: &str) -> ConversationId {
        let team = TeamId::derive(&self.secret, &self.org, team);
        ConversationId::of_team(&self.org, &team, &self.session)
    }

    async fn answer(&self, subject: &Subject, agent: &str, team: &str, seconds: i64) {
        let link = SessionLink {
            org_id: self.org.clone(),
            agent_id: self.agent(agent),
            session_id: self.session.clone(),
            conversation_id: self.conversation(team),
            answered_at: noon_and(seconds),
        };
        subject.store.link_session(&link).await.unwrap();
    }

    async fn linked_conversations_of(&self, subject: &Subject, agent: &str) -> Vec<ConversationId> {
        subject
            .store
            .linked_conversations(&self.org, &self.agent(agent), &self.session)
            .await
            .unwrap()
    }
}

pub(super) async fn team_conversation_is_linked_to_each_answering_agent(subject: Subject) {
    let office = Office::new();
    for agent in ["billing", "technical", "billing"] {
        office.answer(&subject, agent, "front", 1).await;
    }
    for agent in ["billing", "technical"] {
        assert_eq!(
            office.linked_conversations_of(&subject, agent).await,
            [office.conversation("front")]
        );
    }
}

pub(super) async fn latest_answered_team_conversation_comes_first(subject: Subject) {
    let office = Office::new();
    office.answer(&subject, "billing", "front", 3).await;
    office.answer(&subject, "billing", "back", 2).await;
    // A late repeat of an old answer changes nothing.
    office.answer(&subject, "billing", "front", 1).await;
    let (front, back) = (office.conversation("front"), office.conversation("back"));
    assert_eq!(
        office.linked_conversations_of(&subject, "billing").await,
        [front.clone(), back.clone()]
    );
    office.answer(&subject, "billing", "back", 4).await;
    assert_eq!(
        office.linked_conversations_of(&subject, "billing").await,
        [back, front]
    );
}

pub(super) async fn links_are_scoped_to_organization_agent_and_session(subject: Subject) {
    let office = Office::new();
    office.answer(&subject, "billing", "front", 1).await;
    assert!(
        office
            .linked_conversations_of(&subject, "technical")
            .await
            .is_empty()
    );
    let (store, agent, session) = (&subject.store, office.agent("billing"), &office.session);
    assert!(
        store
            .linked_conversations(&Office::new().org, &agent, session)
            .await
            .unwrap()
            .is_empty()
    );
    let other = "séance 2".parse().unwrap();
    assert!(
        store
            .linked_conversations(&office.org, &agent, &other)
            .await
            .unwrap()
            .is_empty()
    );
}
