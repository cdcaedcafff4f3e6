//! Conformance tests of [`super::CatalogStore`], run on both backends.

pub(super) mod lists;

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::{
    agent::{Agent, AgentSettings},
    api_key::{ApiKey, ApiKeyHash, KeyLimits, KeyScope},
    ids::{AgentId, KeyId, OrgId, ProviderId, UserId},
    organization::Organization,
    provider::Provider,
    provider::ProviderApi,
    secret::InstallationSecret,
    time::Timestamp,
    user::{LinkPurpose, OneTimeLink, PasswordHash, User, UserAccount, UserRole, UserState},
};

use self::lists::{
    entries_are_listed_by_organization_in_order_of_ids, lists_contain_summaries_without_long_texts,
    organizations_are_listed_for_the_installation, pages_are_in_order_of_labels_and_add_up,
    removed_entry_leaves_its_list, renamed_key_moves_in_its_list,
};
use super::{
    CatalogEntry, CatalogStore, EntryKind, KeyUse, PageSighting, embedded::EmbeddedCatalog,
    page_sightings::PAGES_MAX,
};

/// A backend under test.
pub(super) struct Subject {
    catalog: Arc<dyn CatalogStore>,
    _directory: Option<tempfile::TempDir>,
}

conformance_tests! {
    entry_of_each_kind_round_trips,
    put_is_repeatable_and_replaces_the_entry,
    version_rises_with_each_put_and_after_a_removal,
    removed_entry_is_gone_and_can_be_recreated,
    removing_an_unknown_entry_succeeds,
    entry_is_not_removed_by_another_organization,
    entries_are_listed_by_organization_in_order_of_ids,
    organizations_are_listed_for_the_installation,
    lists_contain_summaries_without_long_texts,
    pages_are_in_order_of_labels_and_add_up,
    renamed_key_moves_in_its_list,
    removed_entry_leaves_its_list,
    key_is_found_by_its_current_hash_only,
    latest_key_use_is_kept_beside_the_key_until_removal,
    latest_pages_of_an_agent_are_kept,
    organizations_have_accounts_of_one_address,
    concurrent_puts_converge_in_every_table,
    concurrent_put_and_removal_converge_in_every_table,
    catalog_check_succeeds,
}

fn embedded_subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let catalog = Arc::new(EmbeddedCatalog::open(&directory.path().join("catalog.db")).unwrap());
    Subject {
        catalog,
        _directory: Some(directory),
    }
}

#[cfg(feature = "real-services")]
async fn scylla_subject() -> Subject {
    let link = crate::scylla_link::testing::link().await;
    Subject {
        catalog: Arc::new(super::scylla::ScyllaCatalog::connect(link)),
        _directory: None,
    }
}

impl Subject {
    async fn put(&self, entry: &CatalogEntry) {
        self.catalog.put(entry).await.unwrap();
    }

    async fn remove(&self, entry: &CatalogEntry) {
        self.catalog
            .remove(entry.kind(), entry.org_id(), entry.id())
            .await
            .unwrap();
    }

    /// Returns the entry read by its id, after asserting that its list contains its summary.
    async fn agreed(&self, like: &CatalogEntry) -> Option<CatalogEntry> {
        let found = self.catalog.get(like.kind(), like.id()).await.unwrap();
        let listed = self
            .catalog
            .list(like.kind(), Some(like.org_id()))
            .await
            .unwrap();
        assert_eq!(
            listed.into_iter().find(|entry| entry.id() == like.id()),
            found.as_ref().map(CatalogEntry::summary)
        );
        found
    }

    async fn key(&self, hash: [u8; 32]) -> Option<ApiKey> {
        self.catalog.key_by_hash(&ApiKeyHash(hash)).await.unwrap()
    }
}

/// Returns the secret of a unique installation, so that tests do not share data.
pub(super) fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes(rand::random())
}

pub(super) fn organization(slug: &str) -> CatalogEntry {
    let id = OrgId::derive(&secret(), slug);
    CatalogEntry::Organization(Organization {
        id,
        slug: slug.into(),
        name: slug.to_uppercase(),
    })
}

pub(super) fn agent(org: &OrgId, slug: &str, name: &str) -> CatalogEntry {
    let id = AgentId::derive(&InstallationSecret::from_bytes([1; 32]), org, slug);
    CatalogEntry::Agent(Box::new(Agent {
        id,
        org_id: org.clone(),
        slug: slug.into(),
        name: name.into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings {
            temperature: Some(0.7),
            ..AgentSettings::default()
        },
    }))
}

