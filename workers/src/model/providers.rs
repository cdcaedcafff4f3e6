//! Which endpoints may answer for an agent, in the order in which they are asked, and which may give vectors.

use secrecy::SecretString;
use switchboard_backends::{
    catalog::cache::{CatalogCache, SealedProvider},
    store::StoreError,
    vault::SecretVault,
};
use switchboard_schemas::{agent::Agent, ids::ProviderId};

use super::Endpoint;
use crate::DefaultProvider;

/// Finds endpoints.
#[derive(Clone)]
pub(crate) struct Providers {
    /// The organizations' own.
    pub(crate) catalog: CatalogCache,
    /// Opens their keys.
    pub(crate) vault: SecretVault,
    /// The installation's.
    pub(crate) installed: DefaultProvider,
}

impl Providers {
    /// The agent's provider and its fallback, else the installation's. A provider that is gone is left out: another one
    /// never sees a tenant's messages because of that.
    pub(crate) async fn of(&self, agent: &Agent) -> Result<Vec<Endpoint>, StoreError> {
        let mut endpoints = Vec::new();
        match &agent.provider {
            Some(id) => endpoints.extend(
                self.configured(agent, id, agent.settings.model.as_deref())
                    .await?,
            ),
            None => endpoints.extend(self.chain(agent.settings.model.as_deref())),
        }
        if let Some(id) = &agent.fallback_provider {
            // The agent's model is a name at its own provider; the fallback has one of its own.
            endpoints.extend(self.configured(agent, id, None).await?);
        }
        Ok(endpoints)
    }

    /// The embedding model of the agent's provider, if it has one.
    pub(crate) async fn embedding(&self, agent: &Agent) -> Result<Option<Endpoint>, StoreError> {
        let Some(id) = &agent.provider else {
            return Ok(None);
        };
        let Some(sealed) = self.catalog.provider(&agent.org_id, id).await? else {
            return Ok(None);
        };
        let model = sealed.provider.embedding_model.as_deref();
        Ok(model.and_then(|model| self.opened(agent, &sealed, Some(model))))
    }

    async fn configured(
        &self,
        agent: &Agent,
        id: &ProviderId,
        model: Option<&str>,
    ) -> Result<Option<Endpoint>, StoreError> {
        let Some(sealed) = self.catalog.provider(&agent.org_id, id).await? else {
            tracing::warn!(agent.id = %agent.id, provider.id = %id, "the agent's provider is gone");
            return Ok(None);
        };
        Ok(self.opened(agent, &sealed, model))
    }

    fn opened(
        &self,
        agent: &Agent,
        sealed: &SealedProvider,
        model: Option<&str>,
    ) -> Option<Endpoint> {
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
        let model = model.unwrap_or(&provider.model);
        Some(endpoint(
            &provider.base_url,
            api_key,
            model,
            provider.continues_prefix,
        ))
    }

    /// The installation's provider and the fallbacks behind it.
    fn chain(&self, model: Option<&str>) -> Vec<Endpoint> {
        let chain = std::iter::successors(Some(&self.installed), |provider| {
            provider.fallback.as_deref()
        });
        let endpoints = chain.enumerate().map(|(place, provider)| {
            let model = model.filter(|_| place == 0).unwrap_or(&provider.model);
            endpoint(
                &provider.base_url,
                provider.api_key.clone(),
                model,
                provider.continues_prefix,
            )
        });
        endpoints.collect()
    }
}

fn endpoint(
    base_url: &str,
    api_key: Option<SecretString>,
    model: &str,
    continues_prefix: bool,
) -> Endpoint {
    Endpoint {
        base_url: base_url.to_owned(),
        api_key,
        model: model.to_owned(),
        continues_prefix,
    }
}
