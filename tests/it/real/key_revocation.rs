//! Deletion of an API key while Redis is away.

use serde_json::json;

use super::{own_services::OwnRedis, start_cluster};
use crate::support::{Client, OrganizationDocument, PROMISED, eventually};

#[tokio::test]
async fn deleted_key_is_refused_everywhere_without_redis() {
    let redis = OwnRedis::start();
    let service = start_cluster(&[("SWITCHBOARD__REDIS__URL", &redis.url())]).await;
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply(&service)
        .await;
    let admin = service.admin();
    let created = admin
        .post(
            &organization.admin_path("/keys"),
            &json!({"name": "short-lived"}),
        )
        .await;
    created.assert_status(201);
    let created = created.json();
    let value = created["value"].as_str().unwrap();
    let clients: Vec<Client> = service
        .public_urls()
        .iter()
        .map(|url| Client::new(url).with_key(value))
        .collect();
    let agent_path = organization.path("");
    for client in &clients {
        assert_eq!(client.get(&agent_path).await.status, 200);
    }
    redis.kill();
    let key = format!("/keys/{}", created["id"].as_str().unwrap());
    let deleted = admin.delete(&organization.admin_path(&key)).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    for client in &clients {
        eventually("the key is refused", PROMISED, async || {
            (client.get(&agent_path).await.json()["code"] == "INVALID_API_KEY").then_some(())
        })
        .await;
    }
}
