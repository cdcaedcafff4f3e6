//! An organization of a single test, created by applying a document.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Client, Script, ScriptedModel, TestService, unique};

/// Builder of a document for `apply`.
pub(crate) struct OrganizationDocument {
    model: String,
    value: Value,
}

/// An organization created by an applied document.
pub(crate) struct Organization {
    pub(crate) id: String,
    /// Unique model name of its provider.
    pub(crate) model: String,
    pub(crate) document: Value,
    pub(crate) answer: Value,
    client: Client,
    agents: HashMap<String, String>,
    teams: HashMap<String, String>,
    keys: HashMap<String, String>,
}

impl OrganizationDocument {
    /// Creates a document with a scripted model, no agents and a key for all scopes.
    pub(crate) fn new() -> Self {
        let slug = unique("org-");
        let model = unique("model-");
        let provider = json!({"slug": "main", "baseUrl": ScriptedModel::get().base_url(), "apiKey": "sk-test", "model": model});
        let value = json!({
            "slug": slug, "name": format!("Organization {slug}"), "providers": [provider],
            "agents": [], "teams": [], "keys": []
        });
        Self { model, value }.key("all", &[])
    }

    /// Declares that the provider continues an unfinished assistant message.
    pub(crate) fn continuing(mut self) -> Self {
        self.value["providers"][0]["continuesPrefix"] = true.into();
        self
    }

    /// Adds an agent; `settings` override the defaults.
    pub(crate) fn agent(self, slug: &str, settings: Value) -> Self {
        let usual = json!({
            "slug": slug, "name": format!("Agent {slug}"), "provider": "main", "instructions": "Answer.",
            // Tests send faster than visitors; tests of the limit set their own.
            "limits": {"maxMessageLength": 4000, "rateLimitPerMinute": 100_000}
        });
        self.push("agents", merged(usual, settings))
    }

    /// Adds a team; `settings` override the defaults.
    pub(crate) fn team(self, slug: &str, settings: Value) -> Self {
        let usual = json!({"slug": slug, "name": format!("Team {slug}"), "description": "Helps."});
        self.push("teams", merged(usual, settings))
    }

    /// Adds a key with high limits.
    pub(crate) fn key(self, name: &str, scopes: &[&str]) -> Self {
        self.key_with(name, json!({"scopes": scopes}))
    }

    /// Adds a key; `settings` override the defaults.
    pub(crate) fn key_with(self, name: &str, settings: Value) -> Self {
        let limits = json!({"chatPerMinute": 100_000, "configPerMinute": 100_000, "conversationsPerMinute": 100_000});
        self.push(
            "keys",
            merged(json!({"name": name, "limits": limits}), settings),
        )
    }

    /// Adds another provider with its own URL or model.
    pub(crate) fn provider(self, settings: Value) -> Self {
        self.push("providers", settings)
    }

    pub(crate) async fn apply(self, service: &TestService) -> Organization {
        let document = json!({"organizations": [self.value]});
        let answer = service.admin().post("/api/admin/apply", &document).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        Organization::from_answer(self.model, document, answer.json(), service.client())
    }

    fn push(mut self, list: &str, item: Value) -> Self {
        self.value[list].as_array_mut().unwrap().push(item);
        self
    }
}

impl Organization {
    /// Creates an organization with one agent named `shop` whose model follows `script`.
    pub(crate) async fn with_agent(service: &TestService, script: Script) -> Self {
        let organization = OrganizationDocument::new()
            .agent("shop", json!({}))
            .apply(service)
            .await;
        organization.script(script);
        organization
    }

    /// Returns the id of an agent.
    #[track_caller]
    pub(crate) fn agent(&self, slug: &str) -> &str {
        &self.agents[slug]
    }

    /// Returns the id of the agent named `shop`.
    #[track_caller]
    pub(crate) fn shop(&self) -> &str {
        self.agent("shop")
    }

    /// Returns the id of a team.
    #[track_caller]
    pub(crate) fn team(&self, slug: &str) -> &str {
        &self.teams[slug]
    }

    /// Returns the text of a key.
    #[track_caller]
    pub(crate) fn key_text(&self, name: &str) -> &str {
        &self.keys[name]
    }

    /// Returns a client whose key has all scopes.
    pub(crate) fn client(&self) -> Client {
        self.client_with("all")
    }

    /// Returns a client with another key.
    #[track_caller]
    pub(crate) fn client_with(&self, key: &str) -> Client {
        self.client.with_key(self.key_text(key))
    }

    /// Returns a client with the same key for a certain ingress.
    pub(crate) fn client_at(&self, url: &str) -> Client {
        Client::new(url).with_key(self.key_text("all"))
    }

    /// Sets the script of the organization's model.
    pub(crate) fn script(&self, script: Script) {
        ScriptedModel::get().register(&self.model, script);
    }

    /// Sets the script of the model for messages that contain `[[marker]]`.
    pub(crate) fn script_for(&self, marker: &str, script: Script) {
        ScriptedModel::get().register(&format!("{}/{marker}", self.model), script);
    }

    /// Returns the document with changes to one agent, to be applied again.
    pub(crate) fn changed_agent(&self, slug: &str, changes: Value) -> Value {
        let mut document = self.document.clone();
        let agents = document["organizations"][0]["agents"]
            .as_array_mut()
            .unwrap();
        let agent = agents
            .iter_mut()
            .find(|agent| agent["slug"] == slug)
            .unwrap();
        *agent = merged(agent.clone(), changes);
        document
    }

    fn from_answer(model: String, document: Value, answer: Value, client: Client) -> Self {
        let organization = &answer["organizations"][0];
        let ids = |list: &str, name: &str, value: &str| -> HashMap<String, String> {
            let items = organization[list].as_array().into_iter().flatten();
            items
                .filter_map(|item| {
                    Some((
                        item[name].as_str()?.to_owned(),
                        item[value].as_str()?.to_owned(),
                    ))
                })
                .collect()
        };
        let (agents, teams) = (ids("agents", "slug", "id"), ids("teams", "slug", "id"));
        let keys = ids("keys", "name", "value");
        let id = organization["id"].as_str().unwrap().to_owned();
        Self {
            id,
            model,
            document,
            agents,
            teams,
            keys,
            client,
            answer,
        }
    }
}

/// Replaces members of `base` by those of `changes`, one level deep.
fn merged(base: Value, changes: Value) -> Value {
    let (Value::Object(mut base), Value::Object(changes)) = (base, changes) else {
        panic!("two objects")
    };
    base.extend(changes);
    Value::Object(Map::from_iter(base))
}