pub(super) fn provider(org: &OrgId, sealed_key: &[u8]) -> CatalogEntry {
    let id = ProviderId::derive(&InstallationSecret::from_bytes([1; 32]), org, "main");
    let provider = Provider {
        id,
        org_id: org.clone(),
        slug: "main".into(),
        base_url: "https://models.example/v1".into(),
        api: ProviderApi::Responses,
        model: "small".into(),
        embedding_model: None,
        continues_prefix: true,
        vision: true,
        first_token_timeout_ms: Some(5_000),
        chosen_by_operator: true,
    };
    CatalogEntry::Provider {
        provider,
        sealed_key: sealed_key.to_vec(),
    }
}

pub(super) fn key(org: &OrgId, hash: [u8; 32]) -> CatalogEntry {
    let id = KeyId::derive(&InstallationSecret::from_bytes([1; 32]), org, "site", 1);
    let key = ApiKey {
        id,
        org_id: org.clone(),
        name: "site".into(),
        scopes: vec![KeyScope::Chat],
        expires_at: None,
        limits: KeyLimits::default(),
        last_four: "abcd".into(),
        created_at: Timestamp::from_micros(1),
    };
    CatalogEntry::Key { key, hash }
}

/// Returns an account of an organization.
pub(super) fn account(org: &OrgId, email: &str, name: &str) -> CatalogEntry {
    let email = email.parse().unwrap();
    let user = User {
        id: UserId::derive(&InstallationSecret::from_bytes([1; 32]), org, &email),
        org_id: org.clone(),
        email,
        name: name.into(),
        role: UserRole::Owner,
        state: UserState::Active,
        created_at: Timestamp::from_micros(1),
    };
    CatalogEntry::User(Box::new(UserAccount {
        user,
        password: Some(PasswordHash("$argon2id$".into())),
        link: Some(OneTimeLink {
            hash: rand::random(),
            purpose: LinkPurpose::SignIn,
            expires_at: Timestamp::from_micros(7),
        }),
        session_epoch: u64::MAX,
    }))
}

fn org() -> OrgId {
    organization("acme").org_id().clone()
}

async fn entry_of_each_kind_round_trips(subject: Subject) {
    let organization = organization("acme");
    let org = organization.org_id().clone();
    let hash = rand::random();
    let person = account(&org, &unique_address(), "Ada \0🦀");
    for entry in [
        organization,
        agent(&org, "shop", "Shop \0🦀"),
        provider(&org, &[0, 255, 7]),
        key(&org, hash),
        person,
    ] {
        assert_eq!(subject.agreed(&entry).await, None);
        subject.put(&entry).await;
        assert_eq!(subject.agreed(&entry).await, Some(entry));
    }
}

async fn put_is_repeatable_and_replaces_the_entry(subject: Subject) {
    let org = org();
    let (old, new) = (agent(&org, "shop", "Old"), agent(&org, "shop", "New"));
    for entry in [&old, &old, &new, &new, &old] {
        subject.put(entry).await;
        assert_eq!(subject.agreed(entry).await.as_ref(), Some(entry));
    }
}

async fn version_rises_with_each_put_and_after_a_removal(subject: Subject) {
    let entry = organization("acme");
    let mut last = 0;
    for round in 0..5 {
        subject.put(&entry).await;
        let versioned = subject
            .catalog
            .versioned(entry.kind(), entry.id())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(versioned.entry, entry);
        assert!(
            versioned.version > last,
            "{} after {last}",
            versioned.version
        );
        last = versioned.version;
        if round % 2 == 0 {
            subject.remove(&entry).await;
            assert_eq!(
                subject
                    .catalog
                    .versioned(entry.kind(), entry.id())
                    .await
                    .unwrap(),
                None
            );
        }
    }
}

async fn removed_entry_is_gone_and_can_be_recreated(subject: Subject) {
    let entry = agent(&org(), "shop", "Shop");
    for _ in 0..3 {
        subject.put(&entry).await;
        assert_eq!(subject.agreed(&entry).await.as_ref(), Some(&entry));
        subject.remove(&entry).await;
        assert_eq!(subject.agreed(&entry).await, None);
    }
}

async fn removing_an_unknown_entry_succeeds(subject: Subject) {
    let entry = agent(&org(), "shop", "Shop");
    subject.remove(&entry).await;
    subject.put(&entry).await;
    subject.remove(&entry).await;
    subject.remove(&entry).await;
    assert_eq!(subject.agreed(&entry).await, None);
}

async fn entry_is_not_removed_by_another_organization(subject: Subject) {
    let entry = agent(&org(), "shop", "Shop");
    subject.put(&entry).await;
    subject
        .catalog
        .remove(EntryKind::Agent, &org(), entry.id())
        .await
        .unwrap();
    assert_eq!(subject.agreed(&entry).await.as_ref(), Some(&entry));
}

