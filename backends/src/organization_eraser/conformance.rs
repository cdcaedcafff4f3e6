//! Conformance tests of [`super::OrganizationEraser`], run on both backends.

use std::sync::Arc;

use futures::future::try_join_all;
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, AuditEntry},
    ids::{AgentId, AuditId, KeyId},
    secret::InstallationSecret,
    time::Timestamp,
};

use super::*;
use crate::{
    accounts::AccountActivityStore,
    catalog::{CatalogStore, KeyUse, PageSighting},
    sqlite::TABLES_WITH_ORGANIZATIONS,
};

/// Rows of one table, more than are deleted in one step.
const ROWS: usize = 1_100;
/// A text of the organization that nobody may find.
const WORD: &str = "zebrafish";

/// Backends under test.
struct Subject {
    accounts: Arc<dyn AccountActivityStore>,
    catalog: Arc<dyn CatalogStore>,
    eraser: Arc<dyn OrganizationEraser>,
    directory: Option<tempfile::TempDir>,
}

conformance_tests! {
    erased_organization_leaves_no_row,
    erasure_is_repeated_after_an_interruption,
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = EmbeddedStore::open(&path("store.db")).unwrap();
    let catalog = EmbeddedCatalog::open(&path("catalog.db")).unwrap();
    let products = EmbeddedProducts::open(&path("products.db")).unwrap();
    let accounts = EmbeddedAccounts::open(&path("accounts.db")).unwrap();
    Subject {
        eraser: Arc::new(EmbeddedEraser::new(&store, &catalog, &products, &accounts)),
        accounts: Arc::new(accounts),
        catalog: Arc::new(catalog),
        directory: Some(directory),
    }
}

#[cfg(feature = "real-services")]
async fn scylla_subject() -> Subject {
    let link = crate::scylla_link::testing::link().await;
    Subject {
        accounts: Arc::new(crate::accounts::scylla::ScyllaAccounts::connect(
            link.clone(),
        )),
        catalog: Arc::new(crate::catalog::scylla::ScyllaCatalog::connect(link.clone())),
        eraser: link,
        directory: None,
    }
}

fn org() -> OrgId {
    OrgId::derive(&InstallationSecret::from_bytes(rand::random()), "acme")
}

impl Subject {
    /// Writes rows of an organization into three tables.
    async fn fill(&self, org: &OrgId) {
        let entry = || AuditEntry {
            id: AuditId::now(),
            org_id: org.clone(),
            actor: AuditActor::Token,
            action: AuditAction::Update,
            kind: "agent".into(),
            subject: WORD.into(),
            fields: Vec::new(),
            address: None,
            request_id: None,
        };
        let entries: Vec<_> = (0..ROWS).map(|_| entry()).collect();
        for part in entries.chunks(100) {
            let appended = part.iter().map(|entry| self.accounts.append_entry(entry));
            try_join_all(appended).await.unwrap();
        }
        let secret = InstallationSecret::from_bytes([7; 32]);
        let key_use = KeyUse {
            org_id: org.clone(),
            key_id: KeyId::derive(&secret, org, WORD, 0),
            at: Timestamp::now(),
        };
        self.catalog.record_key_uses(&[key_use]).await.unwrap();
        let page = PageSighting {
            org_id: org.clone(),
            agent_id: AgentId::derive(&secret, org, WORD),
            origin: format!("https://{WORD}.example"),
            at: Timestamp::now(),
        };
        self.catalog.record_page(&page).await.unwrap();
    }

    /// Returns the numbers of rows in the three tables.
    async fn rows(&self, org: &OrgId) -> [usize; 3] {
        let secret = InstallationSecret::from_bytes([7; 32]);
        let agent = AgentId::derive(&secret, org, WORD);
        let entries = self.accounts.log_entries(org, None, 5_000).await;
        [
            entries.unwrap().len(),
            self.catalog.key_uses(org).await.unwrap().len(),
            self.catalog.pages(org, &agent).await.unwrap().len(),
        ]
    }
}

async fn erased_organization_leaves_no_row(subject: Subject) {
    let (removed, other) = (org(), org());
    subject.fill(&removed).await;
    subject.eraser.erase_organization(&removed).await.unwrap();
    assert_eq!(subject.rows(&removed).await, [0; 3]);
    if let Some(directory) = &subject.directory {
        for file in std::fs::read_dir(directory.path()).unwrap() {
            let path = file.unwrap().path();
            let content = std::fs::read(&path).unwrap();
            let mut parts = content.windows(WORD.len());
            let is_found = parts.any(|part| part == WORD.as_bytes());
            assert!(!is_found, "{}", path.display());
        }
    }
    subject.fill(&other).await;
    subject.eraser.erase_organization(&removed).await.unwrap();
    assert_eq!(subject.rows(&other).await, [ROWS, 1, 1]);
}

async fn erasure_is_repeated_after_an_interruption(subject: Subject) {
    let removed = org();
    subject.fill(&removed).await;
    let erasing = subject.eraser.erase_organization(&removed);
    let moment = std::time::Duration::from_millis(5);
    let _ = tokio::time::timeout(moment, erasing).await;
    subject.eraser.erase_organization(&removed).await.unwrap();
    assert_eq!(subject.rows(&removed).await, [0; 3]);
}

/// A table that the eraser does not find would keep its rows.
#[tokio::test]
async fn every_table_with_organizations_is_found() {
    let Subject { directory, .. } = embedded_subject();
    let mut found = Vec::new();
    for name in ["store.db", "catalog.db", "products.db", "accounts.db"] {
        let path = directory.as_ref().unwrap().path().join(name);
        let connection = rusqlite::Connection::open(path).unwrap();
        let names = |sql: &str| -> Vec<String> {
            let mut select = connection.prepare(sql).unwrap();
            let names = select.query_map([], |row| row.get(0)).unwrap();
            names.collect::<rusqlite::Result<_>>().unwrap()
        };
        let erased = names(TABLES_WITH_ORGANIZATIONS);
        let with_org = names(
            "SELECT name FROM sqlite_schema AS tables WHERE type = 'table' AND EXISTS
                (SELECT 1 FROM pragma_table_info(tables.name) WHERE name = 'org_id')",
        );
        for table in with_org {
            // Entries are removed one by one when the organization is closed.
            let is_entry = table.starts_with("entr");
            assert_eq!(erased.contains(&table), !is_entry, "{table}");
            found.push(table);
        }
    }
    assert!(found.len() > 15, "{found:?}");
}
