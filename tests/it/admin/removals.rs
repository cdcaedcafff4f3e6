//! Removal of organizations: everything is erased, and a slug that is used again is another
//! organization.

use std::path::{Path, PathBuf};

use futures::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, PROMISED, Profile, Script, TestService,
    eventually, send, service_address,
};

/// Conversations of the organization that is removed, more than are counted in one step; fewer in a
/// cluster, where they take minutes.
fn conversations() -> usize {
    match Profile::from_environment() {
        Profile::Embedded => 10_000,
        Profile::Cluster => 2_000,
    }
}

/// Chats that are sent at the same time.
const AT_ONCE: usize = 64;
/// A word in every text of the organization.
const WORD: &str = "qzebrafish";
/// Makes workers erase as soon as nothing is running.
const DELAY: (&str, &str) = ("SWITCHBOARD__WORKERS__REMOVAL_DELAY_MS", "1000");

fn document() -> OrganizationDocument {
    let member = json!({"agent": "shop", "specialization": format!("{WORD} questions")});
    let files = json!({"enableFileUpload": true});
    OrganizationDocument::new()
        .shop(json!({"instructions": WORD, "features": files}))
        .team("front", json!({"routing": "intent", "members": [member]}))
}

/// Deletes everything that an organization must not have when it is deleted, and then itself.
/// Returns the path of the receipt.
async fn remove(admin: &Client, organization: &Organization) -> String {
    for collection in ["keys", "teams", "agents", "providers"] {
        let path = organization.admin_path(&format!("/{collection}"));
        let list = admin.get(&path).await.json();
        for item in list["items"].as_array().unwrap() {
            let path = format!("{path}/{}", item["id"].as_str().unwrap());
            admin.delete(&path).await.assert_status(204);
        }
    }
    let deleted = admin.delete(&organization.admin_path("")).await;
    deleted.assert_status(204);
    deleted.header("location").unwrap().to_owned()
}

