//! Model providers of an organization. Their keys are written and never read back.

use std::ops::RangeInclusive;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    vault::UnsealError,
};
use switchboard_schemas::{
    ids::ProviderId,
    provider::{Provider, ProviderApi, is_sendable_key},
};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::{
    admin::{
        bodies::JsonObject,
        bounds::{LINK_BYTES_MAX, PROVIDER_KEY_CHARS_MAX},
        errors::{ValidateFields, ValidationError},
        permissions::Configure,
        planner::{ApplyError, ChangeAuthor, EntryPlanner},
        validation::{
            WEB_ADDRESS_RULE, check_chars, check_model_name, check_range, check_slug,
            has_credentials, is_web_address,
        },
    },
    http::ApiResult,
    state::AddressUsage,
};

/// Bounds of a provider's own limit for the first token, in milliseconds.
const FIRST_TOKEN_TIMEOUT_MS: RangeInclusive<u32> = 1_000..=90_000;

pub(in crate::admin) struct ProviderResource;

/// The configuration of a model provider.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct ProviderFields {
    /// The name in references, from which the id is derived; never changes.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub(in crate::admin) slug: String,
    /// The base URL of an OpenAI-compatible API.
    #[serde(default = "default_base_url")]
    #[schema(max_length = 2_048)]
    pub(in crate::admin) base_url: String,
    /// The dialect of the API.
    #[serde(default)]
    pub(in crate::admin) api: ProviderApi,
    /// The provider's key. Absent, the stored key stays, unless `baseUrl` changes to another
    /// scheme, host or port; empty, it is removed. Never shown.
    #[serde(default, skip_serializing)]
    #[schema(value_type = Option<String>, write_only, max_length = 8_192)]
    pub(in crate::admin) api_key: Option<SecretString>,
    /// The model of agents without a model of their own.
    #[serde(default = "default_model")]
    #[schema(max_length = 200)]
    pub(in crate::admin) model: String,
    /// The model that computes embeddings.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub(in crate::admin) embedding_model: Option<String>,
    /// `true` if the model can continue the beginning of a reply.
    #[serde(default)]
    pub(in crate::admin) continues_prefix: bool,
    /// `true` if the models see pictures.
    #[serde(default)]
    pub(in crate::admin) vision: bool,
    /// The longest time that the model may stay silent before its first token, in milliseconds from
    /// 1000 to 90000; that of the installation if absent.
    #[serde(default)]
    #[schema(minimum = 1_000, maximum = 90_000)]
    pub(in crate::admin) first_token_timeout_ms: Option<u32>,
}

/// A model provider in a response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ProviderView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: ProviderFields,
    /// `true` if a key is stored.
    has_api_key: bool,
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
}

fn default_model() -> String {
    "gpt-5.4-mini".to_owned()
}

impl ValidateFields for ProviderFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_slug(&self.slug)?;
        check_chars(&self.base_url, LINK_BYTES_MAX, "baseUrl")?;
        check_base_url(self.base_url.trim())?;
        check_model_name("model", &self.model)?;
        if let Some(model) = &self.embedding_model {
            check_model_name("embeddingModel", model)?;
        }
        let key = self.api_key.as_ref().map(ExposeSecret::expose_secret);
        check_chars(key.unwrap_or_default(), PROVIDER_KEY_CHARS_MAX, "apiKey")?;
        if !key.is_none_or(is_sendable_key) {
            let reason = "must be one word of printable ASCII characters";
            return Err(ValidationError::new("apiKey", reason));
        }
        let timeout = self.first_token_timeout_ms;
        timeout.map_or(Ok(()), |millis| {
            check_range(millis, FIRST_TOKEN_TIMEOUT_MS, "firstTokenTimeoutMs")
        })
    }
}

impl Resource for ProviderResource {
    const KIND: EntryKind = EntryKind::Provider;
    const NAME: &'static str = "Provider";
    const COLLECTION: &'static str = "providers";
    const REFERENCED_BY: &'static [EntryKind] = &[EntryKind::Agent];
    type Change = Configure;
    type Delete = Configure;
    type Fields = ProviderFields;
    type View = ProviderView;
    type Item = ProviderView;

    fn fields(entry: &CatalogEntry, _: &ResourceReferences) -> Option<ProviderFields> {
        let CatalogEntry::Provider { provider, .. } = entry else {
            return None;
        };
        Some(ProviderFields {
            slug: provider.slug.clone(),
            base_url: provider.base_url.clone(),
            api: provider.api,
            api_key: None,
            model: provider.model.clone(),
            embedding_model: provider.embedding_model.clone(),
            continues_prefix: provider.continues_prefix,
            vision: provider.vision,
            first_token_timeout_ms: provider.first_token_timeout_ms,
        })
    }

    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<ProviderView> {
        Self::show(entry, None, references)
    }

