//! Sentences about teams' conversations, which are found through the agents that answered in them.

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

    async fn found(&self, subject: &Subject, agent: &str) -> Vec<ConversationId> {
        subject
            .store
            .linked_conversations(&self.org, &self.agent(agent), &self.session)
            .await
            .unwrap()
    }
}

pub(super) async fn a_teams_conversation_is_found_through_each_agent_that_answered(
    subject: Subject,
) {
    let office = Office::new();
    for agent in ["billing", "technical", "billing"] {
        office.answer(&subject, agent, "front", 1).await;
    }
    for agent in ["billing", "technical"] {
        assert_eq!(
            office.found(&subject, agent).await,
            [office.conversation("front")]
        );
    }
}

pub(super) async fn of_several_teams_the_one_that_was_answered_last_comes_first(subject: Subject) {
    let office = Office::new();
    office.answer(&subject, "billing", "front", 3).await;
    office.answer(&subject, "billing", "back", 2).await;
    // A repeat of an old answer, arriving late, changes nothing.
    office.answer(&subject, "billing", "front", 1).await;
    let (front, back) = (office.conversation("front"), office.conversation("back"));
    assert_eq!(
        office.found(&subject, "billing").await,
        [front.clone(), back.clone()]
    );
    office.answer(&subject, "billing", "back", 4).await;
    assert_eq!(office.found(&subject, "billing").await, [back, front]);
}

pub(super) async fn another_organization_agent_or_session_finds_none(subject: Subject) {
    let office = Office::new();
    office.answer(&subject, "billing", "front", 1).await;
    assert!(office.found(&subject, "technical").await.is_empty());
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
