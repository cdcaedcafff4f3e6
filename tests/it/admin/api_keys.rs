//! API keys through the admin API: creation, restrictions, rotation, deletion and last use on every
//! ingress.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Organization, PATIENCE, PROMISED, eventually, shop_saying};

/// Number of keys created twice at the same time; a missing lock shows in one of a few.
const RACES: usize = 8;

async fn create_key(organization: &Organization, admin: &Client, key: Value) -> (String, String) {
    let answer = admin.post(&organization.admin_path("/keys"), &key).await;
    answer.assert_status(201);
    let key = answer.json();
    (
        key["id"].as_str().unwrap().to_owned(),
        key["value"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn key_name_is_unique_until_the_key_is_deleted() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let (one, two) = (service.admin(), service.admin());
    let path = organization.admin_path("/keys");
    for number in 0..RACES {
        let key = json!({"name": format!("key {number}")});
        let (first, second) = tokio::join!(one.post(&path, &key), two.post(&path, &key));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{} {}", first.text, second.text);
    }
    let (id, _) = create_key(&organization, &one, json!({"name": "again"})).await;
    assert_eq!(
        one.request(Method::DELETE, &format!("{path}/{id}"))
            .send()
            .await
            .unwrap()
            .status(),
        204
    );
    create_key(&organization, &two, json!({"name": "again"})).await;
}

#[tokio::test]
async fn key_value_is_shown_once_and_its_restrictions_hold() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let admin = service.admin();
    let limits =
        json!({"chatPerMinute": null, "configPerMinute": 2, "conversationsPerMinute": null});
    let key = json!({"name": "narrow", "scopes": ["config"], "limits": limits});
    let (id, value) = create_key(&organization, &admin, key).await;
    let client = service.client().with_key(&value);
    let config = organization.path("");
    client
        .get(&format!("{config}/conversations/s"))
        .await
        .assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    assert_eq!(
        [
            client.get(&config).await.status,
            client.get(&config).await.status
        ],
        [200; 2]
    );
    client
        .get(&config)
        .await
        .assert_problem(429, Some("RATE_LIMITED"));
    let (one, all) = (
        admin
            .get(&organization.admin_path(&format!("/keys/{id}")))
            .await,
        admin.get(&organization.admin_path("/keys")).await,
    );
    assert_eq!(
        one.json()["lastFour"].as_str().unwrap(),
        &value[value.len() - 4..]
    );
    assert!(
        !one.text.contains(&value) && !all.text.contains("svc_live_"),
        "{}",
        all.text
    );
    let patched = admin
        .patch(
            &organization.admin_path(&format!("/keys/{id}")),
            &json!({"expiresAt": "2020-01-01T00:00:00Z"}),
        )
        .await;
    patched.assert_status(200);
    for url in service.public_urls() {
        let client = Client::new(&url).with_key(&value);
        eventually("the key has expired", PROMISED, async || {
            (client.get(&config).await.json()["code"] == "EXPIRED_API_KEY").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn rotated_key_works_beside_its_successor() {
    let limits =
        json!({"chatPerMinute": 7, "configPerMinute": null, "conversationsPerMinute": null});
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let admin = service.admin();
    let (id, old) = create_key(
        &organization,
        &admin,
        json!({"name": "site", "scopes": ["config"], "limits": limits}),
    )
    .await;
    let path = organization.admin_path(&format!("/keys/{id}"));
    let answer = admin
        .post(&format!("{path}/rotate"), &json!({"overlapSeconds": 600}))
        .await;
    answer.assert_status(201);
    let new = answer.json();
    let config = organization.path("");
    for url in service.public_urls() {
        for key in [&old, new["value"].as_str().unwrap()] {
            assert_eq!(
                Client::new(&url).with_key(key).get(&config).await.status,
                200
            );
        }
    }
    assert!(
        admin.get(&path).await.json()["expiresAt"].is_string(),
        "the old one ends"
    );
    assert_eq!(
        (&new["expiresAt"], &new["scopes"], &new["limits"]),
        (&Value::Null, &json!(["config"]), &limits)
    );
    assert_eq!(
        (&new["name"], &new["replaces"]["id"]),
        (&json!("site"), &json!(id))
    );
}

#[tokio::test]
async fn last_use_is_reported_without_changing_the_key_version() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let admin = service.admin();
    let (id, value) = create_key(&organization, &admin, json!({"name": "watched"})).await;
    let path = organization.admin_path(&format!("/keys/{id}"));
    let unused = admin.get(&path).await.json();
    assert_eq!(unused["lastUsedAt"], Value::Null);
    let config = organization.path("");
    assert_eq!(
        service.client().with_key(&value).get(&config).await.status,
        200
    );
    let used = eventually("the use is noted", PATIENCE, async || {
        let key = admin.get(&path).await.json();
        key["lastUsedAt"].is_string().then_some(key)
    })
    .await;
    assert!(
        used["lastUsedAt"].as_str().unwrap() > used["createdAt"].as_str().unwrap(),
        "{used}"
    );
    assert_eq!(used["version"], unused["version"]);
    let all = admin.get(&organization.admin_path("/keys")).await.json();
    let listed = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["id"] == id.as_str())
        .unwrap();
    assert_eq!(listed["lastUsedAt"], used["lastUsedAt"]);
    // A resource can be sent back exactly as it was read.
    let written = admin.put(&path, &unused).await;
    written.assert_status(200);
}
