//! The demo organization of a first start: something to talk to before anything is configured.

use std::time::Duration;

use anyhow::Context;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_ingress::{
    accounts::link::LinkMaker,
    admin::{
        apply::{ApplyContext, apply},
        document::Document,
    },
};
use switchboard_schemas::{
    email::EmailAddress,
    ids::{AgentId, OrgId},
    user::UserState,
};

use crate::{banner::DemoLine, config::Config, open::Opened};

const DOCUMENT: &str = include_str!("demo.json");
const ORGANIZATION: &str = "demo";
const AGENT: &str = "guide";
/// The agent of the demo page, which is a shop's.
const SHOP: &str = "shop";
const KEY: &str = "demo";
/// The account of the first start; the domain is one that nobody can have.
const OWNER: &str = "owner@demo.example";

/// Makes the demo organization if the catalogue is empty, and tells how to talk to it as long as it is there.
///
/// Its key lies in a private file of the data directory, so that every start can show a line that works; no other key
/// is ever kept. Where that file was lost, a new key takes the old one's place.
pub(crate) async fn prepare(config: &Config, opened: &Opened) -> anyhow::Result<Option<DemoLine>> {
    let Some(data_dir) = opened.data_dir.as_ref().filter(|_| config.demo) else {
        return Ok(None);
    };
    let org = OrgId::derive(&opened.secret, ORGANIZATION);
    let organizations = opened
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
            let key = make(opened, &org).await?;
            data_dir.keep_demo_key(&key)?;
            key
        }
    };
    let agent_id = AgentId::derive(&opened.secret, &org, AGENT)
        .as_str()
        .to_owned();
    let shop_id = AgentId::derive(&opened.secret, &org, SHOP);
    Ok(Some(DemoLine {
        agent_id,
        shop_id,
        key,
        sign_in: sign_in_link(config, opened, &org).await?,
    }))
}

/// A link to the account of the first start, as long as there is one: somebody who removed or disabled it, and let others
/// in, does not find it again.
async fn sign_in_link(
    config: &Config,
    opened: &Opened,
    org: &OrgId,
) -> anyhow::Result<Option<String>> {
    let email: EmailAddress = OWNER.parse()?;
    let people = opened
        .backends
        .catalog
        .list(EntryKind::User, Some(org))
        .await?;
    let may_sign_in = |entry: &CatalogEntry| matches!(entry, CatalogEntry::User(account) if account.user.email == email && account.user.state != UserState::Disabled);
    if !people.is_empty() && !people.iter().any(may_sign_in) {
        return Ok(None);
    }
    let maker = LinkMaker {
        catalog: opened.backends.catalog.clone(),
        accounts: opened.backends.accounts.clone(),
        secret: opened.secret.clone(),
        dashboard_url: config.dashboard_url(),
        lifetime: Duration::from_millis(config.ingress.sign_in_link_lifetime_ms),
    };
    Ok(Some(maker.sign_in_link(org, &email).await?))
}

async fn make(opened: &Opened, org: &OrgId) -> anyhow::Result<String> {
    let catalog = &opened.backends.catalog;
    for entry in catalog.list(EntryKind::Key, Some(org)).await? {
        if matches!(&entry, CatalogEntry::Key { key, .. } if key.name == KEY) {
            catalog.remove(EntryKind::Key, org, entry.id()).await?;
        }
    }
    let document =
        Document::from_json(serde_json::from_str(DOCUMENT)?).context("the demo document")?;
    let context = ApplyContext::new(&opened.backends, opened.secret.clone());
    let applied = apply(&context, document)
        .await
        .context("cannot make the demo organization")?;
    let mut keys = applied
        .organizations
        .into_iter()
        .flat_map(|organization| organization.keys);
    keys.find_map(|key| key.value)
        .context("the demo organization was made without a key")
}
