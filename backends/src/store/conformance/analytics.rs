//! Conformance tests of analytics: totals equal the stored turns despite repeats, delays and
//! crashes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_schemas::{
    conversation::{ConversationOwner, ReplyStatus, TokenUsage},
    day::{UtcDay, hour_of},
    ids::{AgentId, ConversationId, EventId, OrgId, TeamId},
    secret::InstallationSecret,
};

use super::{
    NOON_MICROS, Outcome, SECOND_MICROS, Subject, Talk, TalkTurn, deletion::deletion, failed,
    noon_and, replied,
};
use crate::{
    analytics::{
        DayRange,
        reader::read_totals,
        totals::{GroupedTotals, TotalsGroup, UsageTotals},
    },
    store::{TurnEnd, deletion::ConversationDeletion},
};

const HOUR_SECONDS: i64 = 60 * 60;
const DAY_SECONDS: i64 = 24 * HOUR_SECONDS;

/// An organization with agents and a team.
struct Office {
    secret: InstallationSecret,
    org: OrgId,
}

impl Office {
    fn new() -> Self {
        let secret = InstallationSecret::from_bytes(rand::random());
        Self {
            org: OrgId::derive(&secret, "acme"),
            secret,
        }
    }

    fn agent(&self, slug: &str) -> AgentId {
        AgentId::derive(&self.secret, &self.org, slug)
    }

    fn talk(&self, agent: &str, session: &str) -> Talk {
        let agent = self.agent(agent);
        let id = ConversationId::of_agent(&self.org, &agent, &session.parse().unwrap());
        Talk {
            org: self.org.clone(),
            id,
            owner: ConversationOwner::Agent(agent),
            session: session.into(),
        }
    }

    /// Returns the totals of the days around noon.
    async fn days(&self, subject: &Subject) -> BTreeMap<UtcDay, GroupedTotals> {
        let noon = UtcDay::from_timestamp(noon_and(0));
        let days = DayRange {
            first: noon.plus_days(-10),
            last: noon.plus_days(10),
        };
        read_totals(&*subject.analytics, &self.org, days)
            .await
            .unwrap()
    }

    /// Returns the totals of all days together.
    async fn all(&self, subject: &Subject) -> UsageTotals {
        let mut all = UsageTotals::default();
        for day_totals in self.days(subject).await.into_values() {
            day_totals.0.values().for_each(|usage| all.merge(usage));
        }
        all
    }
}

impl Subject {
    /// Finishes a turn with values derived from `seed` and returns the stored end.
    async fn take(&self, turn: &TalkTurn, status: ReplyStatus, seed: u64) -> TurnEnd {
        let has_text = status != ReplyStatus::Failed;
        let mut end = turn.end(
            1,
            if has_text {
                replied("answer")
            } else {
                failed()
            },
        );
        end.record.end.status = status;
        end.record.end.response_time_ms = 400 + 37 * seed;
        end.record.first_text_ms = has_text.then_some(100 + 11 * seed);
        end.record.end.usage = TokenUsage {
            prompt_tokens: seed,
            completion_tokens: 2 * seed,
            estimated: seed.is_multiple_of(3),
        };
        self.begin(turn, 1).await;
        self.store.finish_turn(&end).await.unwrap();
        end
    }
}

pub(super) async fn totals_equal_a_recount_of_stored_turns(subject: Subject) {
    let office = Office::new();
    let (mut recounted, mut seed) = (BTreeMap::<(UtcDay, TotalsGroup), UsageTotals>::new(), 0);
    let statuses = [
        ReplyStatus::Completed,
        ReplyStatus::Failed,
        ReplyStatus::Incomplete,
        ReplyStatus::Cancelled,
    ];
    for (agent, session, began) in [
        ("a", "1", -3 * DAY_SECONDS),
        ("a", "2", -HOUR_SECONDS),
        ("b", "3", 15 * HOUR_SECONDS),
        ("b", "4", 0),
    ] {
        let (talk, mut position) = (office.talk(agent, session), 0);
        for (number, status) in (0..8).zip(statuses.iter().cycle()) {
            seed += 1;
            let turn = talk.turn_at(position, "question", began + number * 20 * 60);
            let end = subject.take(&turn, *status, seed).await;
            position = end.record.message_count();
            let record = subject.record(&talk, &turn).await.unwrap();
            let group = TotalsGroup {
                agent_id: Some(office.agent(agent)),
                team_id: None,
            };
            let usage = recounted
                .entry((UtcDay::from_timestamp(end.accepted_at), group))
                .or_default();
            usage.conversations += u64::from(record.user_position == 0);
            match record.end.status {
                ReplyStatus::Completed => usage.completed += 1,
                ReplyStatus::Incomplete => usage.incomplete += 1,
                ReplyStatus::Cancelled => usage.cancelled += 1,
                _ => usage.failed += 1,
            }
            usage.prompt_tokens += record.end.usage.prompt_tokens;
            usage.completion_tokens += record.end.usage.completion_tokens;
            usage.estimated += u64::from(record.end.usage.estimated);
            if record.position.is_some() {
                usage.response_time.add(record.end.response_time_ms);
            }
            record
                .first_text_ms
                .into_iter()
                .for_each(|ms| usage.first_text.add(ms));
        }
    }
    let read = office.days(&subject).await.into_iter();
    let read = read.flat_map(|(day, day_totals)| {
        day_totals
            .0
            .into_iter()
            .map(move |(group, usage)| ((day, group), usage))
    });
    assert_eq!(read.collect::<BTreeMap<_, _>>(), recounted);
    assert!(
        recounted.len() > 3,
        "the turns lie in several days and groups"
    );
}

