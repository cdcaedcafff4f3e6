//! The six endpoints of the specification and a request for each of their errors, shared by the
//! tests of endpoints and of errors.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::{Answer, Client, Organization, OrganizationDocument, client::send};

/// Origin that no agent allows.
pub(crate) const FOREIGN_ORIGIN: &str = "https://evil.example";

/// An endpoint of the specification, in the order of its sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    AgentChat,
    TeamChat,
    AgentConfiguration,
    WidgetConfiguration,
    ConversationRead,
    ConversationUpdate,
}

/// Two organizations; the first has an agent for each error.
pub(crate) struct Endpoints {
    /// Organization whose keys are used.
    pub(crate) ours: Organization,
    pub(crate) theirs: Organization,
    nobody: Client,
}

/// A valid request to be modified.
struct Attempt {
    client: Client,
    agent: String,
    session: String,
    origin: Option<&'static str>,
    body: String,
}

impl Endpoint {
    pub(crate) const ALL: [Self; 6] = [
        Self::AgentChat,
        Self::TeamChat,
        Self::AgentConfiguration,
        Self::WidgetConfiguration,
        Self::ConversationRead,
        Self::ConversationUpdate,
    ];
    pub(crate) const OF_AGENTS: [Self; 5] = [
        Self::AgentChat,
        Self::AgentConfiguration,
        Self::WidgetConfiguration,
        Self::ConversationRead,
        Self::ConversationUpdate,
    ];

    pub(crate) fn method(self) -> Method {
        match self {
            Self::AgentChat | Self::TeamChat => Method::POST,
            Self::AgentConfiguration | Self::WidgetConfiguration | Self::ConversationRead => {
                Method::GET
            }
            Self::ConversationUpdate => Method::PATCH,
        }
    }

    /// Returns the path; `owner` is the agent or the team.
    pub(crate) fn path(self, owner: &str, session: &str) -> String {
        match self {
            Self::AgentChat => format!("/api/public/agents/{owner}/chat"),
            Self::TeamChat => format!("/api/public/teams/{owner}/chat"),
            Self::AgentConfiguration => format!("/api/public/agents/{owner}"),
            Self::WidgetConfiguration => format!("/api/public/agents/{owner}/widget"),
            Self::ConversationRead | Self::ConversationUpdate => {
                format!("/api/public/agents/{owner}/conversations/{session}")
            }
        }
    }

    /// Returns a scope of other endpoints that does not allow this one.
    fn wrong_scope(self) -> &'static str {
        match self {
            Self::AgentChat | Self::TeamChat => "config",
            Self::AgentConfiguration => "chat",
            Self::WidgetConfiguration => "conversations",
            Self::ConversationRead | Self::ConversationUpdate => "chat",
        }
    }
}

impl Endpoints {
    /// Creates both organizations and a conversation of session `s` in the first.
    pub(crate) async fn prepare() -> Self {
        let minute = json!({"chatPerMinute": 1, "configPerMinute": 1, "conversationsPerMinute": 1});
        let everyone =
            json!({"routing": "random", "members": [{"agent": "shop", "specialization": "all"}]});
        let ours = OrganizationDocument::new()
            .shop(json!({}))
            .agent("off", json!({"status": "inactive"}))
            .agent("hidden", json!({"public": false}))
            .agent(
                "listed",
                json!({"allowedDomains": ["https://shop.example"]}),
            )
            .team("front", everyone.clone())
            .key("chat", &["chat"])
            .key("config", &["config"])
            .key("conversations", &["conversations"])
            .key_with("expired", json!({"expiresAt": "2020-01-01T00:00:00Z"}))
            .key_with("slow", json!({"limits": minute}))
            .apply_to_shared()
            .await;
        let service = ours.service();
        let theirs = OrganizationDocument::new()
            .shop(json!({}))
            .team("front", everyone)
            .apply(service)
            .await;
        ours.chat("s", "hi").await.complete();
        theirs.chat("s", "canary-of-the-others").await.complete();
        let nobody = service.client();
        Self {
            ours,
            theirs,
            nobody,
        }
    }

    /// Returns the response to a valid request.
    pub(crate) async fn succeed(&self, endpoint: Endpoint) -> Answer {
        send(self.good(endpoint).request(endpoint)).await
    }

    /// Returns the response to a request with exactly the error of this code.
    pub(crate) async fn provoke(&self, endpoint: Endpoint, code: &str) -> Answer {
        let mut attempt = self.good(endpoint);
        match code {
            "INVALID_AGENT_ID" => attempt.agent = "%20".into(),
            "INVALID_SESSION_ID" => attempt.session = "%20".into(),
            "INVALID_REQUEST_DATA" => attempt.body = json!({"sessionId": "s"}).to_string(),
            "INVALID_JSON" => attempt.body = "{".into(),
            "INVALID_RATING" => attempt.body = json!({"rating": 6}).to_string(),
            "MISSING_API_KEY" => attempt.client = self.nobody.clone(),
            "INVALID_API_KEY" => {
                attempt.client = self
                    .nobody
                    .with_key(&format!("svc_live_{}", "A".repeat(32)))
            }
            "EXPIRED_API_KEY" => attempt.client = self.ours.client_with("expired"),
            "ORG_MISMATCH" => attempt.agent = self.theirs.shop().into(),
            "INSUFFICIENT_SCOPE" => attempt.client = self.ours.client_with(endpoint.wrong_scope()),
            "AGENT_NOT_PUBLIC" => attempt.agent = self.ours.agent("hidden").into(),
            "AGENT_INACTIVE" => attempt.agent = self.ours.agent("off").into(),
            "DOMAIN_NOT_ALLOWED" => {
                attempt.agent = self.ours.agent("listed").into();
                attempt.origin = Some(FOREIGN_ORIGIN);
            }
            "AGENT_NOT_FOUND" => attempt.agent = format!("agt_{}", "0".repeat(26)),
            "CONVERSATION_NOT_FOUND" => attempt.session = "never".into(),
            "RATE_LIMITED" => {
                attempt.client = self.ours.client_with("slow");
                send(attempt.request(endpoint)).await;
            }
            other => panic!("{other} is not among the codes of the specification"),
        }
        send(attempt.request(endpoint)).await
    }

    fn good(&self, endpoint: Endpoint) -> Attempt {
        let body = match endpoint {
            Endpoint::ConversationUpdate => json!({"rating": 5}),
            _ => json!({"message": "hi", "sessionId": "s"}),
        };
        let owner = if endpoint == Endpoint::TeamChat {
            self.ours.team("front")
        } else {
            self.ours.shop()
        };
        let (client, agent) = (self.ours.client(), owner.to_owned());
        Attempt {
            client,
            agent,
            session: "s".into(),
            origin: None,
            body: body.to_string(),
        }
    }
}

impl Attempt {
    fn request(&self, endpoint: Endpoint) -> RequestBuilder {
        let request = self.client.request(
            endpoint.method(),
            &endpoint.path(&self.agent, &self.session),
        );
        let request = match self.origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        };
        if endpoint.method() == Method::GET {
            return request;
        }
        request
            .header("content-type", "application/json")
            .body(self.body.clone())
    }
}
