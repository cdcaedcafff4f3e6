//! Deletion of organizations, their receipts, and the ids of their successors.

use serde_json::{Value, json};
use switchboard_backends::{
    catalog::{CatalogEntryStore, EntryKind},
    testing::Fault,
};
use switchboard_schemas::ids::{AgentId, OrgId};

use super::{admin, of};
use crate::testing::{World, org_id, secret};

async fn create(world: &World) -> String {
    let organization = json!({ "slug": "acme-2", "name": "Acme" });
    let created = admin(world, "POST", "", organization).await;
    created.expect(201)["id"].as_str().unwrap().to_owned()
}

async fn delete(world: &World, id: &str) -> String {
    let deleted = admin(world, "DELETE", &format!("/{id}"), Value::Null).await;
    assert_eq!(deleted.status, 204);
    deleted.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn used_slug_is_another_organization() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = create(&world).await;
        assert!(!ids.contains(&id), "{ids:?}");
        // The same id for everybody, also for documents.
        let document = json!({ "organizations": [{ "slug": "acme-2", "name": "Acme" }] });
        let applied = world.admin("POST", "/api/admin/apply", &[], document).await;
        assert_eq!(applied.expect(200)["organizations"][0]["id"], *id);
        let renamed = json!({ "slug": "acme-2", "name": "Renamed" });
        let put = admin(&world, "PUT", &format!("/{id}"), renamed).await;
        put.expect(200);
        delete(&world, &id).await;
        ids.push(id);
    }
    assert_eq!(ids[0], OrgId::derive(&secret(), "acme-2").as_str());
}

/// Older versions removed the organization from the catalog and nothing else.
#[tokio::test]
async fn slug_that_an_older_version_freed_is_another_organization() {
    let world = World::new().await;
    let old = create(&world).await;
    let old_id: OrgId = old.parse().unwrap();
    world
        .catalog
        .remove(EntryKind::Organization, &old_id, &old)
        .await
        .unwrap();
    let document = json!({ "organizations": [{ "slug": "acme-2", "name": "Acme" }] });
    let apply = async |path: &str| {
        let applied = world.admin("POST", path, &[], document.clone()).await;
        applied.expect(200)
    };
    let removals = async || {
        let list = world.admin("GET", "/api/admin/removals", &[], Value::Null);
        list.await.expect(200)["items"].clone()
    };
    apply("/api/admin/apply/plan").await;
    assert_eq!(removals().await, json!([]));
    let new = apply("/api/admin/apply").await["organizations"][0]["id"].clone();
    assert_ne!(new, old);
    assert_eq!(removals().await[0]["organizationId"], old);
    assert_eq!(removals().await[0]["requestId"], Value::Null);
    assert_eq!(
        apply("/api/admin/apply").await["organizations"][0]["id"],
        new
    );
    delete(&world, new.as_str().unwrap()).await;
    assert_ne!(create(&world).await, new);
    assert_eq!(removals().await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn existing_ids_stay() {
    let world = World::new().await;
    assert_eq!(org_id(), OrgId::derive(&secret(), "acme"));
    let agents = admin(&world, "GET", &of("/agents"), Value::Null).await;
    let id = AgentId::derive(&secret(), &org_id(), "shop");
    assert_eq!(agents.expect(200)["items"][0]["id"], id.as_str());
}

#[tokio::test]
async fn deletion_that_is_repeated_after_a_crash_keeps_its_receipt() {
    let world = World::new().await;
    let id = create(&world).await;
    world.catalog.faults.inject("remove", Fault::Refuse);
    let failed = admin(&world, "DELETE", &format!("/{id}"), Value::Null).await;
    assert_eq!(failed.status, 503);
    let path = format!("/api/admin/removals/{id}");
    let begun = world
        .admin("GET", &path, &[], Value::Null)
        .await
        .expect(200);
    assert_eq!(
        (&begun["organizationId"], &begun["state"]),
        (&json!(id), &json!("waiting"))
    );
    world.catalog.faults.clear("remove");
    assert_eq!(delete(&world, &id).await, path);
    let again = world.admin("GET", &path, &[], Value::Null).await;
    assert_eq!(again.expect(200), begun);
    assert!(begun["requestId"].as_str().unwrap().starts_with("req_"));
    let list = world
        .admin("GET", "/api/admin/removals", &[], Value::Null)
        .await;
    assert_eq!(list.expect(200)["items"], json!([begun]));
    let unknown = format!("/api/admin/removals/{}", org_id());
    let unknown = world.admin("GET", &unknown, &[], Value::Null).await;
    assert_eq!(unknown.problem(), (404, "NOT_FOUND".to_owned()));
}
