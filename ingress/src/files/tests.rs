//! Tests of uploads and downloads over the router, and of messages that name files.

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use switchboard_schemas::{
    conversation::ReplyStatus, conversation_job::ConversationJob, file::FileType, ids::OrgId,
    topics::Topic,
};

use crate::{
    state::upload_bounds::OPEN_UPLOADS_PER_ORG_MAX,
    testing::{Answer, World, agent_id, org_id, org_path, reply_frames, secret},
};

const BOUNDARY: &str = "b0undary";

/// Returns a part of a form.
fn part(name: &str, file: Option<(&str, &str)>, content: &[u8]) -> Vec<u8> {
    let file = file.map_or(String::new(), |(name, kind)| {
        format!("; filename=\"{name}\"\r\nContent-Type: {kind}")
    });
    let head =
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), format!("--{BOUNDARY}--\r\n").into_bytes()].concat()
}

fn text_form(content: &[u8]) -> Vec<u8> {
    form(&[part("file", Some(("notes.txt", "text/plain")), content)])
}

async fn world() -> World {
    let world = World::new().await;
    world
        .edit_agent(|agent| agent.settings.features.enable_file_upload = true)
        .await;
    world
}

async fn upload(world: &World, body: impl Into<Body>) -> Answer {
    upload_with(world, &world.key, body).await
}

async fn upload_with(world: &World, key: &str, body: impl Into<Body>) -> Answer {
    upload_to(world, &World::agent_path("/files"), key, body).await
}

async fn upload_to(world: &World, path: &str, key: &str, body: impl Into<Body>) -> Answer {
    let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let headers = [("content-type", media_type.as_str()), ("x-api-key", key)];
    world.send_with("POST", path, &headers, body).await
}

async fn uploaded(world: &World, content: &[u8]) -> Value {
    upload(world, text_form(content)).await.expect(201)
}

fn path_of(file: &Value) -> String {
    format!("/api/public/files/{}", file["fileId"].as_str().unwrap())
}

fn file(name: &str, kind: &str, content: &[u8]) -> Vec<u8> {
    part("file", Some((name, kind)), content)
}

#[tokio::test]
async fn malformed_form_is_refused_with_its_field() {
    let world = world().await;
    let one = || file("a.txt", "", b"a");
    for (body, param) in [
        (form(&[]), "file"),
        (form(&[part("sessionId", None, b"s")]), "file"),
        (text_form(b""), "file"),
        (form(&[one(), one()]), "file"),
        (form(&[part("sessionId", None, b" "), one()]), "sessionId"),
        (b"--b0undary\r\nContent-Disp".to_vec(), ""),
        (
            form(&[part("sessionId", None, &[b's'; 2000]), one()]),
            "sessionId",
        ),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let problem = upload(&world, body).await.expect(400);
        assert_eq!(problem["code"], "INVALID_REQUEST_DATA", "{shown}");
        assert_eq!(
            problem["param"].as_str().unwrap_or_default(),
            param,
            "{shown}"
        );
    }
}

#[tokio::test]
async fn file_that_is_not_what_it_claims_is_refused() {
    let world = world().await;
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    for refused in [
        file("a.png", "image/png", b"no picture"),
        file("a.png", "image/jpeg", png),
        file("a.svg", "image/svg+xml", b"<svg/>"),
        file("a.csv", "text/csv", b"\xff\xfe"),
        file("a.docx", "", b"PK\x03\x04 no word"),
    ] {
        let answer = upload(&world, form(&[refused])).await;
        assert_eq!(answer.problem(), (415, "UNSUPPORTED_MEDIA_TYPE".into()));
    }
    let json = world.send("POST", &World::agent_path("/files"), "{}").await;
    assert_eq!(json.problem().0, 415);
}

#[tokio::test]
async fn agent_without_the_feature_says_so() {
    let world = World::new().await;
    let problem = upload(&world, text_form(b"a")).await.expect(403);
    assert_eq!(problem["code"], "INSUFFICIENT_SCOPE");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("enableFileUpload")
    );
}

