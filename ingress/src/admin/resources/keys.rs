//! API keys of an organization. Only the response that creates a key contains its text.

use serde::{Deserialize, Serialize};
use switchboard_backends::{
    StoreError,
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{
    api_key::{ApiKey, KeyLimits, KeyScope},
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    references::ResourceReferences,
    resource::{Resource, ResourceIdentity},
};
use crate::{
    admin::{
        bounds::{REQUESTS_PER_MINUTE_MAX, SCOPES_MAX},
        errors::{ValidateFields, ValidationError},
        permissions::ManageKeys,
        planner::{ApplyError, EntryPlanner},
        validation::{check_at_most, check_name, check_range},
    },
    http::ApiResult,
};

pub(in crate::admin) struct KeyResource;

/// The configuration of an API key.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct KeyFields {
    /// The name, which no other key of the organization has.
    #[schema(min_length = 1, max_length = 200)]
    pub(in crate::admin) name: String,
    /// The parts of the public API that it gives access to; an empty list means all.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub(in crate::admin) scopes: Vec<KeyScope>,
    /// The time from which it is rejected; `null` for never.
    #[serde(default)]
    pub(in crate::admin) expires_at: Option<Timestamp>,
    /// The rate limits of the key.
    #[serde(default)]
    #[schema(value_type = KeyLimits)]
    pub(in crate::admin) limits: Option<KeyLimits>,
}

/// An API key in a response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct KeyView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    #[serde(flatten)]
    fields: KeyFields,
    /// The last four characters of its text.
    last_four: String,
    /// The time of its creation.
    created_at: Timestamp,
    /// The time of its last use, up to a minute late; `null` before the first.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
}

impl ValidateFields for KeyFields {
    fn validate(&self) -> Result<(), ValidationError> {
        check_name(&self.name)?;
        check_at_most(self.scopes.len(), SCOPES_MAX, "scopes")?;
        let limits = self.limits.clone().unwrap_or_default();
        let check = |limit: Option<u32>, name| {
            check_range(limit.unwrap_or(1), 1..=REQUESTS_PER_MINUTE_MAX, name)
        };
        check(limits.chat_per_minute, "limits.chatPerMinute")?;
        check(limits.config_per_minute, "limits.configPerMinute")?;
        let path = "limits.conversationsPerMinute";
        check(limits.conversations_per_minute, path)
    }
}

impl Resource for KeyResource {
    const KIND: EntryKind = EntryKind::Key;
    const NAME: &'static str = "Key";
    const COLLECTION: &'static str = "keys";
    const VOLATILE_FIELDS: &'static [&'static str] = &["lastUsedAt"];
    type Change = ManageKeys;
    type Delete = ManageKeys;
    type Fields = KeyFields;
    type View = KeyView;
    type Item = KeyView;

    fn fields(entry: &CatalogEntry, _: &ResourceReferences) -> Option<KeyFields> {
        let CatalogEntry::Key { key, .. } = entry else {
            return None;
        };
        Some(KeyFields {
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            expires_at: key.expires_at,
            limits: Some(key.limits.clone()),
        })
    }

    fn item(entry: &CatalogEntry, references: &ResourceReferences) -> ApiResult<KeyView> {
        Self::show(entry, None, references)
    }

    fn view(
        identity: ResourceIdentity,
        fields: KeyFields,
        entry: &CatalogEntry,
        references: &ResourceReferences,
    ) -> Option<KeyView> {
        let CatalogEntry::Key { key, .. } = entry else {
            return None;
        };
        Some(KeyView {
            identity,
            fields,
            last_four: key.last_four.clone(),
            created_at: key.created_at,
            last_used_at: references.last_use(entry.id()),
        })
    }

    /// Returns a changed key only; the handler that creates a key generates its text.
    async fn plan(
        planner: &EntryPlanner<'_>,
        fields: &KeyFields,
        current: Option<&CatalogEntry>,
    ) -> Result<CatalogEntry, ApplyError> {
        let Some(CatalogEntry::Key { key, hash }) = current else {
            return Err(StoreError::Malformed("an entry of another kind is no key".into()).into());
        };
        check_key_ceilings(planner, fields, Some(&key.limits))?;
        if fields.name != key.name {
            refuse_taken_name(planner, &fields.name).await?;
        }
        let key = ApiKey {
            name: fields.name.clone(),
            scopes: fields.scopes.clone(),
            expires_at: fields.expires_at,
            limits: fields.limits.clone().unwrap_or_default(),
            ..key.clone()
        };
        Ok(CatalogEntry::Key { key, hash: *hash })
    }
}

/// Fails if a member sets a rate limit above the ceiling of the operator.
pub(super) fn check_key_ceilings(
    planner: &EntryPlanner<'_>,
    fields: &KeyFields,
    current: Option<&KeyLimits>,
) -> Result<(), ValidationError> {
    type RateLimit = fn(&KeyLimits) -> Option<u32>;
    let limits = fields.limits.clone().unwrap_or_default();
    let rates: [(RateLimit, &str); 3] = [
        (|limits| limits.chat_per_minute, "limits.chatPerMinute"),
        (|limits| limits.config_per_minute, "limits.configPerMinute"),
        (
            |limits| limits.conversations_per_minute,
            "limits.conversationsPerMinute",
        ),
    ];
    let ceiling = planner.context.ceilings.requests_per_minute_max;
    rates.into_iter().try_for_each(|(rate, path)| {
        let value = rate(&limits).unwrap_or_default();
        planner.check_ceiling(value, current.and_then(rate), ceiling, path)
    })
}

/// Fails with 409 if a key has this name, because documents identify keys by name.
pub(super) async fn refuse_taken_name(
    planner: &EntryPlanner<'_>,
    name: &str,
) -> Result<(), ApplyError> {
    let catalog = &planner.context.catalog;
    let keys = catalog.list(EntryKind::Key, Some(planner.org)).await?;
    match keys.iter().find(|entry| entry.label() == name) {
        Some(taken) => Err(ApplyError::NameTaken(taken.id().to_owned())),
        None => Ok(()),
    }
}
