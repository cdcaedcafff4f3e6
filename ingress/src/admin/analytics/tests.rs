//! Figures over a real store: what a request may ask, and how the answer adds up.

use serde_json::{Map, Value, json};
use switchboard_backends::store::{
    ConversationWriter, ReplyRecord, TurnEnd, TurnStart, TurnWriter,
};
use switchboard_schemas::{
    conversation::{ConversationOwner, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId, OrgId, RequestId},
    time::Timestamp,
    turn::{MessageSource, Turn, Visitor},
};

use crate::testing::{Answer, World, agent_id, end_of, org_id, org_path, secret};

/// 2026-03-01T12:00:00Z.
const NOON_MICROS: i64 = 1_772_366_400_000_000;
const DAY_MICROS: i64 = 24 * 3_600_000_000;

async fn get(world: &World, query: &str, headers: &[(&str, &str)]) -> Answer {
    let path = org_path(&format!("/analytics{query}"));
    world.admin("GET", &path, headers, Value::Null).await
}

/// Stores a conversation of one turn with this response time, on a day after the first of March.
async fn put(
    world: &World,
    org: &OrgId,
    agent: &AgentId,
    day: i64,
    status: ReplyStatus,
    took_ms: u64,
) {
    let session = format!("{day} {took_ms}").parse().unwrap();
    let id = ConversationId::of_agent(org, agent, &session);
    let turn = Turn {
        org_id: org.clone(),
        conversation_id: id.clone(),
        message_id: MessageId::new_in(&id),
        request_id: RequestId::random(),
        key_id: None,
        session_id: session,
        content: "hi".into(),
        visitor: Visitor::default(),
        metadata: Map::new(),
        source: MessageSource::Api,
        ip_address: None,
        accepted_at: Timestamp::from_micros(NOON_MICROS + day * DAY_MICROS),
        reply_to: None,
        publish_nonce: "nonce".into(),
    };
    let mut end = end_of("", status);
    (end.response_time_ms, end.usage) = (
        took_ms,
        TokenUsage {
            prompt_tokens: 10,
            completion_tokens: 3,
            estimated: false,
        },
    );
    let record = ReplyRecord {
        user_message_id: turn.message_id.clone(),
        user_position: 0,
        position: (status == ReplyStatus::Completed).then_some(1),
        head: None,
        end,
        generation: 1,
        attempt: 1,
        finished_at: turn.accepted_at,
        first_text_ms: Some(took_ms / 2),
    };
    let (owner, store) = (ConversationOwner::Agent(agent.clone()), world.store.inner());
    store
        .begin_turn(&TurnStart {
            turn: turn.clone(),
            owner,
            position: 0,
            tombstone: None,
            attempt: 1,
        })
        .await
        .unwrap();
    let end = TurnEnd {
        org_id: turn.org_id,
        accepted_at: turn.accepted_at,
        tombstone: None,
        attempt: 1,
        user_message_id: turn.message_id,
        agent_id: Some(agent.clone()),
        team_id: None,
        message: None,
        record,
    };
    store.finish_turn(&end).await.unwrap();
    let rating = json!({ "rating": if took_ms == 100 { 5.0 } else { 2.5 } });
    store
        .update_metadata(org, &id, rating.as_object().unwrap(), Timestamp::now())
        .await
        .unwrap();
}

async fn busy_world() -> World {
    let world = World::new().await;
    let gone = AgentId::derive(&secret(), &org_id(), "gone");
    put(
        &world,
        &org_id(),
        &agent_id(),
        0,
        ReplyStatus::Completed,
        100,
    )
    .await;
    put(&world, &org_id(), &agent_id(), 0, ReplyStatus::Failed, 9000).await;
    put(&world, &org_id(), &gone, 2, ReplyStatus::Completed, 60).await;
    put(
        &world,
        &OrgId::derive(&secret(), "other"),
        &agent_id(),
        0,
        ReplyStatus::Completed,
        1,
    )
    .await;
    world
}