#[tokio::test]
async fn too_large_file_is_refused_before_it_has_arrived() {
    let world = world().await;
    world
        .edit_agent(|agent| agent.settings.files.max_bytes = 10)
        .await;
    assert_eq!(
        upload(&world, text_form(b"ten bytes.")).await.problem().0,
        201
    );
    let start = part(
        "file",
        Some(("a.txt", "text/plain")),
        b"more than ten bytes",
    );
    // The rest never comes.
    let body = stream::iter([Ok::<_, std::io::Error>(Bytes::from(start))]);
    let endless = body.chain(stream::pending());
    let problem = upload(&world, Body::from_stream(endless)).await.expect(413);
    assert_eq!(
        (&problem["code"], &problem["details"]["max"]),
        (&json!("PAYLOAD_TOO_LARGE"), &json!(10))
    );
}

#[tokio::test]
async fn team_takes_what_one_of_its_members_takes() {
    let world = world().await;
    world
        .edit_agent(|agent| {
            agent.settings.files.max_bytes = 2_000_000;
            agent.settings.files.types = vec![FileType::Csv];
        })
        .await;
    let texts = json!({
        "slug": "texts", "name": "Texts", "features": { "enableFileUpload": true },
        "files": { "maxBytes": 10, "types": ["text/plain"] },
    });
    let texts = world.admin("POST", &org_path("/agents"), &[], texts).await;
    texts.expect(201);
    let team = json!({
        "slug": "t", "name": "T", "defaultAgent": "texts", "members": [{ "agent": "shop" }],
    });
    let team = world.admin("POST", &org_path("/teams"), &[], team).await;
    let team = team.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/api/public/teams/{team}/files");
    for (name, bytes, status, max) in [
        ("a.csv", 1000, 201, None),
        ("a.csv", 2_000_001, 413, Some(2_000_000)),
        ("a.txt", 10, 201, None),
        ("a.txt", 11, 413, Some(10)),
        ("a.txt", 2_000_000, 413, Some(10)),
        ("a.md", 1, 415, None),
    ] {
        let body = form(&[file(name, "", &vec![b'x'; bytes])]);
        let answer = upload_to(&world, &path, &world.key, body).await;
        let answer = answer.expect(status);
        assert_eq!(answer["details"]["max"].as_u64(), max, "{bytes} of {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_sender_is_given_up_and_a_slow_one_is_not() {
    let world = world().await;
    let whole = text_form(b"slow");
    let slow = stream::unfold(whole.into_iter(), |mut rest| async {
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        let byte = rest.next()?;
        Some((Ok::<_, std::io::Error>(Bytes::from(vec![byte])), rest))
    });
    assert_eq!(
        upload(&world, Body::from_stream(slow)).await.problem().0,
        201
    );
    let silent = stream::pending::<Result<Bytes, std::io::Error>>();
    assert_eq!(
        upload(&world, Body::from_stream(silent)).await.problem().0,
        408
    );
}

#[tokio::test]
async fn file_is_sent_back_as_a_download() {
    let world = world().await;
    let content = b"0123456789".repeat(10_000);
    let body = form(&[part(
        "file",
        Some(("../a \\\"<b>.txt", "text/plain")),
        &content,
    )]);
    let file = upload(&world, body).await.expect(201);
    assert_eq!(
        (&file["mimeType"], &file["bytes"]),
        (&json!("text/plain"), &json!(100_000))
    );
    let key = [("x-api-key", world.key.as_str())];
    let whole = world.send_with("GET", &path_of(&file), &key, "").await;
    assert_eq!(
        (whole.status.as_u16(), whole.text.as_bytes()),
        (200, &*content)
    );
    let header = |answer: &Answer, name: &str| {
        let value = answer.headers.get(name);
        value
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    assert!(header(&whole, "content-disposition").starts_with("attachment; filename="));
    assert!(header(&whole, "content-security-policy").contains("sandbox"));
    assert_eq!(header(&whole, "x-content-type-options"), "nosniff");
    assert_eq!(header(&whole, "content-type"), "text/plain; charset=utf-8");
    for (range, status, part, content_range) in [
        ("bytes=0-9", 206, &content[..10], "bytes 0-9/100000"),
        (
            "bytes=65530-65545",
            206,
            &content[65530..65546],
            "bytes 65530-65545/100000",
        ),
        (
            "bytes=99999-",
            206,
            &content[99_999..],
            "bytes 99999-99999/100000",
        ),
        (
            "bytes=-5",
            206,
            &content[99_995..],
            "bytes 99995-99999/100000",
        ),
        ("bytes=0-1,5-6", 200, &content, ""),
        ("lines=1-2", 200, &content, ""),
    ] {
        let headers = [key[0], ("range", range)];
        let answer = world.send_with("GET", &path_of(&file), &headers, "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_bytes()),
            (status, part),
            "{range}"
        );
        assert_eq!(header(&answer, "content-range"), content_range, "{range}");
    }
    let headers = [key[0], ("range", "bytes=100000-")];
    let outside = world.send_with("GET", &path_of(&file), &headers, "").await;
    assert_eq!(outside.problem(), (416, "RANGE_NOT_SATISFIABLE".into()));
    let head = world.send_with("HEAD", &path_of(&file), &key, "").await;
    assert_eq!(
        (head.status.as_u16(), header(&head, "content-length")),
        (200, "100000".into())
    );
}

#[tokio::test]
async fn file_is_read_by_who_uploaded_it_or_reads_conversations() {
    let world = world().await;
    let scopes = |name: &str, scopes: Value| json!({ "name": name, "scopes": scopes });
    let uploader = world.new_key("acme", scopes("chat", json!(["chat"]))).await;
    let other = world
        .new_key("acme", scopes("other", json!(["chat"])))
        .await;
    let reader = world
        .new_key("acme", scopes("reader", json!(["conversations"])))
        .await;
    let stranger = world.new_key("rival", json!({ "name": "all" })).await;
    let file = upload_with(&world, &uploader, text_form(b"a"))
        .await
        .expect(201);
    let token = json!({ "agentId": agent_id() }).to_string();
    let headers = [("x-api-key", uploader.as_str())];
    let token = world.send_with("POST", "/api/widget/token", &headers, token);
    let token = token.await.expect(200)["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let of_visitor = upload_with(&world, &token, text_form(b"a")).await;
    let of_visitor = of_visitor.expect(201);
    for (reader, key, own, visitors) in [
        ("uploader", &uploader, 200, 404),
        ("visitor", &token, 404, 200),
        ("reader", &reader, 200, 200),
        ("other", &other, 404, 404),
        ("stranger", &stranger, 404, 404),
    ] {
        for (file, status) in [(&file, own), (&of_visitor, visitors)] {
            let headers = [("x-api-key", key.as_str())];
            let answer = world.send_with("GET", &path_of(file), &headers, "").await;
            assert_eq!(answer.problem().0, status, "{reader} {file}");
        }
    }
    for unknown in [
        "/api/public/files/x",
        "/api/public/files/file_7777777777777777777777777z",
    ] {
        let answer = world.send("GET", unknown, "").await;
        assert_eq!(answer.problem(), (404, "NOT_FOUND".into()));
    }
}

fn message(session: &str, attachments: Value) -> Value {
    json!({ "message": "", "sessionId": session, "attachments": attachments })
}

async fn refused(world: &World, body: &Value) -> (String, String) {
    let path = World::agent_path("/chat");
    let problem = world
        .send("POST", &path, body.to_string())
        .await
        .expect(400);
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    (text("code"), text("param"))
}

#[tokio::test]
async fn message_names_only_files_of_its_conversation() {
    let world = world().await;
    let free = uploaded(&world, b"a").await;
    let id = |file: &Value| json!({ "fileId": file["fileId"] });
    let of_session = form(&[
        part("file", Some(("a.txt", "text/plain")), b"a"),
        part("sessionId", None, b"other"),
    ]);
    let of_session = upload(&world, of_session).await.expect(201);
    let first = "attachments[0].fileId";
    for (attachments, param) in [
        (json!("file"), "attachments"),
        (json!(vec![id(&free); 6]), "attachments"),
        (json!(["file"]), "attachments[0]"),
        (json!([{}]), first),
        (json!([{ "fileId": 7 }]), first),
        (json!([{ "fileId": "file_1" }]), first),
        (json!([id(&free), id(&free)]), "attachments[1].fileId"),
        (json!([id(&free), id(&of_session)]), "attachments[1].fileId"),
    ] {
        let expected = ("INVALID_REQUEST_DATA".to_owned(), param.to_owned());
        assert_eq!(refused(&world, &message("s", attachments)).await, expected);
    }
    assert_eq!(refused(&world, &message("s", json!([]))).await.1, "message");

    let body = message("s", json!([id(&free)])).to_string();
    let path = World::agent_path("/chat");
    let answered = world.send("POST", &path, body);
    let work = async {
        let job = loop {
            if let Some(ConversationJob::Reply(job)) = world.jobs(Topic::Jobs).pop() {
                break job;
            }
            tokio::task::yield_now().await;
        };
        for frame in reply_frames(&["seen"], ReplyStatus::Completed) {
            world.append_frame(&job.turn.reply_id(), frame);
        }
        job
    };
    let (answer, job) = tokio::join!(answered, work);
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (200, "seen")
    );
    let sent = &job.turn.attachments[0];
    assert_eq!((sent.name.as_str(), sent.bytes), ("notes.txt", 1));
}

#[tokio::test]
async fn editor_uploads_for_the_playground_alone() {
    let world = World::new().await;
    let org = crate::testing::org_id();
    let path = format!("/api/admin/organizations/{org}/agents/new/files");
    let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let bearer = format!("Bearer {}", crate::testing::ADMIN_TOKEN);
    let headers = [
        ("content-type", media_type.as_str()),
        ("authorization", &bearer),
    ];
    let file = world
        .send_with("POST", &path, &headers, text_form(b"draft"))
        .await;
    let file = file.expect(201);
    let id = file["fileId"].as_str().unwrap();
    let shown = format!("/api/admin/organizations/{org}/files/{id}");
    let shown = world.admin("GET", &shown, &[], Value::Null).await;
    assert_eq!((shown.status.as_u16(), shown.text.as_str()), (200, "draft"));
    assert_eq!(
        world.send("GET", &path_of(&file), "").await.problem().0,
        404
    );
    let named = message("s", json!([{ "fileId": id }]));
    assert_eq!(refused(&world, &named).await.1, "attachments[0].fileId");
}

#[tokio::test]
async fn uploads_at_once_are_limited_per_organization_and_in_all() {
    let world = world().await;
    let hold = |org: &OrgId| -> Vec<_> {
        let places = (0..OPEN_UPLOADS_PER_ORG_MAX).map(|_| world.upload_bounds().open(org));
        places.collect::<Result<_, _>>().unwrap()
    };
    let own = hold(&org_id());
    let answer = upload(&world, text_form(b"a")).await;
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(answer.expect(429)["details"]["bucket"], "open_uploads");
    drop(own);
    assert_eq!(upload(&world, text_form(b"a")).await.status, 201);
    let others = ["a", "b", "c", "d"].map(|org| hold(&OrgId::derive(&secret(), org)));
    let answer = upload(&world, text_form(b"a")).await;
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(answer.problem(), (503, "UNAVAILABLE".into()));
    drop(others);
    assert_eq!(upload(&world, text_form(b"a")).await.status, 201);
}

#[tokio::test]
async fn headers_that_never_end_are_given_up() {
    let world = world().await;
    let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"\r\n");
    let line = Bytes::from_static(&[b'x'; 64 << 10]);
    let endless = stream::iter([Bytes::from(head)]).chain(stream::repeat(line).take(40));
    let body = endless
        .chain(stream::pending())
        .map(Ok::<_, std::io::Error>);
    let answer = upload(&world, Body::from_stream(body)).await;
    assert_eq!(answer.problem(), (400, "INVALID_REQUEST_DATA".into()));
}
