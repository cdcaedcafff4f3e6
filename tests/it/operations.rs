//! Operation of the service: health, metrics, logs, commands and start-up checks.

use std::{path::Path, time::Duration};

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Client, End, Organization, PATIENCE, ProcessCommand, Profile, Script, SharedService,
    TestService, eventually, free_port, shop_saying, shop_with,
};

#[tokio::test]
async fn private_port_serves_health_readiness_and_metrics() {
    let organization = shop_saying("ok").await;
    organization.chat("s", "hi").await.complete();
    for (name, url) in organization.service().ops_urls() {
        let client = Client::new(&url);
        assert_eq!(client.get("/healthz").await.status, 200, "{name}");
        let ready = client.get("/readyz").await;
        assert_eq!(ready.status, 200, "{name}: {}", ready.text);
        assert!(ready.json().is_object(), "{name}: {}", ready.text);
        let metrics = client.get("/metrics").await;
        assert_eq!(metrics.status, 200, "{name}");
        assert!(
            metrics
                .text
                .lines()
                .any(|line| line.starts_with("switchboard_")),
            "{name}: {}",
            metrics.text
        );
        assert_metrics_are_well_formed(&metrics.text);
    }
}

/// Asserts that every sample has a type and no label contains an id, which would create a series
/// per conversation.
fn assert_metrics_are_well_formed(text: &str) {
    let typed: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(
            typed.iter().any(|known| name.starts_with(known)),
            "no type for {line}"
        );
        assert!(
            line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(),
            "{line}"
        );
        for prefix in ["conv_", "msg_", "req_", "svc_live_"] {
            assert!(!line.contains(prefix), "{line}");
        }
    }
}

#[tokio::test]
async fn private_and_public_ports_share_no_route() {
    let service = SharedService::get().await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        service
            .client()
            .get(path)
            .await
            .assert_problem(404, Some("NOT_FOUND"));
    }
    for (_, url) in service.ops_urls() {
        assert_eq!(
            Client::new(&url)
                .get("/api/public/openapi.json")
                .await
                .status,
            404
        );
    }
}

#[tokio::test]
async fn logs_and_metrics_contain_no_secrets_or_message_text() {
    let organization = shop_saying("canary-said-by-the-model").await;
    let service = organization.service();
    organization
        .chat("canary-session", "canary-said-by-the-visitor")
        .await
        .complete();
    let mut text = service.logs();
    for (_, url) in service.ops_urls() {
        text.push_str(&Client::new(&url).get("/metrics").await.text);
    }
    for secret in [
        "canary-said-by",
        organization.key_text("all"),
        "sk-test",
        "admin-token-of-the-tests",
        "5eed5eed5eed",
    ] {
        assert!(!text.contains(secret), "{}", &secret[..12]);
    }
}

