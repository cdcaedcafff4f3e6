//! Plans catalog entries: resolves references to other resources and reports those that do not
//! exist.

use switchboard_backends::{
    StoreError,
    catalog::{CatalogEntry, EntryKind},
    vault::UnsealError,
};
use switchboard_schemas::{
    agent::AgentSettings,
    ids::{AgentId, OrgId, ProviderId},
    organization::Organization,
};

use super::errors::ValidationError;
use crate::{
    http::{ApiError, ErrorCode},
    state::{AddressUsage, apply_context::ApplyContext},
};

/// A failure to apply a document or to change a resource. Only [`ApplyError::Store`] can leave a
/// document partly written; applying it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A field is invalid; nothing was written.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The catalog failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A provider's key could not be sealed.
    #[error(transparent)]
    Seal(#[from] UnsealError),
    /// Another key, with this id, has the same name.
    #[error("a key with this name exists already")]
    NameTaken(String),
}

impl ApplyError {
    pub(super) fn below(self, path: &str) -> Self {
        match self {
            Self::Invalid(error) => Self::Invalid(error.below(path)),
            other => other,
        }
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Invalid(error) => error.into(),
            ApplyError::Store(error) => error.into(),
            ApplyError::Seal(error) => Self::internal(&error),
            ApplyError::NameTaken(ref id) => Self::new(ErrorCode::Conflict, error.to_string())
                .param("name")
                .details(serde_json::json!({ "id": id })),
        }
    }
}

/// The references of a document that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceChecks {
    All,
    /// None, because a resource that others may refer to was refused.
    None,
}

/// Slugs of the resources of one document.
#[derive(Default)]
pub(super) struct DeclaredSlugs<'a> {
    /// Slugs of its providers.
    pub(super) providers: Vec<&'a str>,
    /// Its agents.
    pub(super) agents: Vec<DeclaredAgent<'a>>,
}

/// An agent of a document.
#[derive(Clone, Copy)]
pub(super) struct DeclaredAgent<'a> {
    pub(super) slug: &'a str,
    pub(super) settings: &'a AgentSettings,
}

/// The author of a change of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeAuthor {
    /// The operator of the installation.
    Operator,
    /// A member of the organization.
    Member,
}

/// A planner of catalog entries of one organization.
pub(super) struct EntryPlanner<'a> {
    /// The catalog and the secrets.
    pub(super) context: &'a ApplyContext,
    /// The organization of the entries.
    pub(super) org: &'a OrgId,
    pub(super) author: ChangeAuthor,
    /// Resources that can be referred to before they are written.
    pub(super) declared: DeclaredSlugs<'a>,
    /// True for a draft, which is tried and not saved.
    pub(super) is_draft: bool,
}

impl<'a> EntryPlanner<'a> {
    /// Creates a planner of one resource, which refers to stored resources only.
    pub(super) fn of_one(context: &'a ApplyContext, org: &'a OrgId, author: ChangeAuthor) -> Self {
        Self {
            context,
            org,
            author,
            declared: DeclaredSlugs::default(),
            is_draft: false,
        }
    }

    pub(super) async fn organization(
        &self,
        slug: &str,
        name: &str,
    ) -> Result<CatalogEntry, StoreError> {
        Ok(CatalogEntry::Organization(Organization {
            id: self.context.organization_id(slug).await?,
            slug: slug.to_owned(),
            name: name.to_owned(),
        }))
    }

    /// Returns the id of the provider with this slug; `path` is the field that refers to it.
    pub(super) async fn find_provider(
        &self,
        slug: Option<&str>,
        path: &str,
    ) -> Result<Option<ProviderId>, ApplyError> {
        let Some(slug) = slug else { return Ok(None) };
        let id = ProviderId::derive(&self.context.secret, self.org, slug);
        let is_declared = self.declared.providers.contains(&slug);
        self.check_exists(is_declared, EntryKind::Provider, id.as_str(), path)
            .await?;
        Ok(Some(id))
    }

    /// Returns the id of the agent with this slug; `path` is the field that refers to it.
    pub(super) async fn find_agent(&self, slug: &str, path: &str) -> Result<AgentId, ApplyError> {
        let id = AgentId::derive(&self.context.secret, self.org, slug);
        let is_declared = self.declared_agent(slug).is_some();
        self.check_exists(is_declared, EntryKind::Agent, id.as_str(), path)
            .await?;
        Ok(id)
    }

    /// Returns the agent with this slug of the document, if it is in there.
    pub(super) fn declared_agent(&self, slug: &str) -> Option<&DeclaredAgent<'a>> {
        self.declared.agents.iter().find(|agent| agent.slug == slug)
    }

    /// Returns true if the agent with this slug meets a condition, as the document or the catalog
    /// has it.
    pub(super) async fn agent_is(
        &self,
        slug: &str,
        condition: impl Fn(&AgentSettings) -> bool,
    ) -> Result<bool, ApplyError> {
        if let Some(declared) = self.declared_agent(slug) {
            return Ok(condition(declared.settings));
        }
        let id = AgentId::derive(&self.context.secret, self.org, slug);
        let stored = self.context.catalog.get(EntryKind::Agent, id.as_str());
        Ok(match stored.await? {
            Some(CatalogEntry::Agent(agent)) => condition(&agent.settings),
            _ => false,
        })
    }

    /// Fails if a member sets a number above a ceiling of the operator; `current` is the stored
    /// number, which may stay.
    pub(super) fn check_ceiling(
        &self,
        value: u32,
        current: Option<u32>,
        ceiling: u32,
        path: &str,
    ) -> Result<(), ValidationError> {
        let may_stay = self.author == ChangeAuthor::Operator || current == Some(value);
        if may_stay || value <= ceiling {
            return Ok(());
        }
        let reason =
            format!("must be at most {ceiling}, which the operator of this installation has set");
        Err(ValidationError::new(path, reason))
    }

    /// Fails if the workers may not connect to an address; `path` is its field.
    pub(super) async fn check_address(
        &self,
        usage: AddressUsage,
        address: &str,
        path: &str,
    ) -> Result<(), ApplyError> {
        if self.is_draft {
            return Ok(());
        }
        let Some(check) = self.context.address_check.get() else {
            return Ok(());
        };
        match check(usage, address.to_owned()).await {
            Some(reason) => Err(ValidationError::new(path, reason).into()),
            None => Ok(()),
        }
    }

    async fn check_exists(
        &self,
        is_declared: bool,
        kind: EntryKind,
        id: &str,
        path: &str,
    ) -> Result<(), ApplyError> {
        if is_declared || self.context.catalog.get(kind, id).await?.is_some() {
            return Ok(());
        }
        let reason = format!("names no {} of this organization", kind.name());
        Err(ValidationError::new(path, reason).into())
    }
}
