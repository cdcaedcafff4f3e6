//! Makes a document so: all of it is checked, then all of it is written. Ids are derived from slugs, so that applying a
//! document twice, or from two places at once, makes one thing.

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::StoreError,
    vault::UnsealError,
};
use switchboard_schemas::{
    agent::Agent,
    ids::{AgentId, OrgId, ProviderId, TeamId},
    organization::Organization,
    provider::Provider,
    team::{Team, TeamMember},
};

use super::{
    audit_fields::WrittenEntry,
    check::check,
    document::{
        AgentDocument, Document, Invalid, OrganizationDocument, ProviderDocument, TeamDocument,
    },
    keys::{AppliedKey, apply_keys},
    publish_changes::publish_changes,
};
pub use crate::state::apply_context::ApplyContext;

/// Why a document was not applied. Only [`ApplyError::Store`] can leave a part of it written; applying it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The document has a mistake; nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The catalogue did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A provider's key could not be sealed.
    #[error(transparent)]
    Seal(#[from] UnsealError),
}

/// The document with ids. Holds the values of new keys, and is therefore not to be logged.
#[derive(Serialize)]
pub struct Applied {
    /// In the document's order.
    pub organizations: Vec<AppliedOrganization>,
    /// What was written for it.
    #[serde(skip)]
    pub(super) written: Vec<WrittenEntry>,
}

/// An organization with ids.
#[derive(Serialize)]
pub struct AppliedOrganization {
    /// As in the document.
    pub slug: String,
    /// Its id.
    pub id: OrgId,
    /// Its providers.
    pub providers: Vec<AppliedEntry<ProviderId>>,
    /// Its agents.
    pub agents: Vec<AppliedEntry<AgentId>>,
    /// Its teams.
    pub teams: Vec<AppliedEntry<TeamId>>,
    /// Its keys.
    pub keys: Vec<AppliedKey>,
}

/// A thing of an organization with its id.
#[derive(Serialize)]
pub struct AppliedEntry<Id> {
    /// As in the document.
    pub slug: String,
    /// Its id.
    pub id: Id,
}

/// Makes `document` so.
pub async fn apply(context: &ApplyContext, document: Document) -> Result<Applied, ApplyError> {
    let _guard = context.write_lock.lock().await;
    check(&document)?;
    let mut entries = Vec::new();
    for (index, organization) in document.organizations.iter().enumerate() {
        let plan = Plan {
            context,
            organization,
            id: OrgId::derive(&context.secret, &organization.slug),
        };
        entries.extend(plan.entries(&format!("organizations[{index}]")).await?);
    }
    let mut written = Vec::new();
    for entry in entries {
        written.extend(write_if_changed(context, entry).await?);
    }
    let mut organizations = Vec::new();
    for organization in document.organizations {
        let (applied, keys) = applied(context, organization).await?;
        organizations.push(applied);
        written.extend(keys);
    }
    publish_changes(
        context,
        &written
            .iter()
            .map(|written| &written.after)
            .collect::<Vec<_>>(),
    )
    .await;
    Ok(Applied {
        organizations,
        written,
    })
}

/// The entry that the one thing of `organization` stands for, as [`apply`] would write it. Writes nothing.
pub(super) async fn planned_entry(
    context: &ApplyContext,
    organization: &OrganizationDocument,
    path: &str,
) -> Result<Option<CatalogEntry>, ApplyError> {
    let plan = Plan {
        context,
        organization,
        id: OrgId::derive(&context.secret, &organization.slug),
    };
    Ok(plan.entries(path).await?.pop())
}

/// A document that was applied before costs reads only, and tells no one of a change.
async fn write_if_changed(
    context: &ApplyContext,
    after: CatalogEntry,
) -> Result<Option<WrittenEntry>, StoreError> {
    let before = context.catalog.get(after.kind(), after.id()).await?;
    if before.as_ref() == Some(&after) {
        return Ok(None);
    }
    context.catalog.put(&after).await?;
    Ok(Some(WrittenEntry { before, after }))
}

async fn applied(
    context: &ApplyContext,
    organization: OrganizationDocument,
) -> Result<(AppliedOrganization, Vec<WrittenEntry>), ApplyError> {
    let id = OrgId::derive(&context.secret, &organization.slug);
    let (keys, new_keys) = apply_keys(context, &id, organization.keys).await?;
    let secret = &context.secret;
    let providers = organization
        .providers
        .into_iter()
        .map(|provider| provider.slug);
    let agents = organization
        .agents
        .into_iter()
        .map(|agent| agent.names.slug);
    let teams = organization.teams.into_iter().map(|team| team.slug);
    let applied = AppliedOrganization {
        providers: providers
            .map(|slug| AppliedEntry {
                id: ProviderId::derive(secret, &id, &slug),
                slug,
            })
            .collect(),
        agents: agents
            .map(|slug| AppliedEntry {
                id: AgentId::derive(secret, &id, &slug),
                slug,
            })
            .collect(),
        teams: teams
            .map(|slug| AppliedEntry {
                id: TeamId::derive(secret, &id, &slug),
                slug,
            })
            .collect(),
        slug: organization.slug,
        id,
        keys,
    };
    Ok((applied, new_keys))
}

/// The entries that one organization of the document asks for.
struct Plan<'a> {
    context: &'a ApplyContext,
    organization: &'a OrganizationDocument,
    id: OrgId,
}

