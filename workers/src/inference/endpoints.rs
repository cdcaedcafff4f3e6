//! Which endpoints may answer for an agent, in the order in which they are asked.

use secrecy::SecretString;
use switchboard_backends::store::StoreError;
use switchboard_schemas::{agent::Agent, ids::ProviderId};

use super::Inference;
use crate::{DefaultProvider, model::Endpoint};

/// The agent's provider and its fallback, else the installation's. A provider that is gone is left out: another one
/// never sees a tenant's messages because of that.
pub(super) async fn of(inference: &Inference, agent: &Agent) -> Result<Vec<Endpoint>, StoreError> {
    let mut endpoints = Vec::new();
    match &agent.provider {
        Some(id) => endpoints.extend(configured(inference, agent, id, agent.settings.model.as_deref()).await?),
        None => endpoints.extend(installed(&inference.default_provider, agent.settings.model.as_deref())),
    }
    if let Some(id) = &agent.fallback_provider {
        // The agent's model is a name at its own provider; the fallback has one of its own.
        endpoints.extend(configured(inference, agent, id, None).await?);
    }
    Ok(endpoints)
}

async fn configured(
    inference: &Inference,
    agent: &Agent,
    id: &ProviderId,
    model: Option<&str>,
) -> Result<Option<Endpoint>, StoreError> {
    let Some(sealed) = inference.catalog.provider(&agent.org_id, id).await? else {
        tracing::warn!(agent.id = %agent.id, provider.id = %id, "the agent's provider is gone");
        return Ok(None);
    };
    let api_key = if sealed.sealed_key.is_empty() {
        None
    } else {
        match inference.vault.open(&agent.org_id, &sealed.sealed_key) {
            Ok(key) => Some(key),
            Err(error) => {
                tracing::error!(provider.id = %id, %error, "provider left out");
                return Ok(None);
            }
        }
    };
    let provider = &sealed.provider;
    Ok(Some(endpoint(&provider.base_url, api_key, model.unwrap_or(&provider.model), provider.continues_prefix)))
}

/// The installation's provider and the fallbacks behind it.
fn installed(provider: &DefaultProvider, model: Option<&str>) -> Vec<Endpoint> {
    let chain = std::iter::successors(Some(provider), |provider| provider.fallback.as_deref());
    let endpoints = chain.enumerate().map(|(place, provider)| {
        let model = model.filter(|_| place == 0).unwrap_or(&provider.model);
        endpoint(&provider.base_url, provider.api_key.clone(), model, provider.continues_prefix)
    });
    endpoints.collect()
}

fn endpoint(base_url: &str, api_key: Option<SecretString>, model: &str, continues_prefix: bool) -> Endpoint {
    Endpoint { base_url: base_url.to_owned(), api_key, model: model.to_owned(), continues_prefix }
}
