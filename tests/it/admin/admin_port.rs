//! The separate admin port of `SWITCHBOARD__ADMIN__LISTEN`, which can stay on a private network.

use serde_json::json;

use crate::support::{
    ADMIN_TOKEN, Client, Organization, PATIENCE, ProcessCommand, Profile, Script, TestService,
    eventually,
};

const ORGANIZATIONS: &str = "/api/admin/organizations";

#[tokio::test]
async fn admin_port_serves_only_the_admin_api() {
    let service = TestService::start_with_admin_port().await;
    let organization = Organization::with_agent(&service, Script::says("ok")).await;
    organization.chat("s", "hi").await.complete();
    for url in service.public_urls() {
        let public = Client::new(&url).with_key(ADMIN_TOKEN);
        public
            .get(ORGANIZATIONS)
            .await
            .assert_problem(404, Some("NOT_FOUND"));
        public
            .post("/api/admin/apply", &organization.document)
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
    for url in service.admin_urls() {
        let admin = Client::new(&url).with_key(ADMIN_TOKEN);
        assert_eq!(admin.get(ORGANIZATIONS).await.status, 200);
        let agent = organization.path("");
        let with_key = organization.client_at(&url);
        for path in [
            agent.as_str(),
            "/api/public/openapi.json",
            "/readyz",
            "/metrics",
        ] {
            with_key
                .get(path)
                .await
                .assert_problem(404, Some("NOT_FOUND"));
        }
        with_key
            .get(ORGANIZATIONS)
            .await
            .assert_problem(401, Some("INVALID_API_KEY"));
    }
}

#[tokio::test]
async fn apply_command_and_start_screen_use_the_admin_port() {
    let service = TestService::start_with_admin_port().await;
    let (urls, directory) = (service.admin_urls(), tempfile::tempdir().unwrap());
    let slug = crate::support::unique("org-");
    let document =
        json!({"organizations": [{"slug": slug, "name": "Applied", "keys": [{"name": "k"}]}]});
    std::fs::write(directory.path().join("document.json"), document.to_string()).unwrap();
    let file = directory
        .path()
        .join("document.json")
        .to_string_lossy()
        .into_owned();
    let environment = [
        ("SWITCHBOARD__ADMIN__TOKEN", ADMIN_TOKEN),
        ("SWITCHBOARD__ADMIN__LISTEN", &urls[0][7..]),
    ];
    let environment: Vec<(String, String)> = environment
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    let command = |name: &str, arguments: &[&str]| {
        let arguments = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        let (name, environment) = (name.to_owned(), environment.clone());
        ProcessCommand {
            name,
            arguments,
            environment,
            directory: directory.path().into(),
        }
        .run(PATIENCE)
    };
    let (status, output) = command("apply", &["apply", "-f", &file]);
    assert!(status.success() && output.contains("svc_live_"), "{output}");
    let (_, output) = command("config", &["config"]);
    assert!(output.contains(&urls[0][7..]), "{output}");
    if service.profile == Profile::Embedded {
        assert!(
            service.logs().contains(&format!("{}/api/admin", urls[0])),
            "{}",
            service.logs()
        );
    }
}

#[tokio::test]
async fn admin_request_finishes_while_the_process_drains() {
    let service = TestService::start_with_admin_port().await;
    let (url, (name, ops)) = (service.admin_urls().remove(0), service.ops_urls().remove(0));
    let address = url.strip_prefix("http://").unwrap().to_owned();
    let (slug, opened) = (crate::support::unique("org-"), service.admin());
    let body = json!({"slug": slug, "name": "Slow"}).to_string();
    let head = format!(
        "POST {ORGANIZATIONS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_TOKEN}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    assert_eq!(opened.get(ORGANIZATIONS).await.status, 200);
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &body.as_bytes()[..5])
        .await
        .unwrap();
    // The head has been read once a later request on the same port is answered.
    assert_eq!(
        Client::new(&url)
            .with_key(ADMIN_TOKEN)
            .get(ORGANIZATIONS)
            .await
            .status,
        200
    );
    service.with_process(&name, |process| process.signal("TERM"));
    let private = Client::new(&ops);
    eventually("readiness is 503", PATIENCE, async || {
        (private.try_get("/readyz").await?.status == 503).then_some(())
    })
    .await;
    eventually("no further connection is taken", PATIENCE, async || {
        tokio::net::TcpStream::connect(&address)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &body.as_bytes()[5..])
        .await
        .unwrap();
    let mut answer = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer)
        .await
        .unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        answer.starts_with("HTTP/1.1 201") && answer.contains(&slug),
        "{answer}"
    );
    let status = service.with_process(&name, |process| process.wait(PATIENCE));
    assert!(status.success(), "{status}");
}
