//! The demo organization, which the first start of the embedded profile creates.

use std::time::Duration;

use anyhow::Context;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_ingress::{
    accounts::link::LinkMaker,
    admin::{
        apply::{ApplyContext, apply},
        document::ApplyDocument,
    },
};
use switchboard_schemas::{
    email::EmailAddress,
    ids::{AgentId, OrgId},
    user::UserState,
};

use crate::{config::ServiceConfig, installation::OpenInstallation, terminal::DemoAccess};

const DOCUMENT: &str = include_str!("demo.json");
const ORGANIZATION: &str = "demo";
const AGENT: &str = "guide";
/// Slug of the shop agent, which the demo page shows.
const SHOP: &str = "shop";
const KEY: &str = "demo";
/// Email address of the first account, in a domain that cannot be registered.
const OWNER: &str = "owner@demo.example";

/// Creates the demo organization if the catalog is empty, and returns the access to it while it
/// exists.
///
/// Its API key is stored in a private file of the data directory, so that every start can print a
/// working command; no other key is ever stored. A lost file is replaced by a new key. A sign-in
/// link is part of the access only if `shows_link`.
pub(crate) async fn prepare(
    config: &ServiceConfig,
    installation: &OpenInstallation,
    shows_link: bool,
) -> anyhow::Result<Option<DemoAccess>> {
    // The demo answers everybody who can reach it, at the cost of the operator's model.
    let is_private = config.ingress.listen.ip().is_loopback();
    let Some(data_dir) = installation
        .data_dir
        .as_ref()
        .filter(|_| config.demo && is_private)
    else {
        return Ok(None);
    };
    let context = ApplyContext::new(&installation.backends, installation.secret.clone());
    let org = context.organization_id(ORGANIZATION).await?;
    let organizations = installation
        .backends
        .catalog
        .list(EntryKind::Organization, None)
        .await?;
    let exists = organizations.iter().any(|entry| entry.id() == org.as_str());
    if !exists && !organizations.is_empty() {
        return Ok(None);
    }
    let key = match data_dir.demo_key().filter(|_| exists) {
        Some(key) => key,
        None => {
            let key = create(installation, &context, &org).await?;
            data_dir.store_demo_key(&key)?;
            key
        }
    };
    let agent_id = AgentId::derive(&installation.secret, &org, AGENT)
        .as_str()
        .to_owned();
    let shop_id = AgentId::derive(&installation.secret, &org, SHOP);
    Ok(Some(DemoAccess {
        agent_id,
        shop_id,
        key,
        sign_in_link: sign_in_link(config, installation, &org, shows_link).await?,
    }))
}

/// Returns a link to the first account if `shows_link`. There is none if that account was removed
/// or disabled and others exist, so that a removed account does not come back.
async fn sign_in_link(
    config: &ServiceConfig,
    installation: &OpenInstallation,
    org: &OrgId,
    shows_link: bool,
) -> anyhow::Result<Option<String>> {
    let email: EmailAddress = OWNER.parse()?;
    let people = installation
        .backends
        .catalog
        .list(EntryKind::User, Some(org))
        .await?;
    // A link that nobody sees would only replace one that somebody created.
    if !people.is_empty() && !shows_link {
        return Ok(None);
    }
    let may_sign_in = |entry: &CatalogEntry| matches!(entry, CatalogEntry::User(account) if account.user.email == email && account.user.state != UserState::Disabled);
    if !people.is_empty() && !people.iter().any(may_sign_in) {
        return Ok(None);
    }
    let maker = LinkMaker {
        catalog: installation.backends.catalog.clone(),
        accounts: installation.backends.accounts.clone(),
        secret: installation.secret.clone(),
        dashboard_url: config.dashboard_url(),
        lifetime: Duration::from_millis(config.ingress.sign_in_link_lifetime_ms),
    };
    // This creates the account at the first start, even if its link is not shown.
    let link = maker.sign_in_link(org, &email).await?;
    Ok(shows_link.then_some(link))
}

async fn create(
    installation: &OpenInstallation,
    context: &ApplyContext,
    org: &OrgId,
) -> anyhow::Result<String> {
    let catalog = &installation.backends.catalog;
    for entry in catalog.list(EntryKind::Key, Some(org)).await? {
        if matches!(&entry, CatalogEntry::Key { key, .. } if key.name == KEY) {
            catalog.remove(EntryKind::Key, org, entry.id()).await?;
        }
    }
    let document =
        ApplyDocument::from_json(serde_json::from_str(DOCUMENT)?).context("the demo document")?;
    let applied = apply(context, document)
        .await
        .context("cannot create the demo organization")?;
    let mut keys = applied
        .organizations
        .into_iter()
        .flat_map(|organization| organization.keys);
    keys.find_map(|key| key.value)
        .context("the demo organization was created without a key")
}
