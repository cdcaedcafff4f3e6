//! The demo organization of a first start: something to talk to before anything is configured.

use anyhow::Context;
use switchboard_backends::catalog::{Entry, EntryKind};
use switchboard_ingress::admin::{
    apply::{ApplyContext, apply},
    document::Document,
};
use switchboard_schemas::ids::{AgentId, OrgId};

use crate::{banner::DemoLine, config::Config, open::Opened};

const DOCUMENT: &str = include_str!("demo.json");
const ORGANIZATION: &str = "demo";
const AGENT: &str = "guide";
const KEY: &str = "demo";

/// Makes the demo organization if the catalogue is empty, and tells how to talk to it as long as it is there.
///
/// Its key lies in a private file of the data directory, so that every start can show a line that works; no other key
/// is ever kept. Where that file was lost, a new key takes the old one's place.
pub(crate) async fn prepare(config: &Config, opened: &Opened) -> anyhow::Result<Option<DemoLine>> {
    let Some(data_dir) = opened.data_dir.as_ref().filter(|_| config.demo) else { return Ok(None) };
    let org = OrgId::derive(&opened.secret, ORGANIZATION);
    let organizations = opened.backends.catalog.list(EntryKind::Organization, None).await?;
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
    let agent_id = AgentId::derive(&opened.secret, &org, AGENT).as_str().to_owned();
    Ok(Some(DemoLine { agent_id, key }))
}

async fn make(opened: &Opened, org: &OrgId) -> anyhow::Result<String> {
    let catalog = &opened.backends.catalog;
    for entry in catalog.list(EntryKind::Key, Some(org)).await? {
        if matches!(&entry, Entry::Key { key, .. } if key.name == KEY) {
            catalog.remove(EntryKind::Key, org, entry.id()).await?;
        }
    }
    let document = Document::from_json(serde_json::from_str(DOCUMENT)?).context("the demo document")?;
    let context = ApplyContext::new(&opened.backends, opened.secret.clone());
    let applied = apply(&context, document).await.context("cannot make the demo organization")?;
    let mut keys = applied.organizations.into_iter().flat_map(|organization| organization.keys);
    keys.find_map(|key| key.value).context("the demo organization was made without a key")
}