#[tokio::test]
async fn readiness_ends_when_draining_begins() {
    let service = TestService::start().await;
    let organization =
        Organization::with_agent(&service, Script::counts(40, Duration::from_millis(100))).await;
    let body = json!({"message": "go", "sessionId": "s"});
    let client = organization.client_at(&service.public_urls()[0]);
    let open = client.open_chat(organization.shop(), &body).await;
    let (name, url) = service.ops_urls().remove(0);
    service.with_process(&name, |process| process.signal("TERM"));
    let ops = Client::new(&url);
    eventually("readiness is 503", PATIENCE, async || {
        (ops.try_get("/readyz").await?.status == 503).then_some(())
    })
    .await;
    assert_eq!(
        ops.get("/healthz").await.status,
        200,
        "alive while draining"
    );
    crate::support::Reply::read(open).await.complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_process_accepts_connections_until_probes_noticed() {
    let notice = [("SWITCHBOARD__OPS__UNREADY_NOTICE_MS", "2000")];
    let service = TestService::start_with(&notice).await;
    let organization = Organization::with_agent(&service, Script::says("hello")).await;
    let (name, ops_url) = service.ops_urls().remove(0);
    let ops = Client::new(&ops_url);
    assert_eq!(ops.get("/readyz").await.status, 200);
    service.with_process(&name, |process| process.signal("TERM"));
    eventually("a probe sees that it stops", PATIENCE, async || {
        (ops.try_get("/readyz").await?.status == 503).then_some(())
    })
    .await;
    // The load balancer has just been notified, and a request is on its way.
    let client = organization.client_at(&service.public_urls()[0]);
    let body = json!({"message": "hi", "sessionId": "s"});
    let reply = client.open_chat(organization.shop(), &body).await;
    assert_eq!(crate::support::Reply::read(reply).await.complete(), "hello");
    let status = tokio::task::block_in_place(|| {
        service.with_process(&name, |process| process.wait(PATIENCE))
    });
    assert_eq!(status.code(), Some(0));
}

fn command(
    directory: &Path,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> ProcessCommand {
    ProcessCommand {
        name: name.into(),
        arguments: arguments
            .iter()
            .map(|argument| (*argument).into())
            .collect(),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        directory: directory.into(),
    }
}

#[tokio::test]
async fn config_command_prints_effective_values_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [
        ("SWITCHBOARD__SECRET", "aa".repeat(32)),
        (
            "SWITCHBOARD__ADMIN__TOKEN",
            "a-very-secret-admin-token-0123456789".to_owned(),
        ),
        ("SWITCHBOARD__INGRESS__LISTEN", "127.0.0.1:4321".to_owned()),
    ];
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let (status, output) =
        command(directory.path(), "config", &["config"], &environment).run(PATIENCE);
    assert!(status.success(), "{output}");
    assert!(output.contains("127.0.0.1:4321"), "{output}");
    assert!(
        !output.contains(&"aa".repeat(32)) && !output.contains("very-secret"),
        "{output}"
    );
}

#[tokio::test]
async fn configuration_errors_are_reported_together() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [
        ("SWITCHBOARD__INGRESS__LISTEN", "nowhere"),
        ("SWITCHBOARD__PROFILE", "both"),
        ("SWITCHBOARD__BUS__PARTITIONS", "many"),
    ];
    let (status, output) = command(directory.path(), "bad", &["serve"], &environment).run(PATIENCE);
    assert!(!status.success());
    for key in ["listen", "profile", "partitions"] {
        assert!(output.to_lowercase().contains(key), "{key} in {output}");
    }
    assert!(!output.contains("panicked"), "{output}");
}

#[tokio::test]
async fn unusable_embedding_model_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let (public, ops) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{}", free_port()),
    );
    let no_model = directory.path().to_str().unwrap();
    let environment = [
        ("SWITCHBOARD__INGRESS__LISTEN", public.as_str()),
        ("SWITCHBOARD__OPS__LISTEN", &ops),
        ("SWITCHBOARD__WORKERS__EMBEDDING_MODEL_DIR", no_model),
    ];
    let (status, output) = command(directory.path(), "bad", &["serve"], &environment).run(PATIENCE);
    assert!(!status.success());
    assert!(
        output.contains("workers.embedding_model_dir") && output.contains("modules.json"),
        "{output}"
    );
    assert!(!output.contains("is running"), "{output}");
}

#[tokio::test]
async fn service_of_a_network_has_no_demo_and_prints_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let (port, ops) = (free_port(), format!("127.0.0.1:{}", free_port()));
    let (listen, data) = (format!("0.0.0.0:{port}"), directory.path().join("data"));
    let environment = [
        ("SWITCHBOARD__INGRESS__LISTEN", listen.as_str()),
        ("SWITCHBOARD__OPS__LISTEN", &ops),
        ("SWITCHBOARD__DATA_DIR", data.to_str().unwrap()),
        ("SWITCHBOARD__DEMO", "true"),
    ];
    let process = command(directory.path(), "open", &["serve"], &environment).start();
    let log = eventually("the service runs", PATIENCE, async || {
        Some(process.log()).filter(|log| log.contains("switchboard admin link"))
    })
    .await;
    assert!(!log.contains("Bearer") && !log.contains('#'), "{log}");
    let client = Client::new(&format!("http://127.0.0.1:{port}"));
    client.get("/demo").await.assert_status(404);
}

#[tokio::test]
async fn second_process_on_the_same_data_is_refused() {
    let service = SharedService::get().await;
    if service.profile == Profile::Cluster {
        // Separate processes share services and no files, so any number may run.
        assert!(service.ops_urls().len() > 1);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (public, ops) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{}", free_port()),
    );
    let data = service.data_directory();
    let environment = [
        ("SWITCHBOARD__DATA_DIR", data.to_str().unwrap()),
        ("SWITCHBOARD__INGRESS__LISTEN", &public),
        ("SWITCHBOARD__OPS__LISTEN", &ops),
    ];
    let (status, output) =
        command(directory.path(), "second", &["serve"], &environment).run(PATIENCE);
    assert!(!status.success(), "{output}");
    assert!(!output.contains("panicked"), "{output}");
}

