//! Model providers: OpenAI-compatible endpoints that an organization configures.

use serde::{Deserialize, Serialize};

use crate::ids::{OrgId, ProviderId};

/// A model provider without its API key, which the catalog returns separately and only to workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Id of the provider, derived from the slug.
    pub id: ProviderId,
    /// Organization that owns the provider.
    pub org_id: OrgId,
    /// Name of the provider in documents and commands.
    pub slug: String,
    /// Base URL of the OpenAI-compatible API, for instance `https://api.example/v1`.
    pub base_url: String,
    /// Model for agents that name none.
    pub model: String,
    /// Model for embeddings, if the provider has one.
    pub embedding_model: Option<String>,
    /// `true` if the endpoint continues an unfinished assistant message at the end of the prompt,
    /// so that a reply whose worker died continues where it stopped.
    #[serde(default)]
    pub continues_prefix: bool,
    /// `true` if the operator of the installation chose the base URL, which then may lead to a
    /// private network.
    #[serde(default)]
    pub chosen_by_operator: bool,
}