pub(super) async fn turn_is_counted_once_as_stored(subject: Subject) {
    let office = Office::new();
    let talk = office.talk("a", "s");
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    // The first attempt died after writing its fact, and its write arrives again last.
    for (attempt, outcome) in [
        (1, failed()),
        (2, replied("answer")),
        (2, replied("answer")),
        (1, failed()),
    ] {
        subject.finish(&turn, attempt, outcome).await;
        office.all(&subject).await;
    }
    let all = office.all(&subject).await;
    assert_eq!(
        (all.messages(), all.completed, all.conversations),
        (1, 1, 1)
    );
}

pub(super) async fn conversation_with_a_lead_counts_once_until_it_is_deleted(subject: Subject) {
    let office = Office::new();
    let (with, without) = (office.talk("a", "with"), office.talk("a", "without"));
    for talk in [&with, &without] {
        let turn = talk.turn(0, "question");
        subject.take(&turn, ReplyStatus::Completed, 1).await;
    }
    for seconds in [1, 5 * DAY_SECONDS] {
        let lead = json!({ "lead": { "values": { "mail": seconds.to_string() } } });
        subject.change(&with, lead, noon_and(seconds)).await;
    }
    let all = office.all(&subject).await;
    assert_eq!((all.conversations, all.leads), (2, 1));
    let deletion = deletion(&with, "deletion", 6 * DAY_SECONDS);
    assert!(subject.store.delete_conversation(&deletion).await.unwrap());
    assert_eq!(office.all(&subject).await.leads, 0);
}

pub(super) async fn last_rating_of_a_conversation_counts_in_any_order(subject: Subject) {
    let office = Office::new();
    for (session, ratings) in [
        ("kept", [(1, json!(2)), (2, json!(4.5))]),
        ("late", [(2, json!(1)), (1, json!(5))]),
    ] {
        let talk = office.talk("a", session);
        subject
            .take(&talk.turn(0, "question"), ReplyStatus::Completed, 1)
            .await;
        for (seconds, rating) in ratings {
            // Although rated days later, it counts for the day on which the conversation began.
            subject
                .change(
                    &talk,
                    json!({ "rating": rating }),
                    noon_and(5 * DAY_SECONDS + seconds),
                )
                .await;
        }
    }
    let taken_back = office.talk("a", "taken back");
    subject
        .take(&taken_back.turn(0, "question"), ReplyStatus::Completed, 1)
        .await;
    for (seconds, rating) in [(1, json!(3)), (2, Value::Null)] {
        subject
            .change(
                &taken_back,
                json!({ "rating": rating, "feedback": "so so" }),
                noon_and(seconds),
            )
            .await;
    }
    let days = office.days(&subject).await;
    assert_eq!(
        days.keys().collect::<Vec<_>>(),
        [&UtcDay::from_timestamp(noon_and(0))]
    );
    let all = office.all(&subject).await;
    assert_eq!(all.ratings, BTreeMap::from([(100, 1), (450, 1)]));
    assert_eq!((all.rated(), all.average_rating()), (2, Some(275)));
}

pub(super) async fn late_fact_is_counted_on_an_already_counted_day(subject: Subject) {
    let office = Office::new();
    let talk = office.talk("a", "s");
    subject
        .take(&talk.turn_at(0, "question", 0), ReplyStatus::Completed, 1)
        .await;
    assert_eq!(office.all(&subject).await.messages(), 1);
    // Accepted on that day, and finished long after it.
    subject
        .take(&talk.turn_at(2, "question", 5), ReplyStatus::Failed, 2)
        .await;
    assert_eq!(office.all(&subject).await.messages(), 2);
    subject
        .change(&talk, json!({ "rating": 3 }), noon_and(9 * DAY_SECONDS))
        .await;
    let all = office.all(&subject).await;
    assert_eq!((all.messages(), all.rated()), (2, 1));
}

