//! Scripts of what providers really send and require (`tests/providers`), each with the visitor's
//! view, and `docs/providers.md`, which is made from the same files.

mod document;
mod script_file;

use futures::future::join_all;
use serde_json::{Value, json};

use self::script_file::{ExpectedOutcome, ProviderFile, ProviderScript, providers, value_at};
use crate::{
    provider_faults::titles,
    support::{Answer, Organization, OrganizationDocument, Reply, ScriptedModel},
};

/// Text that no visitor may see, and that is not stored.
const SECRET: &str = "SECRET";

/// Differences between an expected outcome and the real one.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn expect(&mut self, what: &str, found: Value, wanted: Value) {
        if found != wanted {
            self.0.push(format!("{what}: {found} instead of {wanted}"));
        }
    }

    fn expect_error(&mut self, answer: &Answer, expected: &ExpectedOutcome) {
        let code = answer.json()["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let failure = format!("{} {code}", answer.status);
        self.expect("failure", json!(failure), json!(expected.fails));
        if let Some(seconds) = expected.retry_after {
            let said = answer.header("retry-after");
            let said = said.and_then(|said| said.parse::<u64>().ok());
            self.expect("Retry-After", json!(said), json!(seconds));
        }
        self.expect("secret", json!(answer.text.contains(SECRET)), json!(false));
    }

    fn expect_reply(&mut self, reply: &Reply, stored: &Value, expected: &ExpectedOutcome) {
        let text = expected.says.as_ref().or(expected.cut.as_ref());
        self.expect("text", stored["content"].clone(), json!(text));
        let is_complete = expected.says.is_some();
        self.expect("clean end", json!(reply.ended_cleanly), json!(is_complete));
        let status = if is_complete {
            "completed"
        } else {
            "incomplete"
        };
        self.expect("status", stored["status"].clone(), json!(status));
        self.expect("titles", json!(titles(reply)), json!(expected.shows));
        if let Some(reason) = &expected.finish_reason {
            self.expect(
                "finish reason",
                stored["finishReason"].clone(),
                json!(reason),
            );
        }
        self.expect(
            "secret",
            json!(stored.to_string().contains(SECRET)),
            json!(false),
        );
    }

    fn expect_requests(&mut self, requests: &[Value], expected: &ExpectedOutcome) {
        if let Some(count) = expected.requests {
            self.expect("requests", json!(requests.len()), json!(count));
        }
        let last = requests.last().unwrap_or(&Value::Null);
        for (path, wanted) in &expected.sends {
            let sent = value_at(last, path).cloned().unwrap_or_default();
            self.expect(path, sent, wanted.clone());
        }
        for path in &expected.omits {
            self.expect(path, json!(value_at(last, path).is_some()), json!(false));
        }
    }
}

async fn differences(
    organization: &Organization,
    agent: &str,
    script: &ProviderScript,
) -> Vec<String> {
    let (client, id) = (organization.client(), organization.agent(agent));
    for _ in 1..script.messages {
        client.chat(id, agent, "lamp?").await;
    }
    let reply = client.chat(id, agent, "lamp?").await;
    let mut differences = Differences::default();
    if reply.status == 200 {
        let count = 2 * script.messages;
        let history = client.settled_history(id, agent, count).await;
        let stored = &history["messages"][count - 1];
        differences.expect_reply(&reply, stored, &script.expected);
        if let Some(usage) = script.expected.usage {
            let message = client.message(stored["id"].as_str().unwrap()).await;
            let said = &message["usage"];
            let said = json!([said["promptTokens"], said["completionTokens"]]);
            differences.expect("usage", said, json!(usage));
        }
    } else {
        differences.expect_error(&reply.into_answer(), &script.expected);
    }
    let requests = ScriptedModel::get().requests(&model_of(organization, agent));
    let bodies: Vec<_> = requests.into_iter().map(|request| request.body).collect();
    differences.expect_requests(&bodies, &script.expected);
    differences.0
}

/// Each script has a model of its own, because what a model refuses is remembered.
fn model_of(organization: &Organization, agent: &str) -> String {
    format!("{}-{agent}", organization.model)
}

async fn check_provider(provider: &ProviderFile) -> Vec<String> {
    let lamp = json!({"title": "Desk Lamp", "price": "$9", "image": "", "url": "https://shop.example/desk"});
    let api = provider.api.as_deref().unwrap_or("chat-completions");
    let mut document = OrganizationDocument::new().api(api);
    let names: Vec<String> = (0..provider.scripts.len())
        .map(|number| format!("s{number}"))
        .collect();
    for (name, script) in names.iter().zip(&provider.scripts) {
        let mut settings = json!({"model": format!("{}-{name}", document.model())});
        if script.tools {
            settings["ecommerce"] = json!({"enabled": true, "products": [lamp]});
        }
        for (field, value) in script.agent.as_object().into_iter().flatten() {
            settings[field] = value.clone();
        }
        document = document.agent(name, settings);
    }
    let organization = document.apply_to_shared().await;
    for (name, script) in names.iter().zip(&provider.scripts) {
        ScriptedModel::get().register(&model_of(&organization, name), script.script());
    }
    let found = names
        .iter()
        .zip(&provider.scripts)
        .map(async |(name, script)| {
            let wrong = differences(&organization, name, script).await;
            (!wrong.is_empty())
                .then(|| format!("{}, {}: {}", provider.name, script.name, wrong.join("; ")))
        });
    join_all(found).await.into_iter().flatten().collect()
}

#[tokio::test]
async fn every_provider_script_has_its_outcome() {
    let providers = providers();
    let wrong = join_all(providers.iter().map(check_provider))
        .await
        .concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn document_is_that_of_the_scripts() {
    let current = document::render(&providers());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/providers.md");
    if std::env::var_os("UPDATE_PROVIDERS").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        checked_in == current,
        "UPDATE_PROVIDERS=1 cargo test --test it providers::document"
    );
}
