//! Client of the admin API for the data that a replay needs.

use anyhow::{Context, bail, ensure};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use switchboard_schemas::{
    agent::ActivationStatus,
    ids::{AgentId, TeamId},
    team::RoutingStrategy,
    time::Timestamp,
};
use switchboard_workers::replay::RecordedMessage;

use crate::config::ServiceConfig;

/// Items per page, the maximum of the admin API.
const PAGE_ITEMS: usize = 200;

/// Client for one organization of a running service.
pub(super) struct AdminClient {
    http: reqwest::Client,
    token: SecretString,
    base: String,
}

/// Fields of an agent that routing reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AgentResponse {
    pub(super) id: AgentId,
    pub(super) slug: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) public: bool,
    pub(super) status: ActivationStatus,
}

/// Fields of a team that routing reads; agents are referred to by slug.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TeamResponse {
    pub(super) id: TeamId,
    pub(super) slug: String,
    pub(super) routing: RoutingStrategy,
    pub(super) default_agent: Option<String>,
    pub(super) members: Vec<MemberResponse>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MemberResponse {
    pub(super) agent: String,
    #[serde(default)]
    pub(super) specialization: String,
}

#[derive(Deserialize)]
struct ResourceName {
    id: String,
    slug: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPage<T> {
    items: Vec<T>,
    #[serde(default)]
    has_more: bool,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ConversationRow {
    id: String,
}

#[derive(Deserialize)]
struct TranscriptView {
    messages: ListPage<MessageView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageView {
    id: String,
    content: String,
    timestamp: Timestamp,
    agent_id: Option<AgentId>,
}

impl AdminClient {
    /// Connects to the given organization, or else to the only one that has the team.
    pub(super) async fn connect(
        config: &ServiceConfig,
        url: Option<&str>,
        organization: Option<&str>,
        team: &str,
    ) -> anyhow::Result<Self> {
        let token = config
            .admin
            .token
            .clone()
            .context("SWITCHBOARD__ADMIN__TOKEN is not set")?;
        let base = url.map_or_else(|| config.admin_url(), str::to_owned);
        let base = format!("{}/api/admin/organizations", base.trim_end_matches('/'));
        let mut client = Self {
            http: reqwest::Client::new(),
            token,
            base,
        };
        let all: Vec<ResourceName> = client.list_all("").await?;
        let found = match (organization, all.as_slice()) {
            (Some(wanted), all) => all
                .iter()
                .find(|one| one.id == wanted || one.slug == wanted),
            (None, [only]) => Some(only),
            (None, several) => Some(client.organization_with_team(team, several).await?),
        };
        let id = found.context("the organization does not exist")?.id.clone();
        client.base = format!("{}/{id}", client.base);
        Ok(client)
    }

    /// Returns the organization with the team; fails if several have one of that name.
    async fn organization_with_team<'a>(
        &self,
        team: &str,
        organizations: &'a [ResourceName],
    ) -> anyhow::Result<&'a ResourceName> {
        let mut with_team = Vec::new();
        for organization in organizations {
            let teams: Vec<ResourceName> = self
                .list_all(&format!("/{}/teams", organization.id))
                .await?;
            if teams.iter().any(|one| one.slug == team || one.id == team) {
                with_team.push(organization);
            }
        }
        match with_team[..] {
            [only] => Ok(only),
            [] => bail!("no organization has a team {team:?}"),
            _ => bail!(
                "choose one with --organization: {} have a team {team:?}",
                with_team.len()
            ),
        }
    }

    pub(super) async fn list_agents(&self) -> anyhow::Result<Vec<AgentResponse>> {
        self.list_all("/agents").await
    }

    /// Returns the team with this slug or id.
    pub(super) async fn get_team(&self, wanted: &str) -> anyhow::Result<TeamResponse> {
        let teams: Vec<ResourceName> = self.list_all("/teams").await?;
        let team = teams
            .iter()
            .find(|team| team.slug == wanted || team.id == wanted);
        let id = &team
            .with_context(|| format!("team {wanted:?} does not exist"))?
            .id;
        // Lists leave out what the members are for.
        self.get_json(&format!("/teams/{id}"), &[]).await
    }

    /// Lists the ids of at most `max` conversations of the team, latest first.
    pub(super) async fn list_conversations(
        &self,
        team: &TeamId,
        since: Option<&str>,
        max: usize,
    ) -> anyhow::Result<Vec<String>> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        while found.len() < max {
            let mut query = vec![
                ("team", team.to_string()),
                ("limit", PAGE_ITEMS.to_string()),
            ];
            query.extend(since.map(|since| ("since", since.to_owned())));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page: ListPage<ConversationRow> = self.get_json("/conversations", &query).await?;
            found.extend(page.items.into_iter().map(|conversation| conversation.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        found.truncate(max);
        Ok(found)
    }

    /// Lists the messages of a conversation, oldest first.
    pub(super) async fn list_messages(
        &self,
        conversation: &str,
    ) -> anyhow::Result<Vec<RecordedMessage>> {
        let mut messages: Vec<RecordedMessage> = Vec::new();
        loop {
            let query = [
                ("limit", PAGE_ITEMS.to_string()),
                ("offset", messages.len().to_string()),
            ];
            let page: TranscriptView = self
                .get_json(&format!("/conversations/{conversation}"), &query)
                .await?;
            messages.extend(page.messages.items.into_iter().map(recorded_message));
            if !page.messages.has_more {
                return Ok(messages);
            }
        }
    }

    async fn list_all<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        let mut all = Vec::new();
        loop {
            let query = [
                ("limit", PAGE_ITEMS.to_string()),
                ("offset", all.len().to_string()),
            ];
            let page: ListPage<T> = self.get_json(path, &query).await?;
            all.extend(page.items);
            if !page.has_more {
                return Ok(all);
            }
        }
    }

    async fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> anyhow::Result<T> {
        let url = reqwest::Url::parse_with_params(&format!("{}{path}", self.base), query)
            .with_context(|| format!("{} is not a URL", self.base))?;
        let response = self
            .http
            .get(url)
            .bearer_auth(self.token.expose_secret())
            .send()
            .await;
        let response = response.with_context(|| {
            format!(
                "no response from {}; is the service running there? (--url)",
                self.base
            )
        })?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(
            status.is_success(),
            "the service refused the request with {status}:\n{text}"
        );
        serde_json::from_str(&text).context("unexpected response of the service")
    }
}

fn recorded_message(message: MessageView) -> RecordedMessage {
    RecordedMessage {
        id: message.id,
        by: message.agent_id,
        text: message.content,
        at: message.timestamp,
    }
}