async fn key_is_found_by_its_current_hash_only(subject: Subject) {
    let org = org();
    let (old, new) = (rand::random(), rand::random());
    assert_eq!(subject.key(old).await, None);
    for (hash, found_by_old, found_by_new) in [(old, true, false), (new, false, true)] {
        subject.put(&key(&org, hash)).await;
        assert_eq!(
            (
                subject.key(old).await.is_some(),
                subject.key(new).await.is_some()
            ),
            (found_by_old, found_by_new)
        );
    }
    subject.remove(&key(&org, new)).await;
    assert_eq!(
        (subject.key(old).await, subject.key(new).await),
        (None, None)
    );
    subject.put(&key(&org, new)).await;
    assert_eq!(subject.key(new).await.map(|key| key.org_id), Some(org));
}

async fn latest_key_use_is_kept_beside_the_key_until_removal(subject: Subject) {
    let (org, other) = (org(), org());
    let entry = key(&org, rand::random());
    subject.put(&entry).await;
    let versioned = || async {
        subject
            .catalog
            .versioned(EntryKind::Key, entry.id())
            .await
            .unwrap()
    };
    let before = versioned().await;
    assert_eq!(subject.catalog.key_uses(&org).await.unwrap(), []);
    let used = |at| KeyUse {
        org_id: org.clone(),
        key_id: entry.id().parse().unwrap(),
        at: Timestamp::from_micros(at),
    };
    for at in [5_000_000, 9_000_000, 7_000_000] {
        subject.catalog.record_key_uses(&[used(at)]).await.unwrap();
    }
    assert_eq!(
        subject.catalog.key_uses(&org).await.unwrap(),
        [used(9_000_000)]
    );
    assert_eq!(subject.catalog.key_uses(&other).await.unwrap(), []);
    assert_eq!(versioned().await, before);
    subject
        .catalog
        .remove(EntryKind::Key, &other, entry.id())
        .await
        .unwrap();
    assert_eq!(
        subject.catalog.key_uses(&org).await.unwrap(),
        [used(9_000_000)],
        "it is not another organization's to remove"
    );
    subject.remove(&entry).await;
    assert_eq!(subject.catalog.key_uses(&org).await.unwrap(), []);
}

async fn latest_pages_of_an_agent_are_kept(subject: Subject) {
    let (org, other) = (org(), org());
    let agent = AgentId::derive(&secret(), &org, "shop");
    let seen = |host: u32, at| PageSighting {
        org_id: org.clone(),
        agent_id: agent.clone(),
        origin: format!("https://{host:02}.example"),
        at: Timestamp::from_micros(at),
    };
    for host in 0..PAGES_MAX + 5 {
        let at = 1_000_000 * i64::from(host);
        subject.catalog.record_page(&seen(host, at)).await.unwrap();
    }
    subject
        .catalog
        .record_page(&seen(7, 90_000_000))
        .await
        .unwrap();
    subject
        .catalog
        .record_page(&seen(7, 80_000_000))
        .await
        .unwrap();
    let pages = subject.catalog.pages(&org, &agent).await.unwrap();
    assert_eq!(pages.len(), PAGES_MAX as usize);
    assert_eq!(pages[..2], [seen(7, 90_000_000), seen(24, 24_000_000)]);
    assert_eq!(subject.catalog.pages(&other, &agent).await.unwrap(), []);
}

fn unique_address() -> String {
    format!("{:x}@example.org", rand::random::<u128>())
}

async fn organizations_have_accounts_of_one_address(subject: Subject) {
    let (one, two, address) = (org(), org(), unique_address());
    let (first, second) = (
        account(&one, &address, "Ada"),
        account(&two, &address, "Ada"),
    );
    subject.put(&first).await;
    subject.put(&second).await;
    subject.remove(&first).await;
    assert_eq!(subject.agreed(&first).await, None);
    assert_eq!(subject.agreed(&second).await.as_ref(), Some(&second));
    let left = subject.catalog.list(EntryKind::User, Some(&one)).await;
    assert_eq!(left.unwrap(), []);
}

async fn concurrent_puts_converge_in_every_table(subject: Subject) {
    let org = org();
    for round in 0..10 {
        let entries: Vec<CatalogEntry> = (0..8)
            .map(|writer| agent(&org, "shop", &format!("{round} by {writer}")))
            .collect();
        join_all(entries.iter().map(|entry| subject.put(entry))).await;
        let ended = subject.agreed(&entries[0]).await.unwrap();
        assert!(entries.contains(&ended));
    }
}

async fn concurrent_put_and_removal_converge_in_every_table(subject: Subject) {
    let entry = agent(&org(), "shop", "Shop");
    for _ in 0..10 {
        subject.put(&entry).await;
        let removals = join_all((0..3).map(|_| subject.remove(&entry)));
        futures::future::join(removals, subject.put(&entry)).await;
        let ended = subject.agreed(&entry).await;
        assert!(ended.is_none() || ended.as_ref() == Some(&entry));
    }
}

async fn catalog_check_succeeds(subject: Subject) {
    subject.catalog.check().await.unwrap();
}