pub(super) async fn unchanged_day_is_not_recounted(subject: Subject) {
    let office = Office::new();
    let talk = office.talk("a", "s");
    let turn = talk.turn(0, "question");
    subject.take(&turn, ReplyStatus::Completed, 1).await;
    office.all(&subject).await;
    let (day, days) = (
        UtcDay::from_timestamp(noon_and(0)),
        DayRange {
            first: UtcDay::from_timestamp(noon_and(0)),
            last: UtcDay::from_timestamp(noon_and(0)),
        },
    );
    let kept = subject
        .analytics
        .stored_totals(&office.org, days)
        .await
        .unwrap()
        .remove(&day)
        .unwrap();
    let altered = kept.replace("\"completed\":1", "\"completed\":7");
    assert_ne!(kept, altered);
    subject
        .analytics
        .put_totals(&office.org, day, altered)
        .await
        .unwrap();
    assert_eq!(
        office.all(&subject).await.completed,
        7,
        "it was read, and not counted"
    );
    subject.finish(&turn, 2, replied("answer")).await;
    assert_eq!(
        office.all(&subject).await.completed,
        1,
        "a change makes it be counted again"
    );
}

pub(super) async fn pages_of_facts_join(subject: Subject) {
    let office = Office::new();
    for number in 0..5 {
        let talk = office.talk("a", &format!("s{number}"));
        subject
            .take(&talk.turn(0, "question"), ReplyStatus::Completed, 1)
            .await;
        subject
            .change(&talk, json!({ "rating": 1 + number }), noon_and(1))
            .await;
    }
    let (hour, mut ids, mut behind) = (hour_of(noon_and(0)), Vec::new(), String::new());
    loop {
        let page = subject
            .analytics
            .hour_facts(&office.org, hour, &behind, 3)
            .await
            .unwrap();
        ids.extend(page.iter().map(|row| row.id.clone()));
        match page.into_iter().next_back() {
            Some(last) if ids.len() % 3 == 0 => behind = last.id,
            _ => break,
        }
    }
    let mut sorted = ids.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((ids.len(), &ids), (10, &sorted));
    assert!(
        ids[..5]
            .iter()
            .all(|id| id.parse::<ConversationId>().is_ok()),
        "ratings come first"
    );
}

pub(super) async fn facts_are_invisible_to_another_organization(subject: Subject) {
    let (office, other) = (Office::new(), Office::new());
    subject
        .take(
            &office.talk("a", "s").turn(0, "question"),
            ReplyStatus::Completed,
            1,
        )
        .await;
    assert_eq!(office.all(&subject).await.messages(), 1);
    assert_eq!(other.days(&subject).await, BTreeMap::new());
    assert_eq!(
        subject
            .analytics
            .hour_facts(&other.org, NOON_MICROS / SECOND_MICROS / 3600, "", 9)
            .await
            .unwrap(),
        []
    );
}

pub(super) async fn unanswered_message_counts_for_its_team(subject: Subject) {
    let office = Office::new();
    let team = TeamId::derive(&office.secret, &office.org, "front");
    let id = ConversationId::of_team(&office.org, &team, &"s".parse().unwrap());
    let owner = ConversationOwner::Team(team.clone());
    let talk = Talk {
        org: office.org.clone(),
        id,
        owner,
        session: "s".into(),
    };
    let turn = talk.turn(0, "question");
    subject.begin(&turn, 1).await;
    subject.finish(&turn, 1, Outcome::Failed).await;
    let days = office.days(&subject).await;
    let groups: Vec<_> = days
        .values()
        .flat_map(|day_totals| day_totals.0.keys().cloned())
        .collect();
    assert_eq!(
        groups,
        [TotalsGroup {
            agent_id: None,
            team_id: Some(team)
        }]
    );
}

pub(super) async fn late_writes_do_not_restore_facts_of_a_deleted_conversation(subject: Subject) {
    let office = Office::new();
    let (talk, other) = (office.talk("a", "deleted"), office.talk("a", "kept"));
    let turn = talk.turn(0, "question");
    for (talk, turn, rating) in [(&talk, &turn, 2), (&other, &other.turn(0, "question"), 5)] {
        subject.take(turn, ReplyStatus::Completed, 1).await;
        subject
            .change(talk, json!({ "rating": rating }), noon_and(7))
            .await;
    }
    assert_eq!(office.all(&subject).await.messages(), 2);
    let deletion = ConversationDeletion {
        org_id: talk.org.clone(),
        conversation_id: talk.id.clone(),
        event_id: EventId::derive(talk.id.as_str(), "deletion"),
        at: noon_and(5),
    };
    assert!(subject.store.delete_conversation(&deletion).await.unwrap());
    for _ in 0..2 {
        let all = office.all(&subject).await;
        assert_eq!(
            (
                all.messages(),
                all.conversations,
                all.rated(),
                all.average_rating()
            ),
            (1, 1, 1, Some(500))
        );
        // A worker of the deleted conversation writes late.
        subject.finish(&turn, 2, replied("answer")).await;
    }
    let tombstone = subject
        .store
        .history_state(&talk.org, &talk.id)
        .await
        .unwrap()
        .tombstone;
    let mut anew = talk.turn_at(0, "hello again", 100);
    anew.tombstone = tombstone;
    subject.take(&anew, ReplyStatus::Completed, 2).await;
    subject
        .change(&talk, json!({ "rating": 4 }), noon_and(6))
        .await;
    let all = office.all(&subject).await;
    assert_eq!((all.messages(), all.conversations, all.rated()), (2, 2, 2));
}
