//! Plans catalog entries: resolves references to other resources and reports those that do not
//! exist.

use switchboard_backends::{
    StoreError,
    catalog::{CatalogEntry, EntryKind},
    vault::UnsealError,
};
use switchboard_schemas::{
    ids::{AgentId, OrgId, ProviderId},
    organization::Organization,
};

use super::errors::ValidationError;
use crate::{
    http::{ApiError, ErrorCode},
    state::apply_context::ApplyContext,
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

/// Slugs of the resources of one document.
#[derive(Default)]
pub(super) struct DeclaredSlugs<'a> {
    /// Slugs of its providers.
    pub(super) providers: Vec<&'a str>,
    /// Slugs of its agents.
    pub(super) agents: Vec<&'a str>,
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
}

impl<'a> EntryPlanner<'a> {
    /// Creates a planner of one resource, which refers to stored resources only.
    pub(super) fn of_one(context: &'a ApplyContext, org: &'a OrgId, author: ChangeAuthor) -> Self {
        Self {
            context,
            org,
            author,
            declared: DeclaredSlugs::default(),
        }
    }

    pub(super) fn organization(&self, slug: &str, name: &str) -> CatalogEntry {
        CatalogEntry::Organization(Organization {
            id: OrgId::derive(&self.context.secret, slug),
            slug: slug.to_owned(),
            name: name.to_owned(),
        })
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
        let is_declared = self.declared.agents.contains(&slug);
        self.check_exists(is_declared, EntryKind::Agent, id.as_str(), path)
            .await?;
        Ok(id)
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