    fn view(
        identity: ResourceIdentity,
        fields: ProviderFields,
        entry: &CatalogEntry,
        _: &ResourceReferences,
    ) -> Option<ProviderView> {
        let CatalogEntry::Provider { sealed_key, .. } = entry else {
            return None;
        };
        Some(ProviderView {
            identity,
            fields,
            has_api_key: !sealed_key.is_empty(),
        })
    }

    /// Turns `null` into the empty key, because the merged fields never contain the stored key and
    /// an absent key means no change.
    fn prepare_patch(patch: &mut JsonObject) {
        if patch.get("apiKey") == Some(&Value::Null) {
            patch.insert("apiKey".into(), "".into());
        }
    }

    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: &ProviderFields,
        current: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        let EntryPlanner {
            context,
            org,
            author,
            ..
        } = planner;
        let id = ProviderId::derive(&context.secret, org, &fields.slug);
        let stored = context.catalog.get(EntryKind::Provider, id.as_str());
        let base_url = fields.base_url.trim().trim_end_matches('/');
        let stored_key = match stored.await? {
            // Otherwise who may change the address could have the key sent to a server of theirs.
            Some(CatalogEntry::Provider {
                provider,
                sealed_key,
            }) if is_same_server(&provider.base_url, base_url) => sealed_key,
            _ => Vec::new(),
        };
        // A change of something else does not make a member's address the operator's.
        let chosen_by_operator = match current {
            Some(CatalogEntry::Provider { provider, .. }) if provider.base_url == base_url => {
                provider.chosen_by_operator
            }
            _ if *author == ChangeAuthor::Operator => true,
            _ => {
                let usage = AddressUsage::Provider;
                planner.check_address(usage, base_url, "baseUrl").await?;
                false
            }
        };
        let provider = Provider {
            id,
            org_id: (*org).clone(),
            slug: fields.slug.clone(),
            base_url: base_url.to_owned(),
            api: fields.api,
            model: fields.model.trim().to_owned(),
            embedding_model: fields
                .embedding_model
                .as_deref()
                .map(|model| model.trim().to_owned()),
            continues_prefix: fields.continues_prefix,
            vision: fields.vision,
            first_token_timeout_ms: fields.first_token_timeout_ms,
            chosen_by_operator,
        };
        Ok(CatalogEntry::Provider {
            provider,
            sealed_key: seal_key(planner, fields.api_key.as_ref(), stored_key)?,
        })
    }
}

/// Checks a base URL, to which the paths of the API are appended.
fn check_base_url(base_url: &str) -> Result<(), ValidationError> {
    let reason = if !is_web_address(base_url) {
        WEB_ADDRESS_RULE
    } else if base_url.contains('#') || has_other_query(base_url) {
        "must not contain # or a query other than api-version, because paths are appended to it"
    } else if has_credentials(base_url) {
        "must not contain a user or a password, because responses show it"
    } else {
        return Ok(());
    };
    Err(ValidationError::new("baseUrl", reason))
}

/// Returns true if an address has a query of something else than Azure's classic API.
fn has_other_query(base_url: &str) -> bool {
    let query = base_url.split_once('?').map(|(_, query)| query);
    query.is_some_and(|query| !query.starts_with("api-version=") || query.contains('&'))
}

/// Returns true if both addresses have the same scheme, host and port.
fn is_same_server(one: &str, other: &str) -> bool {
    let server = |address: &str| -> Option<(String, String, u16)> {
        let uri: http::Uri = address.parse().ok()?;
        let default_port = if uri.scheme_str()? == "https" {
            443
        } else {
            80
        };
        let port = uri.port_u16().unwrap_or(default_port);
        let (scheme, host) = (uri.scheme_str()?, uri.host()?);
        Some((scheme.to_owned(), host.to_ascii_lowercase(), port))
    };
    server(one).is_some_and(|one| server(other) == Some(one))
}

/// Seals a provider's key. An equal stored key is kept, because every sealing yields different
/// bytes.
fn seal_key(
    EntryPlanner { context, org, .. }: &EntryPlanner<'_>,
    key: Option<&SecretString>,
    stored: Vec<u8>,
) -> Result<Vec<u8>, UnsealError> {
    // Keys are pasted with line ends.
    let Some(key) = key.map(|key| key.expose_secret().trim()) else {
        return Ok(stored);
    };
    if key.is_empty() {
        return Ok(Vec::new());
    }
    let opened = context.vault.open(org, &stored).ok();
    if opened.is_some_and(|opened| opened.expose_secret() == key) {
        return Ok(stored);
    }
    context.vault.seal(org, &key.into())
}
