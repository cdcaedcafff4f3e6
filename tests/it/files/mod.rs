//! Files of messages: uploads, their way to the model, downloads and removal.

mod conversations;
mod crashes;
mod memory;
mod models;
mod removal;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Organization, OrganizationDocument, Reply, Script, send};

const BOUNDARY: &str = "a-boundary-of-forms";

/// Returns a form with one file, after a session if there is one.
fn form(name: &str, kind: &str, content: &[u8], session: Option<&str>) -> Vec<u8> {
    let mut form = Vec::new();
    if let Some(session) = session {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"sessionId\"\r\n\r\n{session}\r\n"
        );
        form.extend(part.into_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: {kind}\r\n\r\n"
    );
    form.extend(head.into_bytes());
    form.extend(content);
    form.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
    form
}

async fn send_form(client: &Client, path: &str, form: impl Into<reqwest::Body>) -> Answer {
    let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let request = client.request(Method::POST, path);
    send(request.header("content-type", media_type).body(form)).await
}

/// Uploads a text for the agent named `shop` and returns the answer of 201.
async fn upload(organization: &Organization, name: &str, content: &[u8]) -> Value {
    let form = form(name, "application/octet-stream", content, None);
    let answer = send_form(&organization.client(), &organization.path("/files"), form).await;
    answer.assert_status(201);
    answer.json()
}

fn download_path(file: &Value) -> String {
    format!("/api/public/files/{}", file["fileId"].as_str().unwrap())
}

fn message(session: &str, text: &str, files: &[&Value]) -> Value {
    let attachments = files.iter().map(|file| json!({"fileId": file["fileId"]}));
    json!({"message": text, "sessionId": session, "attachments": attachments.collect::<Vec<_>>()})
}

async fn chat(organization: &Organization, body: &Value) -> Reply {
    Reply::read(organization.open_chat(body).await).await
}

fn taking_files() -> Value {
    json!({"features": {"enableFileUpload": true}})
}

/// Creates an organization whose agent takes files and whose model sees pictures.
async fn gallery() -> Organization {
    let organization = OrganizationDocument::new()
        .seeing()
        .shop(taking_files())
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    organization
}

/// Returns a picture of one color with a marker that is no part of what is seen.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_pixel(width, height, image::Rgb([200, 30, 30]))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}
