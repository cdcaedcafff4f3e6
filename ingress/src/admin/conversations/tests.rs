//! Lists of conversations over embedded backends: what a filter lets through, and how a reader goes
//! on.

use serde_json::{Value, json};
use switchboard_schemas::ids::{AgentId, OrgId};

use crate::testing::{Answer, World, agent_id, org_id, org_path, put_conversation, secret};

async fn get(world: &World, path: &str) -> Answer {
    let path = org_path(&format!("/conversations{path}"));
    world.admin("GET", &path, &[], Value::Null).await
}

/// Returns the ids of all pages of a list.
async fn walk(world: &World, query: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = get(world, &format!("?{query}{cursor}")).await;
        let page = answer.expect(200);
        found.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn list_is_walked_latest_first_with_any_filter() {
    let world = World::new().await;
    let other = AgentId::derive(&secret(), &org_id(), "other");
    let put = async |number| {
        let agent = if number % 2 == 0 {
            agent_id()
        } else {
            other.clone()
        };
        let metadata = match number {
            7 => json!({ "rating": 5, "visitorId": "v 1" }),
            900 => json!({ "rating": 2.5, "visitorEmail": "a@shop.example" }),
            _ => json!({ "visitorId": format!("v{number}") }),
        };
        put_conversation(&world, &org_id(), &agent, 1_000_000 * number, metadata)
            .await
            .to_string()
    };
    // Writes that wait together share a commit.
    let all = futures::future::join_all((0..1200).map(put)).await;
    put_conversation(
        &world,
        &OrgId::derive(&secret(), "other"),
        &agent_id(),
        5,
        json!({ "rating": 5 }),
    )
    .await;
    let newest_first = |numbers: &mut dyn Iterator<Item = usize>| {
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable_by(|left, right| right.cmp(left));
        numbers
            .into_iter()
            .map(|number| all[number].clone())
            .collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("limit=199", newest_first(&mut (0..1200))),
        (
            &format!("agent={}&limit=200", agent_id()),
            newest_first(&mut (0..1200).step_by(2)),
        ),
        ("minRating=1", newest_first(&mut [7, 900].into_iter())),
        ("minRating=3", newest_first(&mut [7].into_iter())),
        ("maxRating=3", newest_first(&mut [900].into_iter())),
        ("visitorId=v%201", newest_first(&mut [7].into_iter())),
        (
            "visitorEmail=a%40shop.example",
            newest_first(&mut [900].into_iter()),
        ),
        (
            "visitorEmail=A%40Shop.Example",
            newest_first(&mut [900].into_iter()),
        ),
        ("visitor=%20a%40SHOP", newest_first(&mut [900].into_iter())),
        ("visitor=V%201", newest_first(&mut [7].into_iter())),
        ("visitorId=v1&minRating=1", vec![]),
        (
            "since=1970-01-01T00:00:03Z&until=1970-01-01T00:00:06Z",
            newest_first(&mut (3..6)),
        ),
    ] {
        assert_eq!(walk(&world, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn request_reads_a_bounded_part_of_the_list() {
    let world = World::new().await;
    let put =
        async |number| put_conversation(&world, &org_id(), &agent_id(), number, json!({})).await;
    futures::future::join_all((0..600).map(put)).await;
    let page = get(&world, "?minRating=1").await.json();
    assert_eq!(page["items"], json!([]));
    assert!(
        page["nextCursor"].is_string(),
        "an empty page in the middle of a list can be gone on from"
    );
}

#[tokio::test]
async fn invalid_filter_names_its_parameter() {
    let world = World::new().await;
    for (query, param) in [
        ("agent=shop", "agent"),
        ("team=agt_0", "team"),
        ("since=yesterday", "since"),
        ("until=1", "until"),
        ("minRating=good", "minRating"),
        ("maxRating=NaN", "maxRating"),
        ("cursor=1", "cursor"),
        ("cursor=1.conv_x", "cursor"),
        (&format!("text={}", "x".repeat(201)), "text"),
    ] {
        let answer = get(&world, &format!("?{query}")).await;
        assert_eq!(
            answer.problem(),
            (400, "INVALID_REQUEST_DATA".into()),
            "{query}"
        );
        assert_eq!(answer.json()["param"], param);
    }
}

#[tokio::test]
async fn erasure_with_an_unknown_field_is_refused() {
    let world = World::new().await;
    let visitor = json!({ "visitorId": "v 1", "visitorEmial": "ada@shop.example" });
    let answer = world
        .admin("POST", &org_path("/erasures"), &[], visitor)
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["param"]),
        (400, &json!("visitorEmial"))
    );
}
