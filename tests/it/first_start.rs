//! The first start of a fresh clone: the printed commands work when pasted.

use serde_json::Value;

use crate::support::{Profile, Reply, TestService};

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
