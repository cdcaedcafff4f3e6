//! An organization of a single test, created by applying a document.

use std::collections::HashMap;

use reqwest::{Method, Response};
use serde_json::{Map, Value, json};
use switchboard_scripted_model::RecordedRequest;

use super::{
    Answer, Client, Events, PATIENCE, Reply, Script, ScriptedModel, SharedService, TestService,
    eventually, unique,
};

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
    /// The shared service if the document was applied to it.
    service: Option<SharedService>,
    client: Client,
    agents: HashMap<String, String>,
    teams: HashMap<String, String>,
    keys: HashMap<String, String>,
}

/// Creates an organization of the shared service whose agent `shop` follows `script`.
pub(crate) async fn shop_with(script: Script) -> Organization {
    let organization = shop_with_settings(json!({})).await;
    organization.script(script);
    organization
}

/// Creates an organization of the shared service whose agent `shop` has these settings.
pub(crate) async fn shop_with_settings(settings: Value) -> Organization {
    OrganizationDocument::new()
        .shop(settings)
        .apply_to_shared()
        .await
}

/// Creates an organization of the shared service whose agent `shop` always replies with `text`.
pub(crate) async fn shop_saying(text: &str) -> Organization {
    shop_with(Script::says(text)).await
}

/// Creates an organization of the shared service whose team `front` has the members `billing` and
/// `technical` and the default agent `general`.
pub(crate) async fn front_desk(routing: &str) -> Organization {
    let billing = "Invoices, refunds, payments and billing questions";
    let technical = "Technical problems, crashes, installation and error messages";
    OrganizationDocument::new()
        .agent(
            "billing",
            json!({"name": "Billing", "description": billing}),
        )
        .agent(
            "technical",
            json!({"name": "Technik für alle", "description": technical}),
        )
        .agent(
            "general",
            json!({"name": "General", "description": "Everything else"}),
        )
        .team(
            "front",
            json!({"routing": routing, "defaultAgent": "general", "members": [
                {"agent": "billing", "specialization": billing},
                {"agent": "technical", "specialization": technical}
            ]}),
        )
        .apply_to_shared()
        .await
}

/// Longest silence of a scripted model, shorter than the default.
const FIRST_TOKEN_TIMEOUT_MS: u32 = 12_000;

impl OrganizationDocument {
    /// Creates a document with a scripted model, no agents and a key for all scopes.
    pub(crate) fn new() -> Self {
        let slug = unique("org-");
        let model = unique("model-");
        let base_url = ScriptedModel::get().base_url();
        let provider = json!({
            "slug": "main", "baseUrl": base_url, "apiKey": "sk-test", "model": model,
            "firstTokenTimeoutMs": FIRST_TOKEN_TIMEOUT_MS
        });
        let value = json!({
            "slug": slug, "name": format!("Organization {slug}"), "providers": [provider],
            "agents": [], "teams": [], "keys": []
        });
        Self { model, value }.key("all", &[])
    }

    /// Returns the name of the provider's model.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Sets the dialect of the provider.
    pub(crate) fn api(mut self, api: &str) -> Self {
        self.value["providers"][0]["api"] = api.into();
        self
    }

    /// Declares that the provider continues an unfinished assistant message.
    pub(crate) fn continuing(mut self) -> Self {
        self.value["providers"][0]["continuesPrefix"] = true.into();
        self
    }

    /// Declares that the models of the provider see pictures.
    pub(crate) fn seeing(mut self) -> Self {
        self.value["providers"][0]["vision"] = true.into();
        self
    }

