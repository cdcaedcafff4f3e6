//! Conformance tests of conversation lists.

use switchboard_schemas::{
    conversation::ConversationOwner,
    ids::{AgentId, ConversationId, OrgId, TeamId},
    secret::InstallationSecret,
};

use super::{Subject, Talk, noon_and, replied};
use crate::store::listing::{ListCursor, ListQuery, ListedConversation};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// Most work for one row of a page, in the unit of the backend: rows, or steps of SQLite's virtual
/// machine.
const WORK_OF_ROW_MAX: u64 = 30;

/// An organization with two agents and a team.
struct Desk {
    secret: InstallationSecret,
    org: OrgId,
}

impl Desk {
    fn new() -> Self {
        let secret = InstallationSecret::from_bytes(rand::random());
        Self {
            org: OrgId::derive(&secret, "acme"),
            secret,
        }
    }

    fn agent(&self, slug: &str) -> ConversationOwner {
        ConversationOwner::Agent(AgentId::derive(&self.secret, &self.org, slug))
    }

    fn team(&self) -> ConversationOwner {
        ConversationOwner::Team(TeamId::derive(&self.secret, &self.org, "front"))
    }

    /// Starts a conversation so many seconds after noon.
    async fn begin(
        &self,
        subject: &Subject,
        owner: &ConversationOwner,
        seconds: i64,
    ) -> ConversationId {
        let session = format!("session {seconds}").parse().unwrap();
        let id = match owner {
            ConversationOwner::Agent(agent) => ConversationId::of_agent(&self.org, agent, &session),
            ConversationOwner::Team(team) => ConversationId::of_team(&self.org, team, &session),
        };
        let talk = Talk {
            org: self.org.clone(),
            id: id.clone(),
            owner: owner.clone(),
            session: session.as_str().to_owned(),
        };
        subject
            .begin(&talk.turn_at(0, "question", seconds), 1)
            .await;
        id
    }

    async fn list(&self, subject: &Subject, query: ListQuery) -> Vec<ListedConversation> {
        subject
            .store
            .conversations(&self.org, &query)
            .await
            .unwrap()
    }

    /// Reads a complete list in pages of `limit`.
    async fn walk(&self, subject: &Subject, query: &ListQuery, limit: u32) -> Vec<ConversationId> {
        let (mut ids, mut query) = (
            Vec::new(),
            ListQuery {
                limit,
                ..query.clone()
            },
        );
        loop {
            let page = self.list(subject, query.clone()).await;
            assert!(page.len() <= limit as usize);
            let Some(last) = page.last() else { return ids };
            query.behind = Some(ListCursor {
                began_at: last.began_at,
                id: Some(last.id.clone()),
            });
            ids.extend(page.into_iter().map(|listed| listed.id));
        }
    }
}

/// Start times on different days; some days have several, and some times are equal.
const BEGINNINGS: [i64; 14] = [
    -900 * DAY_SECONDS,
    -400 * DAY_SECONDS,
    -400 * DAY_SECONDS + 1,
    -40 * DAY_SECONDS,
    -12 * DAY_SECONDS,
    -11 * DAY_SECONDS,
    -10 * DAY_SECONDS,
    -9 * DAY_SECONDS,
    -8 * DAY_SECONDS,
    -7 * DAY_SECONDS,
    -6 * DAY_SECONDS,
    0,
    1,
    2,
];

pub(super) async fn conversations_are_listed_latest_first_and_pages_join(subject: Subject) {
    let (desk, mut expected) = (Desk::new(), Vec::new());
    for seconds in BEGINNINGS {
        expected.push(desk.begin(&subject, &desk.agent("shop"), seconds).await);
    }
    expected.reverse();
    for limit in [1, 2, 3, 8, 13, 14, 500] {
        assert_eq!(
            desk.walk(&subject, &ListQuery::default(), limit).await,
            expected,
            "{limit}"
        );
    }
    assert_eq!(
        desk.list(&subject, ListQuery::default()).await,
        [],
        "a page of nothing"
    );
}

pub(super) async fn conversations_of_one_moment_are_all_listed(subject: Subject) {
    let (desk, mut expected) = (Desk::new(), Vec::new());
    for slug in ["a", "b", "c", "d", "e"] {
        expected.push(desk.begin(&subject, &desk.agent(slug), 7).await);
    }
    for limit in [1, 2, 5] {
        let mut found = desk.walk(&subject, &ListQuery::default(), limit).await;
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

pub(super) async fn list_is_filtered_by_owner_and_time(subject: Subject) {
    let desk = Desk::new();
    let (shop, help, team) = (desk.agent("shop"), desk.agent("help"), desk.team());
    let mut ids = Vec::new();
    for (number, owner) in [&shop, &help, &team, &shop, &help, &team]
        .into_iter()
        .enumerate()
    {
        ids.push(
            desk.begin(
                &subject,
                owner,
                i64::try_from(number).unwrap() * DAY_SECONDS,
            )
            .await,
        );
    }
    for (owner, expected) in [(&shop, [3, 0]), (&help, [4, 1]), (&team, [5, 2])] {
        let query = ListQuery {
            owner: Some(owner.clone()),
            ..ListQuery::default()
        };
        assert_eq!(
            desk.walk(&subject, &query, 1).await,
            expected.map(|number| ids[number].clone())
        );
    }
    let behind = Some(ListCursor {
        began_at: noon_and(4 * DAY_SECONDS),
        id: None,
    });
    let query = ListQuery {
        since: Some(noon_and(DAY_SECONDS)),
        behind,
        ..ListQuery::default()
    };
    assert_eq!(
        desk.walk(&subject, &query, 2).await,
        [3, 2, 1].map(|number| ids[number].clone())
    );
}

pub(super) async fn conversation_is_listed_once_despite_repeats(subject: Subject) {
    let talk = Talk::new();
    let (first, second) = (talk.turn(0, "question"), talk.turn(2, "more"));
    for attempt in [1, 1, 2] {
        subject.begin(&first, attempt).await;
        subject.finish(&first, attempt, replied("answer")).await;
    }
    subject.begin(&second, 1).await;
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let listed = subject
        .store
        .conversations(&talk.org, &query)
        .await
        .unwrap();
    assert_eq!(
        listed,
        [ListedConversation {
            began_at: noon_and(0),
            id: talk.id.clone()
        }]
    );
}

pub(super) async fn list_contains_only_its_organization(subject: Subject) {
    let (ours, theirs) = (Desk::new(), Desk::new());
    ours.begin(&subject, &ours.agent("shop"), 0).await;
    for owner in [None, Some(ours.agent("shop"))] {
        let query = ListQuery {
            owner,
            limit: 10,
            ..ListQuery::default()
        };
        assert_eq!(theirs.list(&subject, query.clone()).await, []);
        assert_eq!(ours.list(&subject, query).await.len(), 1);
    }
}

pub(super) async fn cost_of_a_list_page_depends_only_on_its_length(subject: Subject) {
    let desk = Desk::new();
    for seconds in 0..200 {
        desk.begin(&subject, &desk.agent("shop"), seconds * DAY_SECONDS / 20)
            .await;
    }
    for days in [1, 5, 9] {
        let behind = Some(ListCursor {
            began_at: noon_and(days * DAY_SECONDS),
            id: None,
        });
        let before = (subject.work)();
        assert_eq!(
            desk.list(
                &subject,
                ListQuery {
                    behind,
                    limit: 10,
                    ..ListQuery::default()
                }
            )
            .await
            .len(),
            10
        );
        let work = (subject.work)() - before;
        assert!((1..=10 * WORK_OF_ROW_MAX).contains(&work), "{work}");
    }
}
