//! Processes that are killed during an upload, while a file is attached and while it is deleted.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::{Body, Method};
use serde_json::json;

use super::{BOUNDARY, download_path, form, message, taking_files, upload};
use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Profile, Script, TestService, eventually,
};

async fn service() -> (TestService, Organization) {
    let settings = [
        ("SWITCHBOARD__FILES__UPLOAD_LIFETIME_MS", "86400000"),
        ("SWITCHBOARD__FILES__SWEEP_INTERVAL_MS", "500"),
    ];
    let service = TestService::start_with(&settings).await;
    let organization = OrganizationDocument::new()
        .shop(taking_files())
        .apply(&service)
        .await;
    organization.script(Script::says("ok"));
    (service, organization)
}

fn all_processes(service: &TestService) -> Vec<String> {
    match Profile::from_environment() {
        Profile::Embedded => service.process_names("all"),
        Profile::Cluster => [
            service.process_names("ingress"),
            service.inference_processes(),
        ]
        .concat(),
    }
}

/// Returns the files below the folder of the embedded profile.
fn stored(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                stored(&path)
            } else {
                vec![path.to_string_lossy().into_owned()]
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_upload_leaves_nothing() {
    let (service, organization) = service().await;
    let client = organization.client();
    let whole = form("big.txt", "text/plain", &vec![b'x'; 3_000_000], None);
    let half = Bytes::from(whole[..2_000_000].to_vec());
    let body = stream::iter([Ok::<_, std::io::Error>(half)]).chain(stream::pending());
    let request = client
        .request(Method::POST, &organization.path("/files"))
        .header(
            "content-type",
            format!("multipart/form-data; boundary={BOUNDARY}"),
        )
        .body(Body::wrap_stream(body));
    let kill = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        service.kill_and_restart(&all_processes(&service)).await;
    };
    let (answer, ()) = tokio::join!(request.send(), kill);
    assert!(answer.is_err());
    assert_eq!(stored(&service.data_directory().join("files")), [""; 0]);
    let file = upload(&organization, "small.txt", b"works").await;
    assert_eq!(client.get(&download_path(&file)).await.text, "works");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_attach_and_deletion_lose_and_leave_nothing() {
    let (service, organization) = service().await;
    let client = organization.client();
    for round in 0..4 {
        let session = format!("s{round}");
        let file = upload(&organization, "notes.txt", b"kept").await;
        let mut body = message(&session, "look", &[&file]);
        body["stream"] = false.into();
        // Accepted at once, answered by whoever comes back.
        let accepted = client
            .request(Method::POST, &organization.path("/chat"))
            .header("prefer", "respond-async")
            .json(&body);
        crate::support::send(accepted).await.assert_status(202);
        tokio::time::sleep(Duration::from_millis(15 * round)).await;
        service.kill_and_restart(&all_processes(&service)).await;
        let history = organization.settled_history(&session, 2).await;
        assert_eq!(
            history["messages"][0]["attachments"][0]["fileId"],
            file["fileId"]
        );
        assert_eq!(
            client.get(&download_path(&file)).await.text,
            "kept",
            "round {round}"
        );

        let admin = service.admin();
        let path = organization.admin_path("/conversations");
        let list = admin.get(&path).await.json();
        let path = format!("{path}/{}", list["items"][0]["id"].as_str().unwrap());
        let kill = async {
            tokio::time::sleep(Duration::from_millis(10 * round)).await;
            service.kill_and_restart(&all_processes(&service)).await;
        };
        let (answer, ()) = tokio::join!(admin.try_delete(&path), kill);
        let is_accepted = answer.is_some_and(|answer| answer.status < 300);
        let admin = service.admin();
        if !is_accepted {
            let path = organization.admin_path("/conversations");
            eventually("the conversation is deleted", PATIENCE, async || {
                let list = admin.try_get(&path).await?.json();
                let items = list["items"].as_array()?.clone();
                for item in &items {
                    let id = item["id"].as_str()?;
                    admin.try_delete(&format!("{path}/{id}")).await?;
                }
                items.is_empty().then_some(())
            })
            .await;
        }
        eventually("the file is gone", PATIENCE, async || {
            (client.get(&download_path(&file)).await.status == 404).then_some(())
        })
        .await;
    }
    let left = json!(stored(&service.data_directory().join("files")));
    assert_eq!(left, json!([]));
}
