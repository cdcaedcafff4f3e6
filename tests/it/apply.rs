//! Applying a document that creates organizations, agents, teams and keys.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Organization, OrganizationDocument, PATIENCE, PROMISED, eventually, shop_saying,
    shop_with_settings,
};

async fn everything() -> Organization {
    OrganizationDocument::new()
        .shop(json!({"welcomeMessage": "first"}))
        .team(
            "front",
            json!({"members": [{"agent": "shop", "specialization": "all"}]}),
        )
        .key("site", &["chat"])
        .apply_to_shared()
        .await
}

#[tokio::test]
async fn response_mirrors_the_document_with_ids() {
    let organization = everything().await;
    assert!(organization.id.starts_with("org_"));
    assert!(organization.shop().starts_with("agt_"));
    assert!(organization.team("front").starts_with("team_"));
    let keys = organization.answer["organizations"][0]["keys"]
        .as_array()
        .unwrap();
    let names: Vec<_> = keys.iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["all", "site"]);
    assert!(
        keys.iter()
            .all(|key| key["id"].as_str().unwrap().starts_with("key_"))
    );
}

#[tokio::test]
async fn second_apply_changes_nothing_and_shows_no_key() {
    let organization = everything().await;
    let again = organization
        .service()
        .admin()
        .post("/api/admin/apply", &organization.document)
        .await;
    again.assert_status(200);
    let mut expected = organization.answer.clone();
    for key in expected["organizations"][0]["keys"].as_array_mut().unwrap() {
        assert!(key.as_object_mut().unwrap().remove("value").is_some());
    }
    assert_eq!(again.json(), expected);
    assert!(!again.text.contains("svc_live_"));
    organization.chat("s", "hi").await.complete();
}

/// Number of documents applied twice at the same time; a missing lock shows in one of a few.
const RACES: usize = 8;

#[tokio::test]
async fn concurrent_applies_create_each_resource_once() {
    let organization = everything().await;
    let service = organization.service();
    for _ in 0..RACES {
        let mut document = organization.document.clone();
        document["organizations"][0]["slug"] = crate::support::unique("race-").into();
        let (one, two) = (service.admin(), service.admin());
        let path = "/api/admin/apply";
        let (one, two) = tokio::join!(one.post(path, &document), two.post(path, &document));
        let (one, two) = (one.json(), two.json());
        let (one, two) = (&one["organizations"][0], &two["organizations"][0]);
        assert_eq!(
            (&one["id"], &one["agents"], &one["teams"]),
            (&two["id"], &two["agents"], &two["teams"])
        );
        for number in 0..2 {
            let shown = [one, two]
                .iter()
                .filter(|answer| answer["keys"][number].get("value").is_some())
                .count();
            assert_eq!(shown, 1, "one key is made and shown once: {one} {two}");
        }
    }
}

#[tokio::test]
async fn resources_missing_from_the_document_stay() {
    let organization = everything().await;
    let slug = &organization.document["organizations"][0]["slug"];
    let partial = json!({"organizations": [{"slug": slug, "name": "Renamed"}]});
    organization
        .service()
        .apply(&partial)
        .await
        .assert_status(200);
    organization.chat("s", "hi").await.complete();
    organization
        .client_with("site")
        .team_chat(organization.team("front"), "s", "hi")
        .await
        .complete();
}

