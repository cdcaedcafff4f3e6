//! Organizations, agents, teams and providers through the admin API: changes are live on every
//! ingress and stay within their organization.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    ADMIN_TOKEN, Client, OrganizationDocument, PROMISED, Script, ScriptedModel, SharedService,
    eventually, shop_saying, unique,
};

async fn create(admin: &Client, path: &str, thing: Value) -> Value {
    let answer = admin.post(path, &thing).await;
    answer.assert_status(201);
    answer.json()
}

#[tokio::test]
async fn organization_created_step_by_step_answers_visitors() {
    let service = SharedService::get().await;
    let (admin, model) = (service.admin(), unique("model-"));
    ScriptedModel::get().register(&model, Script::says("made by hand"));
    let organization = create(
        &admin,
        "/api/admin/organizations",
        json!({"slug": unique("org-"), "name": "Hand"}),
    )
    .await;
    let base = format!(
        "/api/admin/organizations/{}",
        organization["id"].as_str().unwrap()
    );
    let provider = json!({"slug": "main", "baseUrl": ScriptedModel::get().base_url(), "apiKey": "sk-x", "model": model});
    create(&admin, &format!("{base}/providers"), provider).await;
    let agent = json!({"slug": "shop", "name": "Shop", "provider": "main"});
    let agent = create(&admin, &format!("{base}/agents"), agent).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let team = json!({"slug": "front", "name": "Front", "members": [{"agent": "shop", "specialization": "all"}]});
    let team = create(&admin, &format!("{base}/teams"), team).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = create(
        &admin,
        &format!("{base}/keys"),
        json!({"name": "site", "scopes": ["chat"]}),
    )
    .await;
    let client = service.client().with_key(key["value"].as_str().unwrap());
    assert_eq!(
        client.chat(&agent, "s", "hi").await.complete(),
        "made by hand"
    );
    assert_eq!(
        client.team_chat(&team, "s", "hi").await.complete(),
        "made by hand"
    );
}

#[tokio::test]
async fn change_is_live_on_every_ingress_within_two_seconds() {
    let organization = shop_saying("ok").await;
    let urls = organization.service().public_urls();
    let config = organization.path("");
    for url in &urls {
        assert_eq!(organization.client_at(url).get(&config).await.status, 200);
    }
    let admin = Client::new(&urls[0]).with_key(ADMIN_TOKEN);
    let agent = organization.admin_path(&format!("/agents/{}", organization.shop()));
    let answer = admin
        .patch(&agent, &json!({"welcomeMessage": "changed"}))
        .await;
    answer.assert_status(200);
    for url in urls.iter().rev() {
        let client = organization.client_at(url);
        eventually("the new greeting is there", PROMISED, async || {
            (client.get(&config).await.json()["welcomeMessage"] == "changed").then_some(())
        })
        .await;
    }
    assert_eq!(admin.delete(&agent).await.status, 204);
    for url in urls.iter().rev() {
        let client = organization.client_at(url);
        eventually("the agent is gone", PROMISED, async || {
            let answer = client.get(&config).await;
            (answer.status == 404).then(|| answer.assert_problem(404, Some("AGENT_NOT_FOUND")))
        })
        .await;
    }
}

#[tokio::test]
async fn ids_of_another_organization_are_unknown_and_unchanged() {
    let service = SharedService::get().await;
    let theirs = OrganizationDocument::new()
        .shop(json!({"instructions": "canary-prompt"}))
        .team("front", json!({"members": [{"agent": "shop"}]}))
        .apply_to_shared()
        .await;
    let ours = OrganizationDocument::new().apply_to_shared().await;
    let (admin, key) = (
        service.admin(),
        theirs.answer["organizations"][0]["keys"][0]["id"]
            .as_str()
            .unwrap(),
    );
    let provider = theirs.answer["organizations"][0]["providers"][0]["id"]
        .as_str()
        .unwrap();
    for path in [
        format!("/agents/{}", theirs.shop()),
        format!("/teams/{}", theirs.team("front")),
        format!("/keys/{key}"),
        format!("/providers/{provider}"),
    ] {
        let path = ours.admin_path(&path);
        let name = json!({"name": "Taken", "slug": "shop"});
        for answer in [
            admin.get(&path).await,
            admin.patch(&path, &name).await,
            admin.put(&path, &name).await,
            admin.delete(&path).await,
        ] {
            answer.assert_problem(404, Some("NOT_FOUND"));
            assert!(!answer.text.contains("canary"));
        }
    }
    let rotate = ours.admin_path(&format!("/keys/{key}/rotate"));
    let rotated = admin.post(&rotate, &json!({})).await;
    rotated.assert_problem(404, Some("NOT_FOUND"));
    let team = theirs.admin_path(&format!("/teams/{}", theirs.shop()));
    let of_another_kind = admin.get(&team).await;
    of_another_kind.assert_problem(404, Some("NOT_FOUND"));
    for list in ["agents", "teams", "keys", "providers"] {
        let answer = admin.get(&ours.admin_path(&format!("/{list}"))).await;
        assert_eq!(answer.status, 200);
        assert!(
            !answer.text.contains(&theirs.id) && !answer.text.contains("canary"),
            "{}",
            answer.text
        );
    }
    assert_eq!(
        admin
            .get(&theirs.admin_path(&format!("/agents/{}", theirs.shop())))
            .await
            .json()["name"],
        "Agent shop"
    );
}