#[tokio::test]
async fn totals_are_the_sums_of_days_and_agents() {
    let world = busy_world().await;
    let answer = get(&world, "?from=2026-03-01&to=2026-03-04", &[]).await;
    let report = answer.expect(200);
    assert_eq!(
        (&report["from"], &report["to"]),
        (&json!("2026-03-01"), &json!("2026-03-04"))
    );
    let messages = |list: &str| -> Vec<u64> {
        report[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["messages"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(
        (messages("days"), messages("agents"), messages("teams")),
        (vec![2, 0, 1, 0], vec![2, 1], vec![])
    );
    assert_eq!(
        report["totals"],
        json!({
            "conversations": 3,
            "messages": 3,
            "replies": { "completed": 2, "incomplete": 0, "failed": 1, "cancelled": 0 },
            "responseTime": { "count": 2, "averageMs": 80, "p50Ms": 60, "p95Ms": 100 },
            "firstTextTime": { "count": 2, "averageMs": 40, "p50Ms": 30, "p95Ms": 50 },
            "tokens": { "prompt": 30, "completion": 9, "estimatedReplies": 0 },
            "ratings": { "count": 3, "average": 3.33, "stars": [0, 0, 2, 0, 1] },
        })
    );
    let names: Vec<&Value> = report["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["agentName"])
        .collect();
    assert_eq!(
        names,
        [&json!("Shop"), &Value::Null],
        "an agent that is gone has no name"
    );
    assert_eq!(
        report["days"][1]["responseTime"]["p50Ms"],
        Value::Null,
        "without replies there is no time"
    );
}

#[tokio::test]
async fn totals_of_one_agent_exclude_other_agents() {
    let world = busy_world().await;
    let report = get(
        &world,
        &format!("?from=2026-03-01&to=2026-03-04&agent={}", agent_id()),
        &[],
    )
    .await
    .json();
    assert_eq!(
        (
            &report["totals"]["messages"],
            report["agents"].as_array().unwrap().len()
        ),
        (&json!(2), 1)
    );
    let team = format!(
        "?from=2026-03-01&to=2026-03-04&team=team_{}",
        "0".repeat(26)
    );
    assert_eq!(
        get(&world, &team, &[]).await.json()["totals"]["messages"],
        0
    );
}

#[tokio::test]
async fn csv_has_a_row_for_each_day_and_agent() {
    let world = busy_world().await;
    let range = "?from=2026-03-01&to=2026-03-04";
    let answer = get(&world, &format!("{range}&format=csv"), &[]).await;
    assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(
        answer.headers["content-disposition"],
        "attachment; filename=\"acme-2026-03-01-2026-03-04.csv\""
    );
    let rows: Vec<&str> = answer.text.split("\r\n").collect();
    assert_eq!(rows.len(), 4, "{}", answer.text);
    assert_eq!(
        rows[1],
        format!(
            "2026-03-01,{},Shop,,,2,2,1,0,1,0,20,6,0,100,100,100,50,50,50,2,3.75",
            agent_id()
        )
    );
    assert!(
        rows[2].starts_with("2026-03-03,") && rows[2].ends_with(",1,2.5"),
        "{}",
        rows[2]
    );
    assert_eq!(rows[3], "");
    assert_eq!(rows[0].split(',').count(), rows[1].split(',').count());
    for accept in ["text/csv", "text/csv, */*;q=0.1"] {
        assert_eq!(
            get(&world, range, &[("accept", accept)]).await.text,
            answer.text
        );
    }
    for accept in ["*/*", "application/json", "text/html, text/csv"] {
        assert_eq!(
            get(&world, range, &[("accept", accept)]).await.headers["content-type"],
            "application/json"
        );
    }
}

#[tokio::test]
async fn default_range_is_the_last_thirty_days() {
    let world = World::new().await;
    let report = get(&world, "", &[]).await.json();
    assert_eq!(report["days"].as_array().unwrap().len(), 30);
    assert_eq!(
        report["days"][29]["day"],
        Timestamp::now().to_string()[..10]
    );
}

#[tokio::test]
async fn invalid_range_or_filter_names_its_parameter() {
    let world = World::new().await;
    for (query, param) in [
        ("from=yesterday", "from"),
        ("to=2026-02-30", "to"),
        ("from=2026-03-02&to=2026-03-01", "to"),
        ("from=2025-01-01&to=2026-02-05", "from"),
        ("agent=shop", "agent"),
        ("team=agt_0", "team"),
        ("format=xml", "format"),
    ] {
        let answer = get(&world, &format!("?{query}"), &[]).await;
        assert_eq!(
            answer.problem(),
            (400, "INVALID_REQUEST_DATA".into()),
            "{query}"
        );
        assert_eq!(answer.json()["param"], param, "{query}");
    }
    assert_eq!(
        get(&world, "?from=2025-01-01&to=2026-02-04", &[])
            .await
            .status,
        200,
        "400 days are taken"
    );
}
