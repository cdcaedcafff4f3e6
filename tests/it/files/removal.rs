//! Files are removed with their conversation, visitor and organization, and when they expire.

use reqwest::Method;
use serde_json::{Value, json};

use super::{chat, download_path, form, gallery, message, send_form, taking_files, upload};
use crate::support::{
    Client, Organization, OrganizationDocument, PATIENCE, Script, TestService, eventually, send,
};

async fn is_gone(client: &Client, file: &Value) {
    let path = download_path(file);
    eventually("the file is gone", PATIENCE, async || {
        (client.get(&path).await.status == 404).then_some(())
    })
    .await;
}

async fn conversation_id(organization: &Organization) -> String {
    let admin = organization.service().admin();
    let path = organization.admin_path("/conversations");
    let list = admin.get(&path).await.json();
    list["items"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn deleted_conversation_takes_its_files_along() {
    let organization = gallery().await;
    let (sent, waiting) = (
        upload(&organization, "sent.txt", b"sent").await,
        upload(&organization, "waiting.txt", b"waiting").await,
    );
    chat(&organization, &message("s", "look", &[&sent]))
        .await
        .complete();
    organization.settled_history("s", 2).await;
    let id = conversation_id(&organization).await;
    let path = organization.admin_path(&format!("/conversations/{id}"));
    let deleted = organization.service().admin().delete(&path).await;
    assert!([202, 204].contains(&deleted.status), "{}", deleted.text);
    is_gone(&organization.client(), &sent).await;
    let kept = organization.client().get(&download_path(&waiting)).await;
    assert_eq!(kept.text, "waiting");
    let again = organization
        .client()
        .post(&organization.path("/chat"), &message("s", "look", &[&sent]))
        .await;
    again.assert_problem(400, Some("INVALID_REQUEST_DATA"));
}

#[tokio::test]
async fn erased_visitor_leaves_no_file() {
    let organization = gallery().await;
    let client = organization.client();
    let token = client
        .post(
            "/api/widget/token",
            &json!({"agentId": organization.shop()}),
        )
        .await;
    token.assert_status(200);
    let token = token.json();
    let visitor = client.with_key(token["token"].as_str().unwrap());
    let mut files = Vec::new();
    for name in ["sent.txt", "waiting.txt"] {
        let form = super::form(name, "text/plain", name.as_bytes(), Some("s"));
        let answer = send_form(&visitor, &organization.path("/files"), form).await;
        answer.assert_status(201);
        files.push(answer.json());
    }
    assert_eq!(
        visitor.get(&download_path(&files[0])).await.text,
        "sent.txt"
    );
    let sent = visitor
        .post(
            &organization.path("/chat"),
            &message("s", "look", &[&files[0]]),
        )
        .await;
    sent.assert_status(200);
    let erasure = json!({"visitorId": token["visitorId"]});
    let admin = organization.service().admin();
    let path = organization.admin_path("/erasures");
    let created = admin.post(&path, &erasure).await;
    created.assert_status(201);
    let proceed = format!("{path}/{}", created.json()["id"].as_str().unwrap());
    eventually("the erasure is finished", PATIENCE, async || {
        let receipt = admin.post(&proceed, &erasure).await.json();
        (receipt["state"] == "finished").then_some(())
    })
    .await;
    for file in &files {
        is_gone(&client, file).await;
    }
}

#[tokio::test]
async fn upload_that_no_message_names_expires() {
    let lifetime = ("SWITCHBOARD__FILES__UPLOAD_LIFETIME_MS", "1500");
    let service = TestService::start_with(&[lifetime]).await;
    let organization = OrganizationDocument::new()
        .shop(taking_files())
        .apply(&service)
        .await;
    organization.script(Script::says("ok"));
    let (sent, waiting) = (
        upload(&organization, "sent.txt", b"sent").await,
        upload(&organization, "waiting.txt", b"waiting").await,
    );
    chat(&organization, &message("s", "look", &[&sent]))
        .await
        .complete();
    let client = organization.client();
    is_gone(&client, &waiting).await;
    let body = message("s", "look", &[&waiting]);
    let request = client
        .request(Method::POST, &organization.path("/chat"))
        .json(&body);
    send(request)
        .await
        .assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(client.get(&download_path(&sent)).await.text, "sent");
}

#[tokio::test]
async fn uploads_that_wait_are_limited() {
    let limit = ("SWITCHBOARD__FILES__WAITING_BYTES_MAX", "20000");
    let service = TestService::start_with(&[limit]).await;
    let taking = || OrganizationDocument::new().shop(taking_files());
    let organization = taking().apply(&service).await;
    let url = service.public_urls()[0].clone();
    let client = organization.client_at(&url);
    let body = || form("a.txt", "text/plain", &[b'x'; 20_000], None);
    let first = send_form(&client, &organization.path("/files"), body()).await;
    first.assert_status(201);
    let second = send_form(&client, &organization.path("/files"), body()).await;
    second.assert_problem(429, Some("RATE_LIMITED"));
    assert_eq!(second.header("retry-after"), Some("10"));
    assert_eq!(second.json()["details"]["bucket"], "waiting_uploads");
    let other = taking().apply(&service).await;
    let path = other.path("/files");
    send_form(&other.client_at(&url), &path, body())
        .await
        .assert_status(201);
}