#[tokio::test]
async fn simultaneous_creations_of_one_slug_create_one() {
    let organization = shop_saying("ok").await;
    let path = organization.admin_path("/agents");
    for round in 0..5 {
        // Each client talks to another ingress.
        let create = async || {
            let admin = organization.service().admin();
            let twin = json!({"slug": format!("twin-{round}"), "name": "Twin"});
            admin.post(&path, &twin).await
        };
        let (one, two) = tokio::join!(create(), create());
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{} {}", one.text, two.text);
    }
    let again = organization.document["organizations"][0]["slug"].clone();
    let again = json!({"slug": again, "name": "Again"});
    let admin = organization.service().admin();
    let refused = admin.post("/api/admin/organizations", &again).await;
    refused.assert_problem(409, Some("CONFLICT"));
}

#[tokio::test]
async fn concurrent_edits_of_one_version_conflict() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    for round in 0..5 {
        let (one, two) = (service.admin(), service.admin());
        let etag = one.get(&path).await.header("etag").unwrap().to_owned();
        let patch = |admin: &Client, name: String| {
            let request = admin
                .request(Method::PATCH, &path)
                .header("if-match", &etag);
            request.json(&json!({"name": name})).send()
        };
        let (one, two) = tokio::join!(
            patch(&one, format!("One {round}")),
            patch(&two, format!("Two {round}"))
        );
        let mut statuses = [
            one.unwrap().status().as_u16(),
            two.unwrap().status().as_u16(),
        ];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
}

#[tokio::test]
async fn simultaneous_patches_of_different_fields_are_all_kept() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    let fields = [
        "description",
        "instructions",
        "welcomeMessage",
        "placeholderText",
    ];
    let patches = fields.map(|field| {
        let (admin, path) = (service.admin(), path.clone());
        async move { admin.patch(&path, &json!({field: "changed"})).await.status }
    });
    assert_eq!(futures::future::join_all(patches).await, [200; 4]);
    let agent = service.admin().get(&path).await.json();
    assert!(
        fields.iter().all(|field| agent[*field] == "changed"),
        "{agent}"
    );
}

#[tokio::test]
async fn referenced_resources_cannot_be_deleted() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("front", json!({"members": [{"agent": "shop"}]}))
        .apply_to_shared()
        .await;
    let admin = organization.service().admin();
    let ids = &organization.answer["organizations"][0];
    let path = |list: &str| {
        organization.admin_path(&format!("/{list}/{}", ids[list][0]["id"].as_str().unwrap()))
    };
    let refused = admin
        .delete(&path("agents"))
        .await
        .assert_problem(409, Some("CONFLICT"));
    let team = json!({"kind": "team", "id": organization.team("front"), "slug": "front"});
    assert_eq!(refused["details"], json!({"usedBy": [team], "total": 1}));
    let refused = admin
        .delete(&path("providers"))
        .await
        .assert_problem(409, Some("CONFLICT"));
    assert_eq!(refused["details"]["usedBy"][0]["slug"], "shop");
    admin
        .delete(&organization.admin_path(""))
        .await
        .assert_problem(409, Some("CONFLICT"));
    for list in ["teams", "agents", "providers", "keys"] {
        let answer = admin.delete(&path(list)).await;
        assert_eq!(answer.status, 204, "{list}: {}", answer.text);
    }
    assert_eq!(admin.delete(&organization.admin_path("")).await.status, 204);
    admin
        .get(&organization.admin_path(""))
        .await
        .assert_problem(404, Some("NOT_FOUND"));
}
