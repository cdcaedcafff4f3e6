//! A model provider: an OpenAI-compatible endpoint that an organization brings.

use serde::{Deserialize, Serialize};

use crate::ids::{OrgId, ProviderId};

/// An endpoint, without its key: the catalogue hands the key out apart, and only to workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Identifier, derived from the slug.
    pub id: ProviderId,
    /// Owner.
    pub org_id: OrgId,
    /// Name in documents and commands.
    pub slug: String,
    /// Base of the OpenAI-compatible API, for instance `https://api.example/v1`.
    pub base_url: String,
    /// Model that agents use when they name none.
    pub model: String,
    /// Model for embeddings, where the provider has one.
    pub embedding_model: Option<String>,
    /// Whether the endpoint continues an unfinished assistant message that ends the prompt, so that a reply
    /// whose worker died goes on where it stopped.
    #[serde(default)]
    pub continues_prefix: bool,
}
