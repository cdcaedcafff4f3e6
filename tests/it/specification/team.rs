//! Section "Team": the attributes set by an applied document. `team_chat.rs` and `states.rs` test
//! their effects.

use serde_json::{Value, json};

use crate::support::{Organization, TestService, shop_with_settings};

fn team(changes: Value) -> Value {
    let mut team = json!({
        "slug": "front", "name": "Front desk", "description": "Helps.", "routing": "intent", "defaultAgent": "shop",
        "members": [{"agent": "shop", "specialization": "everything"}], "public": true, "status": "active"
    });
    team.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    team
}

async fn apply(organization: &Organization, service: &TestService, team: Value) -> u16 {
    let mut document = organization.document.clone();
    document["organizations"][0]["teams"] = json!([team]);
    service.apply(&document).await.status
}

#[tokio::test]
async fn team_has_all_specified_fields() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    assert_eq!(apply(&organization, service, team(json!({}))).await, 200);
    assert_eq!(
        apply(&organization, service, team(json!({"mood": "good"}))).await,
        400,
        "and nothing else"
    );
}

#[tokio::test]
async fn routing_strategy_is_intent_round_robin_or_random() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    for routing in ["intent", "round-robin", "random"] {
        assert_eq!(
            apply(&organization, service, team(json!({"routing": routing}))).await,
            200,
            "{routing}"
        );
    }
    assert_eq!(
        apply(
            &organization,
            service,
            team(json!({"routing": "alphabetical"}))
        )
        .await,
        400
    );
}

#[tokio::test]
async fn members_are_agents_each_with_a_specialization() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    let unknown = json!({"members": [{"agent": "nobody", "specialization": "all"}]});
    assert_eq!(apply(&organization, service, team(unknown)).await, 400);
    let without_agent = json!({"members": [{"specialization": "all"}]});
    assert_eq!(
        apply(&organization, service, team(without_agent)).await,
        400
    );
}
