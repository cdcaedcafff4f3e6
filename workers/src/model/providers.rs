//! Resolves the endpoints of an agent: those that may answer, in order, and the one that gives
//! embeddings.

use secrecy::{ExposeSecret, SecretString};
use switchboard_backends::{
    StoreError,
    catalog::cache::{CatalogCache, SealedProvider},
    vault::SecretVault,
};
use switchboard_schemas::{
    agent::Agent,
    ids::ProviderId,
    provider::{Provider, ProviderApi},
};

use super::ModelEndpoint;
use crate::outgoing::AddressReach;

/// The installation's own model endpoint.
#[derive(Clone, Debug, Default)]
pub struct DefaultProvider {
    /// Base URL of the OpenAI-compatible API.
    pub base_url: String,
    /// API key, if the endpoint requires one.
    pub api_key: Option<SecretString>,
    /// Model for agents that name none.
    pub model: String,
    /// Dialect in which the endpoint is called.
    pub api: ProviderApi,
    /// True if the endpoint continues an unfinished assistant message.
    pub continues_prefix: bool,
    /// True if the model sees pictures.
    pub vision: bool,
    /// True for the built-in demo model.
    pub is_demo: bool,
    /// Provider to call if this one fails before the first token.
    pub fallback: Option<Box<DefaultProvider>>,
}

/// Resolves endpoints from the catalog and the installation's settings.
#[derive(Clone)]
pub(crate) struct ProviderResolver {
    /// Providers of the organizations.
    pub(crate) catalog: CatalogCache,
    /// Decrypts their API keys.
    pub(crate) vault: SecretVault,
    pub(crate) installed: DefaultProvider,
}

impl ProviderResolver {
    /// Returns the agent's provider and its fallback, or the installation's. A deleted provider is
    /// skipped: the messages of a tenant never go to another provider because of that.
    pub(crate) async fn endpoints_of(
        &self,
        agent: &Agent,
    ) -> Result<Vec<ModelEndpoint>, StoreError> {
        let mut endpoints = Vec::new();
        match &agent.provider {
            Some(id) => endpoints.extend(
                self.configured_endpoint(agent, id, agent.settings.model.as_deref())
                    .await?,
            ),
            None => endpoints.extend(self.endpoints_without_provider(agent).await?),
        }
        if let Some(id) = &agent.fallback_provider {
            // The agent's model is a name at its own provider; the fallback has its own model.
            endpoints.extend(self.configured_endpoint(agent, id, None).await?);
        }
        Ok(endpoints)
    }

    /// Returns the endpoints of an agent that names no provider: those of the installation, or of
    /// the first provider of its organization while the installation has no model. So a provider
    /// that is added replaces the demo model at once.
    async fn endpoints_without_provider(
        &self,
        agent: &Agent,
    ) -> Result<Vec<ModelEndpoint>, StoreError> {
        let model = agent.settings.model.as_deref();
        if self.installed.is_demo || self.installed.base_url.is_empty() {
            let sealed = self.catalog.first_provider(&agent.org_id).await?;
            let endpoint = sealed.and_then(|sealed| self.open_endpoint(agent, &sealed, model));
            if let Some(endpoint) = endpoint {
                return Ok(vec![endpoint]);
            }
        }
        Ok(self.default_endpoints(model))
    }

    /// Returns the embedding model of the agent's provider, if it has one.
    pub(crate) async fn embedding_endpoint(
        &self,
        agent: &Agent,
    ) -> Result<Option<ModelEndpoint>, StoreError> {
        let Some(id) = &agent.provider else {
            return Ok(None);
        };
        let Some(sealed) = self.catalog.provider(&agent.org_id, id).await? else {
            return Ok(None);
        };
        let model = sealed.provider.embedding_model.as_deref();
        Ok(model.and_then(|model| self.open_endpoint(agent, &sealed, Some(model))))
    }

    async fn configured_endpoint(
        &self,
        agent: &Agent,
        id: &ProviderId,
        model: Option<&str>,
    ) -> Result<Option<ModelEndpoint>, StoreError> {
        let Some(sealed) = self.catalog.provider(&agent.org_id, id).await? else {
            tracing::warn!(agent.id = %agent.id, provider.id = %id, "the agent's provider is gone");
            return Ok(None);
        };
        Ok(self.open_endpoint(agent, &sealed, model))
    }

    fn open_endpoint(
        &self,
        agent: &Agent,
        sealed: &SealedProvider,
        model: Option<&str>,
    ) -> Option<ModelEndpoint> {
        let provider = &sealed.provider;
        let api_key = if sealed.sealed_key.is_empty() {
            None
        } else {
            match self.vault.open(&agent.org_id, &sealed.sealed_key) {
                Ok(key) => Some(key),
                Err(error) => {
                    tracing::error!(provider.id = %provider.id, %error, "provider left out");
                    return None;
                }
            }
        };
        Some(configured_endpoint(provider, api_key, model))
    }

    /// Returns the installation's provider and its fallbacks.
    fn default_endpoints(&self, model: Option<&str>) -> Vec<ModelEndpoint> {
        let chain = std::iter::successors(Some(&self.installed), |provider| {
            provider.fallback.as_deref()
        });
        let endpoints = chain.enumerate().map(|(place, provider)| {
            let model = model.filter(|_| place == 0).unwrap_or(&provider.model);
            ModelEndpoint {
                base_url: provider.base_url.trim().to_owned(),
                api_key: provider.api_key.as_ref().and_then(trimmed),
                model: model.trim().to_owned(),
                api: provider.api,
                continues_prefix: provider.continues_prefix,
                vision: provider.vision,
                first_token_timeout: None,
                reach: AddressReach::Any,
            }
        });
        endpoints.collect()
    }
}

/// Returns the endpoint of a provider, with its own model if none is given.
pub(super) fn configured_endpoint(
    provider: &Provider,
    api_key: Option<SecretString>,
    model: Option<&str>,
) -> ModelEndpoint {
    ModelEndpoint {
        base_url: provider.base_url.trim().to_owned(),
        api_key: api_key.as_ref().and_then(trimmed),
        model: model.unwrap_or(&provider.model).trim().to_owned(),
        api: provider.api,
        continues_prefix: provider.continues_prefix,
        vision: provider.vision,
        first_token_timeout: provider.first_token_timeout(),
        reach: if provider.chosen_by_operator {
            AddressReach::Any
        } else {
            AddressReach::Public
        },
    }
}

/// Returns a key without white space around it: keys are pasted with line ends.
fn trimmed(key: &SecretString) -> Option<SecretString> {
    let key = key.expose_secret().trim();
    (!key.is_empty()).then(|| key.into())
}
