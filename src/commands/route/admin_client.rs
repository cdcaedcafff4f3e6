//! What a replay reads of the running service, through its admin API.

use anyhow::{Context, bail, ensure};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use switchboard_schemas::{
    agent::ActivationStatus,
    ids::{AgentId, TeamId},
    team::RoutingStrategy,
    time::Timestamp,
};
use switchboard_workers::replay::Recorded;

use crate::config::Config;

/// Items of a page, as many as the service gives.
const PAGE: usize = 200;

/// One organization of a running service.
pub(super) struct Service {
    client: reqwest::Client,
    token: SecretString,
    base: String,
}

/// An agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AgentView {
    pub(super) id: AgentId,
    pub(super) slug: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) public: bool,
    pub(super) status: ActivationStatus,
}

/// A team; its agents are named by their slugs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TeamView {
    pub(super) id: TeamId,
    pub(super) slug: String,
    pub(super) routing: RoutingStrategy,
    pub(super) default_agent: Option<String>,
    pub(super) members: Vec<MemberView>,
}

/// A member of a team.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MemberView {
    pub(super) agent: String,
    #[serde(default)]
    pub(super) specialization: String,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    slug: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    #[serde(default)]
    has_more: bool,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Conversation {
    id: String,
}

#[derive(Deserialize)]
struct Transcript {
    messages: Page<MessageView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageView {
    id: String,
    content: String,
    timestamp: Timestamp,
    agent_id: Option<AgentId>,
}

impl Service {
    /// Finds the organization: the one that is named, else the only one that has the team.
    pub(super) async fn connect(
        config: &Config,
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
        let mut service = Self {
            client: reqwest::Client::new(),
            token,
            base,
        };
        let all: Vec<Named> = service.all("").await?;
        let found = match (organization, all.as_slice()) {
            (Some(wanted), all) => all
                .iter()
                .find(|one| one.id == wanted || one.slug == wanted),
            (None, [only]) => Some(only),
            (None, several) => Some(service.only_one_with(team, several).await?),
        };
        let id = found.context("there is no such organization")?.id.clone();
        service.base = format!("{}/{id}", service.base);
        Ok(service)
    }

    /// The organization that has the team, where no other one has it.
    async fn only_one_with<'a>(
        &self,
        team: &str,
        organizations: &'a [Named],
    ) -> anyhow::Result<&'a Named> {
        let mut with_team = Vec::new();
        for organization in organizations {
            let teams: Vec<Named> = self.all(&format!("/{}/teams", organization.id)).await?;
            if teams.iter().any(|one| one.slug == team || one.id == team) {
                with_team.push(organization);
            }
        }
        match with_team[..] {
            [only] => Ok(only),
            [] => bail!("no organization has a team {team:?}"),
            _ => bail!(
                "say which --organization: {} have a team {team:?}",
                with_team.len()
            ),
        }
    }

    /// All agents.
    pub(super) async fn agents(&self) -> anyhow::Result<Vec<AgentView>> {
        self.all("/agents").await
    }

    /// The team with this slug or id.
    pub(super) async fn team(&self, wanted: &str) -> anyhow::Result<TeamView> {
        let teams: Vec<TeamView> = self.all("/teams").await?;
        let team = teams
            .into_iter()
            .find(|team| team.slug == wanted || team.id.as_str() == wanted);
        team.with_context(|| format!("there is no team {wanted:?}"))
    }

    /// Ids of its conversations, the latest first.
    pub(super) async fn conversations(
        &self,
        team: &TeamId,
        since: Option<&str>,
        max: usize,
    ) -> anyhow::Result<Vec<String>> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        while found.len() < max {
            let mut query = vec![("team", team.to_string()), ("limit", PAGE.to_string())];
            query.extend(since.map(|since| ("since", since.to_owned())));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page: Page<Conversation> = self.get("/conversations", &query).await?;
            found.extend(page.items.into_iter().map(|conversation| conversation.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        found.truncate(max);
        Ok(found)
    }

    /// The messages of a conversation, oldest first.
    pub(super) async fn messages(&self, conversation: &str) -> anyhow::Result<Vec<Recorded>> {
        let mut messages: Vec<Recorded> = Vec::new();
        loop {
            let query = [
                ("limit", PAGE.to_string()),
                ("offset", messages.len().to_string()),
            ];
            let page: Transcript = self
                .get(&format!("/conversations/{conversation}"), &query)
                .await?;
            messages.extend(page.messages.items.into_iter().map(recorded));
            if !page.messages.has_more {
                return Ok(messages);
            }
        }
    }

    async fn all<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        let mut all = Vec::new();
        loop {
            let query = [
                ("limit", PAGE.to_string()),
                ("offset", all.len().to_string()),
            ];
            let page: Page<T> = self.get(path, &query).await?;
            all.extend(page.items);
            if !page.has_more {
                return Ok(all);
            }
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> anyhow::Result<T> {
        let url = reqwest::Url::parse_with_params(&format!("{}{path}", self.base), query)
            .with_context(|| format!("{} is no address", self.base))?;
        let response = self
            .client
            .get(url)
            .bearer_auth(self.token.expose_secret())
            .send()
            .await;
        let response = response.with_context(|| format!("no service answers at {}", self.base))?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success(), "refused with {status}:\n{text}");
        serde_json::from_str(&text).context("the service answers in another form")
    }
}

fn recorded(message: MessageView) -> Recorded {
    Recorded {
        id: message.id,
        by: message.agent_id,
        text: message.content,
        at: message.timestamp,
    }
}