#[tokio::test]
async fn invalid_document_changes_nothing() {
    let organization = everything().await;
    let good = organization.changed_agent("shop", json!({"welcomeMessage": "second"}));
    let mistakes = [
        (
            "agents",
            json!({"slug": "b", "name": "B", "provider": "unknown"}),
            "agents[1].provider",
        ),
        (
            "teams",
            json!({"slug": "t", "name": "T", "members": [{"agent": "unknown", "specialization": ""}]}),
            "teams[1].members[0].agent",
        ),
        (
            "agents",
            json!({"slug": "b", "name": "B", "status": "asleep"}),
            "agents[1].status",
        ),
        (
            "agents",
            json!({"slug": "b", "name": "B", "allowedDomains": ["*.com"]}),
            "agents[1].allowedDomains[0]",
        ),
        (
            "keys",
            json!({"name": "k", "scopes": ["everything"]}),
            "keys[2].scopes[0]",
        ),
    ];
    for (list, mistake, param) in mistakes {
        let mut document = good.clone();
        document["organizations"][0][list]
            .as_array_mut()
            .unwrap()
            .push(mistake);
        let answer = organization.service().apply(&document).await;
        let problem = answer.assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], format!("organizations[0].{param}"));
    }
    let path = organization.path("");
    assert_eq!(
        organization.client().get(&path).await.json()["welcomeMessage"],
        "first"
    );
}

#[tokio::test]
async fn changed_prompt_and_status_are_live_within_two_seconds() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let client = organization.client();
    client.chat(organization.shop(), "s", "hi").await.complete();
    let document = organization.changed_agent("shop", json!({"status": "inactive"}));
    service.apply(&document).await.assert_status(200);
    // Half a second more than promised, as slack for a busy machine.
    let promised = Duration::from_millis(2_500);
    for url in service.public_urls() {
        let client = organization.client_at(&url);
        eventually("the agent is inactive", promised, async || {
            (client.chat(organization.shop(), "s", "hi").await.status == 403).then_some(())
        })
        .await;
    }
    let document =
        organization.changed_agent("shop", json!({"instructions": "Speak like a pirate."}));
    service.apply(&document).await.assert_status(200);
    eventually("the agent is active again", PATIENCE, async || {
        (client.chat(organization.shop(), "s", "hi").await.status == 200).then_some(())
    })
    .await;
    tokio::time::sleep(promised).await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    let requests = organization.requests();
    assert!(
        requests.last().unwrap().messages[0].1.contains("pirate"),
        "{:?}",
        requests.last()
    );
}

#[tokio::test]
async fn every_field_has_a_default_of_its_type() {
    let organization = shop_with_settings(json!({"limits": {}})).await;
    let path = organization.path("");
    let agent = organization.client().get(&path).await.json();
    let theme = agent["theme"].as_object().unwrap();
    assert_eq!(theme.len(), 10);
    assert!(
        theme
            .values()
            .all(|value| value.as_str().is_some_and(|text| !text.is_empty())),
        "{theme:?}"
    );
    assert!(
        agent["features"]
            .as_object()
            .unwrap()
            .values()
            .all(serde_json::Value::is_boolean)
    );
    assert_eq!(
        agent["limits"],
        json!({"maxMessageLength": 4000, "rateLimitPerMinute": 30})
    );
    let widget = organization
        .client()
        .get(&format!("{path}/widget"))
        .await
        .json()["widget"]
        .clone();
    assert!(
        ["bottom-right", "bottom-left", "top-right", "top-left"]
            .contains(&widget["position"].as_str().unwrap())
    );
    assert!(["small", "medium", "large"].contains(&widget["size"].as_str().unwrap()));
    assert!(widget["autoOpenDelay"].is_number());
}

#[tokio::test]
async fn change_is_live_on_every_ingress_within_two_seconds() {
    let settings = json!({"welcomeMessage": "Welcome!"});
    let organization = shop_with_settings(settings).await;
    let service = organization.service();
    let path = organization.path("");
    for url in service.public_urls() {
        assert_eq!(
            organization.client_at(&url).get(&path).await.json()["welcomeMessage"],
            "Welcome!"
        );
    }
    let document = organization.changed_agent("shop", json!({"welcomeMessage": "Changed!"}));
    service.apply(&document).await.assert_status(200);
    let changed = std::time::Instant::now();
    for url in service.public_urls() {
        let client = organization.client_at(&url);
        let patience = PROMISED.saturating_sub(changed.elapsed());
        crate::support::eventually("the change is live", patience, async || {
            (client.get(&path).await.json()["welcomeMessage"] == "Changed!").then_some(())
        })
        .await;
    }
}
