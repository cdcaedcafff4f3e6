//! A cache in front of the catalog, never more than two seconds behind, which also serves requests
//! while the store is unavailable for a short time.
//!
//! There is no push and no invalidation. A value is read again once it is older than
//! [`FRESH`](super::freshness::FRESH), so that a change takes effect in every process within 2 s
//! even if notifications are lost.

use std::{sync::Arc, time::Instant};

use switchboard_schemas::{
    agent::Agent,
    api_key::{ApiKey, ApiKeyHash},
    ids::{AgentId, KeyId, OrgId, ProviderId, TeamId},
    organization::Organization,
    provider::Provider,
    removal::OrganizationRemoval,
    team::Team,
};

use super::{
    CatalogEntry, CatalogEntryStore, EntryKind,
    freshness::{CacheClock, FreshValues},
};
use crate::error::StoreError;

/// A cache in front of the catalog; clones share it.
///
/// Reads fail with [`StoreError`] only if the store cannot be read and no value of the last minute
/// is cached.
#[derive(Clone)]
pub struct CatalogCache {
    catalog: Arc<dyn CatalogEntryStore>,
    agents: FreshValues<AgentId, Agent>,
    teams: FreshValues<TeamId, Team>,
    keys: FreshValues<ApiKeyHash, ApiKey>,
    keys_by_id: FreshValues<KeyId, ApiKey>,
    providers: FreshValues<ProviderId, SealedProvider>,
    first_providers: FreshValues<OrgId, SealedProvider>,
    organizations: FreshValues<OrgId, Organization>,
    removals: FreshValues<OrgId, OrganizationRemoval>,
}

/// A provider with its API key, encrypted by [`crate::vault::SecretVault`]; empty if it needs none.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedProvider {
    /// Settings of the endpoint.
    pub provider: Provider,
    /// Encrypted API key of the endpoint.
    pub sealed_key: Vec<u8>,
}

impl SealedProvider {
    fn from_entry(entry: CatalogEntry) -> Option<Self> {
        match entry {
            CatalogEntry::Provider {
                provider,
                sealed_key,
            } => Some(Self {
                provider,
                sealed_key,
            }),
            _ => None,
        }
    }
}

impl CatalogCache {
    /// Creates an empty cache.
    pub fn new(catalog: Arc<dyn CatalogEntryStore>) -> Self {
        let clock: CacheClock = Arc::new(Instant::now);
        Self::with_clock(catalog, &clock)
    }

    fn with_clock(catalog: Arc<dyn CatalogEntryStore>, clock: &CacheClock) -> Self {
        Self {
            catalog,
            agents: FreshValues::new(clock),
            teams: FreshValues::new(clock),
            keys: FreshValues::new(clock),
            keys_by_id: FreshValues::new(clock),
            providers: FreshValues::new(clock),
            first_providers: FreshValues::new(clock),
            organizations: FreshValues::new(clock),
            removals: FreshValues::new(clock),
        }
    }

    /// Returns the agent with this id, of any organization: the caller compares it.
    pub async fn agent(&self, id: &AgentId) -> Result<Option<Arc<Agent>>, StoreError> {
        let read = self.read(EntryKind::Agent, id.as_str(), |entry| match entry {
            CatalogEntry::Agent(agent) => Some(*agent),
            _ => None,
        });
        self.agents.get(id.clone(), read).await
    }

    /// Returns the team with this id, of any organization: the caller compares it.
    pub async fn team(&self, id: &TeamId) -> Result<Option<Arc<Team>>, StoreError> {
        let read = self.read(EntryKind::Team, id.as_str(), |entry| match entry {
            CatalogEntry::Team(team) => Some(team),
            _ => None,
        });
        self.teams.get(id.clone(), read).await
    }

    /// Returns the key with this hash.
    pub async fn key(&self, hash: &ApiKeyHash) -> Result<Option<Arc<ApiKey>>, StoreError> {
        self.keys.get(*hash, self.catalog.key_by_hash(hash)).await
    }

