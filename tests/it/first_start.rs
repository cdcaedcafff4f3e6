//! The first start of a fresh clone: the printed commands work when pasted.

use serde_json::{Value, json};

use crate::support::{
    Organization, PATIENCE, Profile, Reply, Script, TestService, eventually, unique,
};

/// Returns URL, key and body of each `curl` command in the start-up output.
fn curl_lines(log: &str) -> Vec<(String, String, Value)> {
    let between = |text: &str, before: &str, behind: char| {
        let rest = text.split_once(before).unwrap().1;
        rest[..rest.find(behind).unwrap()].to_owned()
    };
    let lines = log.split("  curl ").skip(1);
    let line = |text: &str| {
        let body = serde_json::from_str(&between(text, "-d '", '\'')).unwrap();
        (
            format!("http{}", between(text, " http", ' ')),
            between(text, "Bearer ", '\''),
            body,
        )
    };
    lines.map(line).collect()
}

#[tokio::test]
async fn printed_commands_talk_to_the_guide_and_show_products() {
    let service = TestService::start_as(Profile::Embedded, &[("SWITCHBOARD__DEMO", "true")]).await;
    let log = service.with_process("all", |process| process.log());
    let lines = curl_lines(&log);
    let [guide, shop] = lines.as_slice() else {
        panic!("two lines: {log}")
    };
    let ask = async |(address, key, body): &(String, String, Value)| {
        let request = reqwest::Client::new()
            .post(address)
            .bearer_auth(key)
            .json(body);
        Reply::read(request.send().await.unwrap()).await
    };
    let guide = ask(guide).await;
    assert!(
        guide.complete().contains("I am the demo model") && guide.header("x-ui-spec").is_none()
    );
    let reply = ask(shop).await;
    assert_eq!(reply.required_header("x-model"), "demo");
    let spec: Value = serde_json::from_str(&reply.required_header("x-ui-spec")).unwrap();
    let shown: Vec<_> = spec["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["title"].as_str().unwrap())
        .collect();
    assert!(
        shown.contains(&"Mountain Oolong, 100 g") && !shown.contains(&"Pour-over Kit"),
        "{shown:?}"
    );
    assert!(
        shown.iter().all(|title| reply.complete().contains(title)),
        "{shown:?} in {}",
        reply.text()
    );
    let (address, key, mut nothing) = lines[1].clone();
    nothing["message"] = "Do you sell sofas?".into();
    let nothing = ask(&(address, key, nothing)).await;
    assert!(nothing.header("x-ui-spec").is_none() && !nothing.complete().is_empty());
}

#[tokio::test]
async fn added_provider_replaces_the_demo_without_a_restart() {
    let service = TestService::start_as(Profile::Embedded, &[]).await;
    let scripted = Organization::with_agent(&service, Script::says("From the provider.")).await;
    let slug = unique("bare-");
    let document = json!({"organizations": [{
        "slug": slug, "name": "Bare", "agents": [{"slug": "shop", "name": "Shop"}], "keys": [{"name": "all"}]
    }]});
    let applied = service.apply(&document).await;
    applied.assert_status(200);
    let applied = applied.json()["organizations"][0].clone();
    let client = service
        .client()
        .with_key(applied["keys"][0]["value"].as_str().unwrap());
    let agent = applied["agents"][0]["id"].as_str().unwrap();
    let demo = client.chat(agent, "s", "hi").await;
    assert_eq!(demo.required_header("x-model"), "demo");
    let path = format!(
        "/api/admin/organizations/{}/providers",
        applied["id"].as_str().unwrap()
    );
    let provider = &scripted.document["organizations"][0]["providers"][0];
    service
        .admin()
        .post(&path, provider)
        .await
        .assert_status(201);
    let text = eventually("the provider answers", PATIENCE, async || {
        let reply = client.chat(agent, "s", "hi").await;
        let is_demo = reply.required_header("x-model") == "demo";
        (!is_demo).then(|| reply.complete().to_owned())
    })
    .await;
    assert_eq!(text, "From the provider.");
}