/// Waits until the receipt is in one of these states.
async fn receipt_in(admin: &Client, path: &str, states: &[&str]) -> Value {
    eventually("the removal goes on", 4 * PATIENCE, async || {
        let receipt = admin.try_get(path).await?.json();
        let is_there = states.iter().any(|state| receipt["state"] == *state);
        is_there.then_some(receipt)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_removal_of_many_conversations_leaves_no_word() {
    let service = TestService::start_with(&[DELAY]).await;
    let organization = document().apply(&service).await;
    organization.script(Script::says(WORD));
    let admin = service.admin();
    fill(&service, &organization).await;
    let path = remove(&admin, &organization).await;
    let id = path.rsplit('/').next().unwrap();

    let counting = receipt_in(&admin, &path, &["counting", "erasing", "finished"]).await;
    service.kill_and_restart(&workers(&service)).await;
    receipt_in(&admin, &path, &["erasing", "finished"]).await;
    service.kill_and_restart(&workers(&service)).await;
    let admin = service.admin();
    let receipt = receipt_in(&admin, &path, &["finished"]).await;
    // The conversations of `fill`, with one of the team.
    let conversations = conversations() + 1;
    assert_eq!(
        (&receipt["conversations"], &receipt["messages"]),
        (&json!(conversations), &json!(2 * conversations)),
        "first seen: {counting}"
    );
    assert_eq!(receipt["organizationId"], id);
    assert!(receipt["finishedAt"].is_string() && !receipt.to_string().contains(WORD));
    assert_eq!(places_of(&service, WORD).await, [""; 0]);
    // What is left of it is the receipt, and its id in lists of deleted entries.
    let list = admin.get("/api/admin/removals").await.json();
    assert_eq!(list["items"], json!([receipt]));
}

/// Gives an organization conversations, products, a visitor, a file, an account and a receipt.
async fn fill(service: &TestService, organization: &Organization) {
    let (client, admin) = (organization.client(), service.admin());
    let path = organization.path("/chat");
    let chats = stream::iter(0..conversations()).map(|number| {
        let body = json!({"message": WORD, "sessionId": format!("{WORD}-{number}"), "stream": false,
            "visitorEmail": format!("{WORD}@example.org")});
        let (client, path) = (&client, &path);
        async move { client.post(path, &body).await.assert_status(200) }
    });
    chats.buffer_unordered(AT_ONCE).collect::<()>().await;
    let question = format!("{WORD} questions");
    organization.team_chat(WORD, &question).await.complete();
    let products = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    let products = admin.request(Method::PUT, &products);
    let products = products.header("content-type", "text/csv");
    let uploaded = send(products.body(format!("name,price\n{WORD},3\n"))).await;
    uploaded.assert_status(200);
    let user = json!({"email": format!("{WORD}@example.com"), "name": WORD, "role": "owner"});
    let users = organization.admin_path("/users");
    admin.post(&users, &user).await.assert_status(201);
    let erased = json!({"visitorId": "nobody"});
    let erasures = organization.admin_path("/erasures");
    admin.post(&erasures, &erased).await.assert_status(201);
    let rating = json!({"metadata": {"rating": 5, "feedback": WORD}});
    let conversation = organization.path(&format!("/conversations/{WORD}-1"));
    client
        .patch(&conversation, &rating)
        .await
        .assert_status(200);
}

fn workers(service: &TestService) -> Vec<String> {
    match Profile::from_environment() {
        Profile::Embedded => service.process_names("all"),
        Profile::Cluster => service.inference_processes(),
    }
}

/// Returns the files and tables of an installation that contain a text.
async fn places_of(service: &TestService, text: &str) -> Vec<String> {
    match Profile::from_environment() {
        Profile::Embedded => files_with(&service.data_directory(), text)
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        Profile::Cluster => tables_with(&service.namespace, text).await,
    }
}

/// Returns the files below `directory` that contain `text`.
pub(super) fn files_with(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        // Files of other tests come and go.
        let bytes = std::fs::read(&path).unwrap_or_default();
        if bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

/// Returns the tables of a namespace that contain `text`, also within binary columns.
async fn tables_with(namespace: &str, text: &str) -> Vec<String> {
    let nodes = service_address("SWITCHBOARD_TEST_SCYLLA");
    let builder = scylla::client::session_builder::SessionBuilder::new();
    let session = builder.known_node(nodes).build().await.unwrap();
    let keyspace = namespace.replace(['-', '.'], "_");
    let select = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    let tables = session.query_unpaged(select, (&keyspace,)).await.unwrap();
    let tables = tables.into_rows_result().unwrap();
    let tables = tables.rows::<(String,)>().unwrap();
    let tables: Vec<_> = tables.map(|row| row.unwrap().0).collect();
    assert!(tables.len() > 15, "{keyspace}: {tables:?}");
    let binary: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut found = Vec::new();
    for table in tables {
        let select = format!("SELECT JSON * FROM {keyspace}.{table}");
        let rows = session.query_iter(select, ()).await.unwrap();
        let mut rows = rows.rows_stream::<(String,)>().unwrap();
        while let Some(row) = rows.next().await {
            let (row,) = row.unwrap();
            if row.contains(text) || row.contains(&binary) {
                found.push(format!("{table}: {row}"));
                break;
            }
        }
    }
    found
}

#[tokio::test]
async fn new_organization_of_a_used_slug_sees_nothing_of_the_old() {
    let service = TestService::start_with(&[]).await;
    let old = document().apply(&service).await;
    old.script(Script::says("ok"));
    old.chat("s", "old text").await.complete();
    let (admin, old_path) = (service.admin(), old.admin_path(""));
    let begun = remove(&admin, &old).await;
    let receipt = admin.get(&begun).await.json();
    assert_eq!(receipt["state"], "waiting");
    eventually("the old key ends", PROMISED, async || {
        let read = old.client().get(&old.path("/conversations/s")).await;
        (read.status == 401).then_some(())
    })
    .await;

    let new = document().named_like(&old).apply(&service).await;
    new.script(Script::says("ok"));
    assert_ne!(new.admin_path(""), old_path);
    assert_ne!(new.shop(), old.shop());
    for list in ["conversations", "leads", "erasures", "audit", "users"] {
        let listed = admin.get(&new.admin_path(&format!("/{list}"))).await.json();
        let items = listed["items"].as_array().unwrap();
        let own = ["organization", "provider", "agent", "team", "key"];
        let is_own = |item: &Value| own.iter().any(|kind| item["kind"] == *kind);
        assert!(items.iter().all(is_own), "{list}: {items:?}");
    }
    let export = new.admin_path("/conversations/export?format=jsonl");
    assert_eq!(admin.get(&export).await.text, "");
    new.client()
        .get(&new.path("/conversations/s"))
        .await
        .assert_status(404);
    new.chat("s", "new text").await.complete();
    let history = new.settled_history("s", 2).await;
    assert_eq!(history["messages"][0]["content"], "new text");
    // Applying the document again changes the new organization.
    let same = document().named_like(&old).apply(&service).await;
    assert_eq!(same.admin_path(""), new.admin_path(""));
}

#[tokio::test]
async fn reply_that_runs_during_a_removal_leaves_nothing() {
    let service =
        TestService::start_with(&[("SWITCHBOARD__WORKERS__REMOVAL_DELAY_MS", "4000")]).await;
    let organization = document().apply(&service).await;
    organization.script(Script::counts(30, std::time::Duration::from_millis(50)));
    let body = json!({"message": WORD, "sessionId": "s"});
    let open = organization.open_chat(&body).await;
    let admin = service.admin();
    let path = remove(&admin, &organization).await;
    let reply = crate::support::Reply::read(open).await;
    reply.complete();
    let receipt = receipt_in(&admin, &path, &["finished"]).await;
    assert_eq!(receipt["conversations"], 1);
    assert_eq!(places_of(&service, WORD).await, [""; 0]);
}
