//! Files in messages, histories, exports and downloads.

use serde_json::{Value, json};

use super::{chat, download_path, form, gallery, message, png, send_form, taking_files, upload};
use crate::support::{OrganizationDocument, Script};

#[tokio::test]
async fn message_of_a_file_alone_is_answered_and_kept() {
    let organization = gallery().await;
    let file = upload(&organization, "notes.txt", "Grüße".as_bytes()).await;
    assert_eq!(
        (&file["name"], &file["mimeType"], &file["bytes"]),
        (&json!("notes.txt"), &json!("text/plain"), &json!(7))
    );
    assert!(file["expiresAt"].is_string(), "{file}");
    chat(&organization, &message("s", "", &[&file]))
        .await
        .complete();
    let mut kept = file.clone();
    kept.as_object_mut().unwrap().remove("expiresAt");
    let history = organization.settled_history("s", 2).await;
    assert_eq!(history["messages"][0]["content"], "");
    assert_eq!(history["messages"][0]["attachments"], json!([kept]));
    assert_eq!(history["messages"][1].get("attachments"), None);

    let content = organization.client().get(&download_path(&file)).await;
    assert_eq!((content.status, content.text.as_str()), (200, "Grüße"));
    let admin = organization.service().admin();
    let path = format!("/files/{}", file["fileId"].as_str().unwrap());
    let shown = admin.get(&organization.admin_path(&path)).await;
    assert_eq!((shown.status, shown.text.as_str()), (200, "Grüße"));
    let list = admin
        .get(&organization.admin_path("/conversations"))
        .await
        .json();
    assert_eq!(list["items"][0]["excerpt"], "notes.txt");
    let export = organization.admin_path("/conversations/export?format=");
    for format in ["csv", "jsonl"] {
        let exported = admin.get(&format!("{export}{format}")).await;
        assert!(exported.text.contains("notes.txt"), "{}", exported.text);
    }
}

#[tokio::test]
async fn same_file_is_sent_again_only_in_its_conversation() {
    let organization = gallery().await;
    let file = upload(&organization, "notes.txt", b"text").await;
    for _ in 0..2 {
        chat(&organization, &message("s", "look", &[&file]))
            .await
            .complete();
    }
    let path = organization.path("/chat");
    let refused = organization
        .client()
        .post(&path, &message("t", "look", &[&file]))
        .await;
    let problem = refused.assert_problem(400, Some("INVALID_REQUEST_DATA"));
    assert_eq!(problem["param"], "attachments[0].fileId");
}

#[tokio::test]
async fn one_of_two_simultaneous_messages_gets_a_file() {
    let organization = gallery().await;
    let file = upload(&organization, "notes.txt", b"text").await;
    let (client, path) = (organization.client(), organization.path("/chat"));
    let bodies: Vec<_> = (0..4)
        .map(|number| message(&format!("s{number}"), "look", &[&file]))
        .collect();
    let sent = bodies.iter().map(|body| client.post(&path, body));
    let answers = futures::future::join_all(sent).await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400]);
}

#[tokio::test]
async fn file_of_another_agent_team_or_organization_is_unknown() {
    let organization = OrganizationDocument::new()
        .shop(taking_files())
        .agent("other", taking_files())
        .agent("closed", json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": [{"agent": "shop"}, {"agent": "closed"}]}),
        )
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    let rival = gallery().await;
    let own = upload(&organization, "a.txt", b"own").await;
    let of_rival = upload(&rival, "a.txt", b"foreign").await;
    let client = organization.client();
    let team_files = organization.team_path().replace("/chat", "/files");
    let of_team = send_form(
        &client,
        &team_files,
        form("a.txt", "text/plain", b"t", None),
    )
    .await;
    of_team.assert_status(201);
    let of_team = of_team.json();
    let other = format!("/api/public/agents/{}/chat", organization.agent("other"));
    for (path, file) in [
        (organization.path("/chat"), &of_rival),
        (organization.path("/chat"), &of_team),
        (other, &own),
        (organization.team_path(), &own),
    ] {
        let answer = client.post(&path, &message("s", "look", &[file])).await;
        assert_eq!(
            (answer.status, &answer.json()["param"]),
            (400, &json!("attachments[0].fileId"))
        );
    }
    // The second member takes no files and answers all the same.
    for _ in 0..2 {
        let reply = organization
            .team_reply(message("s", "look", &[&of_team]))
            .await;
        reply.complete();
    }
    let closed = format!("/api/public/agents/{}/files", organization.agent("closed"));
    let refused = send_form(&client, &closed, form("a.txt", "text/plain", b"t", None)).await;
    refused.assert_problem(403, Some("INSUFFICIENT_SCOPE"));
    assert_eq!(rival.client().get(&download_path(&own)).await.status, 404);
}

#[tokio::test]
async fn retry_with_other_files_is_another_request() {
    let organization = gallery().await;
    let (one, two) = (
        upload(&organization, "1.txt", b"one").await,
        upload(&organization, "2.txt", b"two").await,
    );
    let send = async |body: Value| {
        let request = organization
            .client()
            .request(reqwest::Method::POST, &organization.path("/chat"))
            .header("idempotency-key", "k")
            .json(&body);
        crate::support::send(request).await
    };
    let first = send(message("s", "look", &[&one])).await;
    let again = send(message("s", "look", &[&one])).await;
    assert_eq!(
        (first.status, again.status, &first.text),
        (200, 200, &again.text)
    );
    send(message("s", "look", &[&two]))
        .await
        .assert_problem(422, Some("IDEMPOTENCY_KEY_REUSED"));
    let history = organization.settled_history("s", 2).await;
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn json_reply_names_the_files_of_its_message() {
    let organization = gallery().await;
    let file = upload(&organization, "photo.png", &png(2, 2)).await;
    let mut body = message("s", "look", &[&file]);
    body["stream"] = false.into();
    let answer = organization
        .client()
        .post(&organization.path("/chat"), &body)
        .await;
    answer.assert_status(200);
    assert_eq!(answer.json()["attachments"][0]["fileId"], file["fileId"]);
}