impl Plan<'_> {
    /// All entries but keys, each before those that name it. Reads the catalogue and writes nothing.
    async fn entries(&self, path: &str) -> Result<Vec<CatalogEntry>, ApplyError> {
        let OrganizationDocument { slug, name, .. } = self.organization;
        let organization = Organization {
            id: self.id.clone(),
            slug: slug.clone(),
            name: name.clone(),
        };
        let mut entries = vec![CatalogEntry::Organization(organization)];
        for provider in &self.organization.providers {
            entries.push(self.provider(provider).await?);
        }
        for (index, agent) in self.organization.agents.iter().enumerate() {
            entries.push(
                self.agent(agent, &format!("{path}.agents[{index}]"))
                    .await?,
            );
        }
        for (index, team) in self.organization.teams.iter().enumerate() {
            entries.push(self.team(team, &format!("{path}.teams[{index}]")).await?);
        }
        Ok(entries)
    }

    async fn provider(&self, document: &ProviderDocument) -> Result<CatalogEntry, ApplyError> {
        let id = ProviderId::derive(&self.context.secret, &self.id, &document.slug);
        let kept = match self
            .context
            .catalog
            .get(EntryKind::Provider, id.as_str())
            .await?
        {
            Some(CatalogEntry::Provider { sealed_key, .. }) => sealed_key,
            _ => Vec::new(),
        };
        let provider = Provider {
            id,
            org_id: self.id.clone(),
            slug: document.slug.clone(),
            base_url: document.base_url.trim_end_matches('/').to_owned(),
            model: document.model.clone(),
            embedding_model: document.embedding_model.clone(),
            continues_prefix: document.continues_prefix,
        };
        Ok(CatalogEntry::Provider {
            provider,
            sealed_key: self.sealed_key(document.api_key.as_ref(), kept)?,
        })
    }

    /// Sealing the same key again gives other bytes: what is kept already is kept as it is.
    fn sealed_key(
        &self,
        wanted: Option<&SecretString>,
        kept: Vec<u8>,
    ) -> Result<Vec<u8>, UnsealError> {
        let Some(wanted) = wanted else {
            return Ok(kept);
        };
        if wanted.expose_secret().is_empty() {
            return Ok(Vec::new());
        }
        let opened = self.context.vault.open(&self.id, &kept).ok();
        if opened.is_some_and(|opened| opened.expose_secret() == wanted.expose_secret()) {
            return Ok(kept);
        }
        self.context.vault.seal(&self.id, wanted)
    }

    async fn agent(
        &self,
        document: &AgentDocument,
        path: &str,
    ) -> Result<CatalogEntry, ApplyError> {
        let AgentDocument { names, settings } = document;
        let provider = self
            .provider_named(names.provider.as_deref(), &format!("{path}.provider"))
            .await?;
        let fallback = names.fallback_provider.as_deref();
        Ok(CatalogEntry::Agent(Box::new(Agent {
            id: AgentId::derive(&self.context.secret, &self.id, &names.slug),
            org_id: self.id.clone(),
            slug: names.slug.clone(),
            name: names.name.clone(),
            provider,
            fallback_provider: self
                .provider_named(fallback, &format!("{path}.fallbackProvider"))
                .await?,
            settings: settings.clone(),
        })))
    }

    async fn team(&self, document: &TeamDocument, path: &str) -> Result<CatalogEntry, ApplyError> {
        let mut members = Vec::with_capacity(document.members.len());
        for (index, member) in document.members.iter().enumerate() {
            let agent = self
                .agent_named(&member.agent, &format!("{path}.members[{index}].agent"))
                .await?;
            members.push(TeamMember {
                agent,
                specialization: member.specialization.clone(),
            });
        }
        let default_agent = match &document.default_agent {
            Some(slug) => Some(
                self.agent_named(slug, &format!("{path}.defaultAgent"))
                    .await?,
            ),
            None => None,
        };
        Ok(CatalogEntry::Team(Team {
            id: TeamId::derive(&self.context.secret, &self.id, &document.slug),
            org_id: self.id.clone(),
            slug: document.slug.clone(),
            name: document.name.clone(),
            description: document.description.clone(),
            routing: document.routing,
            default_agent,
            members,
            public: document.public,
            status: document.status,
        }))
    }

    async fn provider_named(
        &self,
        slug: Option<&str>,
        path: &str,
    ) -> Result<Option<ProviderId>, ApplyError> {
        let Some(slug) = slug else { return Ok(None) };
        let id = ProviderId::derive(&self.context.secret, &self.id, slug);
        let in_document = self
            .organization
            .providers
            .iter()
            .any(|provider| provider.slug == slug);
        self.must_exist(in_document, EntryKind::Provider, id.as_str(), path)
            .await?;
        Ok(Some(id))
    }

    async fn agent_named(&self, slug: &str, path: &str) -> Result<AgentId, ApplyError> {
        let id = AgentId::derive(&self.context.secret, &self.id, slug);
        let in_document = self
            .organization
            .agents
            .iter()
            .any(|agent| agent.names.slug == slug);
        self.must_exist(in_document, EntryKind::Agent, id.as_str(), path)
            .await?;
        Ok(id)
    }

    async fn must_exist(
        &self,
        in_document: bool,
        kind: EntryKind,
        id: &str,
        path: &str,
    ) -> Result<(), ApplyError> {
        if in_document || self.context.catalog.get(kind, id).await?.is_some() {
            return Ok(());
        }
        Err(Invalid::new(
            path,
            format!("names no {} of this organization", kind.name()),
        )
        .into())
    }
}