    /// Returns the key with this id, for credentials that were created with it and end with it.
    pub async fn key_by_id(&self, id: &KeyId) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let read = self.read(EntryKind::Key, id.as_str(), |entry| match entry {
            CatalogEntry::Key { key, .. } => Some(key),
            _ => None,
        });
        self.keys_by_id.get(id.clone(), read).await
    }

    /// Returns the organization's provider with this id.
    pub async fn provider(
        &self,
        org: &OrgId,
        id: &ProviderId,
    ) -> Result<Option<Arc<SealedProvider>>, StoreError> {
        let read = self.read(EntryKind::Provider, id.as_str(), SealedProvider::from_entry);
        let sealed = self.providers.get(id.clone(), read).await?;
        Ok(sealed.filter(|sealed| sealed.provider.org_id == *org))
    }

    /// Returns the organization's provider whose slug comes first.
    pub async fn first_provider(
        &self,
        org: &OrgId,
    ) -> Result<Option<Arc<SealedProvider>>, StoreError> {
        let read = async {
            let entries = self.catalog.list(EntryKind::Provider, Some(org)).await?;
            let providers = entries.into_iter().filter_map(SealedProvider::from_entry);
            let slug = |sealed: &SealedProvider| sealed.provider.slug.clone();
            Ok(providers.min_by_key(slug))
        };
        self.first_providers.get(org.clone(), read).await
    }

    /// Returns the organization with this id.
    pub async fn organization(&self, id: &OrgId) -> Result<Option<Arc<Organization>>, StoreError> {
        let read = self.read(EntryKind::Organization, id.as_str(), |entry| match entry {
            CatalogEntry::Organization(organization) => Some(organization),
            _ => None,
        });
        self.organizations.get(id.clone(), read).await
    }

    /// Returns true if the organization is being removed, or was.
    pub async fn is_removed(&self, id: &OrgId) -> Result<bool, StoreError> {
        let read = self.read(EntryKind::Removal, id.as_str(), |entry| match entry {
            CatalogEntry::Removal(removal) => Some(removal),
            _ => None,
        });
        Ok(self.removals.get(id.clone(), read).await?.is_some())
    }

    async fn read<T>(
        &self,
        kind: EntryKind,
        id: &str,
        unwrap: impl FnOnce(CatalogEntry) -> Option<T> + Send,
    ) -> Result<Option<T>, StoreError> {
        let Some(entry) = self.catalog.get(kind, id).await? else {
            return Ok(None);
        };
        let value = unwrap(entry).ok_or_else(|| {
            StoreError::Malformed(format!("no {} lies under its id", kind.name()))
        })?;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicU32, Ordering},
        },
        time::Duration,
    };

    use async_trait::async_trait;
    use futures::future::join_all;
    use tokio::task;

    use super::{
        super::{
            VersionedEntry,
            conformance::{agent, key, organization, provider},
            embedded::EmbeddedCatalog,
            freshness::{FRESH, STALE_MAX},
        },
        *,
    };

    /// Duration of a scripted read.
    const READ_TIME: Duration = Duration::from_millis(1);

    /// A catalog that counts its reads and returns a scripted entry or error.
    #[derive(Default)]
    struct ScriptedCatalog {
        reads: AtomicU32,
        passed: Mutex<Duration>,
        entry: Mutex<Option<CatalogEntry>>,
        failure: Mutex<Option<fn() -> StoreError>>,
    }

    impl ScriptedCatalog {
        fn holds(&self, entry: Option<CatalogEntry>) {
            *self.entry.lock().unwrap() = entry;
        }

        fn fails(&self, failure: Option<fn() -> StoreError>) {
            *self.failure.lock().unwrap() = failure;
        }

        fn advance(&self, time: Duration) {
            *self.passed.lock().unwrap() += time;
        }

        fn reads(&self) -> u32 {
            self.reads.load(Ordering::SeqCst)
        }

        async fn read(&self) -> Result<Option<CatalogEntry>, StoreError> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            // Lets concurrent callers arrive before the read ends.
            task::yield_now().await;
            self.advance(READ_TIME);
            match *self.failure.lock().unwrap() {
                Some(failure) => Err(failure()),
                None => Ok(self.entry.lock().unwrap().clone()),
            }
        }
    }

    #[async_trait]
    impl CatalogEntryStore for ScriptedCatalog {
        async fn get(&self, _: EntryKind, _: &str) -> Result<Option<CatalogEntry>, StoreError> {
            self.read().await
        }

        async fn versioned(
            &self,
            _: EntryKind,
            _: &str,
        ) -> Result<Option<VersionedEntry>, StoreError> {
            Ok(self
                .read()
                .await?
                .map(|entry| VersionedEntry { entry, version: 0 }))
        }

        async fn key_by_hash(&self, _: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
            Ok(self.read().await?.and_then(|entry| match entry {
                CatalogEntry::Key { key, .. } => Some(key),
                _ => None,
            }))
        }

        async fn put(&self, _: &CatalogEntry) -> Result<(), StoreError> {
            Ok(())
        }

        async fn remove(&self, _: EntryKind, _: &OrgId, _: &str) -> Result<(), StoreError> {
            Ok(())
        }

        async fn list(
            &self,
            _: EntryKind,
            _: Option<&OrgId>,
        ) -> Result<Vec<CatalogEntry>, StoreError> {
            Ok(Vec::new())
        }

        async fn check(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn unavailable() -> StoreError {
        StoreError::Unavailable("away".into())
    }

    fn malformed() -> StoreError {
        StoreError::Malformed("damaged".into())
    }

    fn cached() -> (Arc<ScriptedCatalog>, CatalogCache, OrgId) {
        let (scripted, entry) = (Arc::new(ScriptedCatalog::default()), organization("acme"));
        let org = entry.org_id().clone();
        scripted.holds(Some(entry));
        let (begun, time) = (Instant::now(), Arc::clone(&scripted));
        let clock: CacheClock = Arc::new(move || begun + *time.passed.lock().unwrap());
        (
            Arc::clone(&scripted),
            CatalogCache::with_clock(scripted, &clock),
            org,
        )
    }

    #[tokio::test]
    async fn fresh_values_and_absences_are_served_from_memory() {
        let (scripted, cache, org) = cached();
        for _ in 0..10 {
            assert!(cache.organization(&org).await.unwrap().is_some());
        }
        assert_eq!(scripted.reads(), 1);
        for _ in 0..10 {
            assert!(cache.key(&ApiKeyHash([1; 32])).await.unwrap().is_none());
        }
        assert_eq!(scripted.reads(), 2);
    }

    #[tokio::test]
    async fn change_and_removal_take_effect_within_two_seconds() {
        let (scripted, cache, org) = cached();
        assert!(cache.organization(&org).await.unwrap().is_some());
        scripted.holds(None);
        scripted.advance(FRESH);
        assert!(cache.organization(&org).await.unwrap().is_none());
        scripted.holds(Some(organization("acme")));
        scripted.advance(FRESH);
        assert!(cache.organization(&org).await.unwrap().is_some());
        assert!(FRESH < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_read_and_its_failure() {
        let (scripted, cache, org) = cached();
        let outcomes = join_all((0..100).map(|_| cache.organization(&org))).await;
        assert!(
            outcomes
                .iter()
                .all(|outcome| matches!(outcome, Ok(Some(_))))
        );
        assert_eq!(scripted.reads(), 1);

        scripted.fails(Some(unavailable));
        let hash = ApiKeyHash([1; 32]);
        let outcomes = join_all((0..100).map(|_| cache.key(&hash))).await;
        assert!(
            outcomes
                .iter()
                .all(|outcome| matches!(outcome, Err(StoreError::Unavailable(_))))
        );
        assert_eq!(scripted.reads(), 2);
    }

    #[tokio::test]
    async fn cached_value_lives_for_a_minute_without_the_store() {
        let (scripted, cache, org) = cached();
        assert!(cache.organization(&org).await.unwrap().is_some());
        scripted.fails(Some(unavailable));
        let mut age = Duration::ZERO;
        while cache.organization(&org).await.is_ok() {
            age = *scripted.passed.lock().unwrap();
            scripted.advance(Duration::from_millis(100));
        }
        assert!(age <= STALE_MAX && age > STALE_MAX - 2 * FRESH, "{age:?}");
        scripted.fails(None);
        assert!(cache.organization(&org).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn unavailable_store_is_not_read_on_every_request() {
        let (scripted, cache, org) = cached();
        assert!(cache.organization(&org).await.unwrap().is_some());
        scripted.advance(FRESH);
        scripted.fails(Some(unavailable));
        for _ in 0..10 {
            assert!(cache.organization(&org).await.unwrap().is_some());
        }
        assert_eq!(scripted.reads(), 2);
    }

    #[tokio::test]
    async fn malformed_row_is_an_error_despite_a_cached_value() {
        let (scripted, cache, org) = cached();
        assert!(cache.organization(&org).await.unwrap().is_some());
        scripted.advance(FRESH);
        scripted.fails(Some(malformed));
        assert!(matches!(
            cache.organization(&org).await,
            Err(StoreError::Malformed(_))
        ));
    }

    #[tokio::test]
    async fn catalog_is_read_by_kind_and_providers_by_organization() {
        let directory = tempfile::tempdir().unwrap();
        let catalog =
            Arc::new(EmbeddedCatalog::open(&directory.path().join("catalog.db")).unwrap());
        let (org, other) = (
            organization("a").org_id().clone(),
            organization("b").org_id().clone(),
        );
        let hash = ApiKeyHash([3; 32]);
        let entries = [
            agent(&org, "shop", "Shop"),
            provider(&org, &[1, 2]),
            key(&org, hash.0),
        ];
        for entry in &entries {
            catalog.put(entry).await.unwrap();
        }
        let cache = CatalogCache::new(catalog);
        let agent_id = entries[0].id().parse().unwrap();
        assert_eq!(cache.agent(&agent_id).await.unwrap().unwrap().name, "Shop");
        let provider_id = entries[1].id().parse().unwrap();
        assert_eq!(
            cache
                .provider(&org, &provider_id)
                .await
                .unwrap()
                .unwrap()
                .sealed_key,
            [1, 2]
        );
        assert_eq!(cache.provider(&other, &provider_id).await.unwrap(), None);
        assert_eq!(cache.key(&hash).await.unwrap().unwrap().org_id, org);
        let key_id = entries[2].id().parse().unwrap();
        assert_eq!(cache.key_by_id(&key_id).await.unwrap().unwrap().id, key_id);
    }
}