#[tokio::test]
async fn unread_log_stops_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let (public, ops) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{}", free_port()),
    );
    let environment = [
        ("SWITCHBOARD__DATA_DIR", directory.path().to_str().unwrap()),
        ("SWITCHBOARD__INGRESS__LISTEN", &public),
        ("SWITCHBOARD__OPS__LISTEN", &ops),
    ];
    let command = command(directory.path(), "unread", &["serve"], &environment);
    let _process = command.start_with_unread_log();
    let client = Client::new(&format!("http://{public}"));
    eventually("the service answers", PATIENCE, async || {
        client.try_get("/api/nothing").await
    })
    .await;
    // Several hundred bytes are logged for each request, and a pipe holds 64 KiB.
    for _ in 0..500 {
        assert_eq!(client.get("/api/nothing").await.status, 404);
    }
}

#[tokio::test]
async fn healthcheck_distinguishes_a_live_process_from_a_dead_one() {
    let service = SharedService::get().await;
    let directory = tempfile::tempdir().unwrap();
    let (_, url) = service.ops_urls().remove(0);
    let alive = url.strip_prefix("http://").unwrap().to_owned();
    let dead = format!("127.0.0.1:{}", free_port());
    for (name, address, healthy) in [("alive", alive, true), ("dead", dead, false)] {
        let environment = [("SWITCHBOARD__OPS__LISTEN", address.as_str())];
        let (status, output) =
            command(directory.path(), name, &["healthcheck"], &environment).run(PATIENCE);
        assert_eq!(status.success(), healthy, "{name}: {output}");
    }
}

#[tokio::test]
async fn cluster_does_not_start_without_an_installation_secret() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [("SWITCHBOARD__PROFILE", "cluster")];
    let (status, output) =
        command(directory.path(), "no-secret", &["serve"], &environment).run(PATIENCE);
    assert!(!status.success());
    assert!(output.to_lowercase().contains("secret"), "{output}");
}

#[tokio::test]
async fn apply_command_sends_yaml_and_json_with_the_admin_token() {
    let service = SharedService::get().await;
    let directory = tempfile::tempdir().unwrap();
    let slug = crate::support::unique("applied-");
    let yaml = format!(
        "organizations:\n  - slug: {slug}\n    name: Applied\n    keys: [{{name: site}}]\n"
    );
    let json = json!({"organizations": [{"slug": slug, "name": "Applied", "agents": [{"slug": "shop", "name": "Shop"}]}]});
    std::fs::write(directory.path().join("a.yaml"), yaml).unwrap();
    std::fs::write(directory.path().join("a.json"), json.to_string()).unwrap();
    std::fs::write(directory.path().join("empty.toml"), "").unwrap();
    let url = service.public_urls().remove(0);
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (yaml, json, config) = (file("a.yaml"), file("a.json"), file("empty.toml"));
    let token = [("SWITCHBOARD__ADMIN__TOKEN", crate::support::ADMIN_TOKEN)];
    for (name, arguments, made) in [
        (
            "yaml",
            ["--config", &config, "apply", "-f", &yaml, "--url", &url],
            "svc_live_",
        ),
        (
            "json",
            ["apply", "-f", &json, "--url", &url, "--config", &config],
            "agt_",
        ),
    ] {
        let (status, output) = command(directory.path(), name, &arguments, &token).run(PATIENCE);
        assert!(
            status.success() && output.contains(made),
            "{name}: {output}"
        );
    }
    let (status, output) = command(
        directory.path(),
        "none",
        &["apply", "-f", &yaml, "--url", &url],
        &[],
    )
    .run(PATIENCE);
    assert!(
        !status.success() && output.contains("SWITCHBOARD__ADMIN__TOKEN"),
        "{output}"
    );
}

#[tokio::test]
async fn logs_of_a_failed_reply_share_one_trace_id() {
    let organization = shop_with(Script::says("half of a rep").ends(End::Cut)).await;
    let trace = format!("{:032x}", rand::random::<u128>());
    let path = organization.path("/chat");
    let request = organization.client().request(Method::POST, &path);
    let request = request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    // The text is cut on purpose; the expected lines are in the logs.
    let _cut = request
        .json(&json!({"message": "hi", "sessionId": "s"}))
        .send()
        .await
        .unwrap()
        .text()
        .await;
    let line_of_the_trace = async |said: &str| {
        eventually(said, PATIENCE, async || {
            organization
                .service()
                .logs()
                .lines()
                .find(|line| line.contains(&trace) && line.contains(said))
                .map(str::to_owned)
        })
        .await
    };
    line_of_the_trace("response begins").await;
    let of_the_worker = line_of_the_trace("model call broke off after text").await;
    assert!(of_the_worker.contains("provider.host"), "{of_the_worker}");
}