    /// Gives the document the name of another organization.
    pub(crate) fn named_like(mut self, other: &Organization) -> Self {
        self.value["slug"] = other.document["organizations"][0]["slug"].clone();
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

    /// Adds the agent of most tests, named `shop`; `settings` override the defaults.
    pub(crate) fn shop(self, settings: Value) -> Self {
        self.agent("shop", settings)
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
        // A store on a busy machine may miss its timeout; applying again is what an operator would
        // do.
        let answer = eventually("the document is applied", PATIENCE, async || {
            let answer = service.apply(&document).await;
            (answer.status != 503).then_some(answer)
        })
        .await;
        answer.assert_status(200);
        Organization::from_answer(self.model, document, answer.json(), service.client())
    }

    pub(crate) async fn apply_to_shared(self) -> Organization {
        let service = SharedService::get().await;
        let mut organization = self.apply(&service).await;
        organization.service = Some(service);
        organization
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
            .shop(json!({}))
            .apply(service)
            .await;
        organization.script(script);
        organization
    }

    /// Returns the shared service, which must hold this organization.
    #[track_caller]
    pub(crate) fn service(&self) -> &TestService {
        self.service.as_ref().unwrap()
    }

    pub(crate) fn slug(&self) -> &str {
        self.document["organizations"][0]["slug"].as_str().unwrap()
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

    /// Returns a path of the agent `shop` in the public API.
    pub(crate) fn path(&self, suffix: &str) -> String {
        format!("/api/public/agents/{}{suffix}", self.shop())
    }

    /// Returns a path of the organization in the admin API.
    pub(crate) fn admin_path(&self, suffix: &str) -> String {
        format!("/api/admin/organizations/{}{suffix}", self.id)
    }

    /// Sends a message to the agent `shop` and returns the complete text reply.
    pub(crate) async fn chat(&self, session: &str, message: &str) -> Reply {
        self.client().chat(self.shop(), session, message).await
    }

    /// Sends a message to the agent `shop` and returns the reply as JSON.
    pub(crate) async fn chat_json(&self, session: &str, message: &str) -> Answer {
        self.client().chat_json(self.shop(), session, message).await
    }

    /// Sends a message to the agent `shop` and returns the reply as events.
    pub(crate) async fn chat_events(&self, session: &str, message: &str) -> Events {
        self.client()
            .chat_events(self.shop(), session, message)
            .await
    }

    /// Sends a message to the agent `shop` and returns the response with an unread body.
    pub(crate) async fn open_chat(&self, body: &Value) -> Response {
        self.client().open_chat(self.shop(), body).await
    }

    /// Sends a message to the agent `shop` and reads at least `bytes` bytes of its reply, which
    /// stays open.
    pub(crate) async fn begin_chat(
        &self,
        session: &str,
        message: &str,
        bytes: usize,
    ) -> (Reply, Response) {
        self.client()
            .begin_chat(self.shop(), session, message, bytes)
            .await
    }

    /// Returns the chat path of the team `front`.
    pub(crate) fn team_path(&self) -> String {
        format!("/api/public/teams/{}/chat", self.team("front"))
    }

    /// Sends a message to the team `front` and returns the complete text reply.
    pub(crate) async fn team_chat(&self, session: &str, message: &str) -> Reply {
        self.client()
            .team_chat(self.team("front"), session, message)
            .await
    }

    /// Sends a body to the team `front` and returns the complete text reply.
    pub(crate) async fn team_reply(&self, body: Value) -> Reply {
        let request = self.client().request(Method::POST, &self.team_path());
        Reply::read(request.json(&body).send().await.unwrap()).await
    }

    /// Returns a conversation of the agent `shop`.
    pub(crate) async fn history(&self, session: &str) -> Value {
        self.client().history(self.shop(), session).await
    }

    /// Returns a conversation of the agent `shop` once it has `messages` messages and no running
    /// reply.
    pub(crate) async fn settled_history(&self, session: &str, messages: usize) -> Value {
        self.client()
            .settled_history(self.shop(), session, messages)
            .await
    }

    /// Returns all conversations with their messages, from the admin API; `None` if it does not
    /// answer.
    pub(crate) async fn conversations(&self, admin: &Client) -> Option<Vec<Value>> {
        let (mut conversations, mut query) = (vec![], "?limit=200".to_owned());
        loop {
            let path = self.admin_path(&format!("/conversations{query}"));
            let page = admin.try_get(&path).await?.json();
            for item in page["items"].as_array()? {
                let id = item["id"].as_str()?;
                let path = self.admin_path(&format!("/conversations/{id}?limit=200"));
                let conversation = admin.try_get(&path).await?.json();
                let has_more = conversation["messages"]["hasMore"].as_bool()?;
                assert!(!has_more, "tests talk less than a page");
                conversations.push(conversation);
            }
            let Some(cursor) = page["nextCursor"].as_str() else {
                return Some(conversations);
            };
            query = format!("?limit=200&cursor={cursor}");
        }
    }

    /// Returns the requests that the organization's model received.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        ScriptedModel::get().requests(&self.model)
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
            service: None,
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
