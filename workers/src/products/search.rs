//! Keeps product indexes in memory: builds one at the first search of an agent, rebuilds it after
//! changes, and evicts indexes that are unused or take too much memory.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use moka::future::Cache;
use switchboard_backends::{
    StoreError,
    products::{ProductReader, ProductsVersion, PublishedProducts, reader::read_chunks},
};
use switchboard_schemas::{
    agent::{Agent, Product},
    ids::AgentId,
};
use tokio::{
    sync::{Mutex, Semaphore},
    task,
};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::{ProductQuery, ProductSearchError, ProductsFound, index::ProductIndex};

/// Age at which an index is compared with the stored version; with a rebuild, changes are live
/// within 2 s.
const FRESH: Duration = Duration::from_millis(1000);
/// Indexes that are built at once in this process; each takes a core.
const BUILDS_MAX: usize = 2;
/// Time after which an unused index is evicted.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// Agents whose last comparison is remembered.
const AGENTS_MAX: u64 = 10_000;
/// Attempts to read a version, each of which can be replaced while it is read.
const READS_MAX: u32 = 4;

/// Finds products; clones share their indexes.
#[derive(Clone)]
pub struct ProductSearch {
    products: Arc<dyn ProductReader>,
    indexes: Cache<IndexKey, Arc<LoadedIndex>>,
    /// Locks that are held while an agent's products are compared, so that concurrent callers share
    /// the result.
    looks: Cache<IndexKey, Arc<Mutex<Option<Instant>>>>,
    builds: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// An agent and a fingerprint of the products in its document. During a playground run, the
/// products of the draft and those of the saved agent are searched side by side.
type IndexKey = (AgentId, u64);

struct LoadedIndex {
    index: ProductIndex,
    version: Option<ProductsVersion>,
}

impl ProductSearch {
    /// Creates a search over `products` whose indexes together take at most about
    /// `index_bytes_max`.
    pub fn new(products: Arc<dyn ProductReader>, index_bytes_max: u64) -> Self {
        let weigh = |_: &IndexKey, loaded: &Arc<LoadedIndex>| {
            u32::try_from(loaded.index.memory_bytes()).unwrap_or(u32::MAX)
        };
        Self {
            products,
            indexes: Cache::builder()
                .weigher(weigh)
                .max_capacity(index_bytes_max)
                .time_to_idle(IDLE_MAX)
                .build(),
            looks: Cache::builder()
                .max_capacity(AGENTS_MAX)
                .time_to_idle(IDLE_MAX)
                .build(),
            builds: Arc::new(Semaphore::new(BUILDS_MAX)),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns the products of `agent` that match, best first.
    ///
    /// # Errors
    /// [`ProductSearchError::Store`] when the products cannot be read and none are in memory;
    /// [`ProductSearchError::Index`] when this machine fails.
    pub async fn search(
        &self,
        agent: &Agent,
        query: &ProductQuery,
    ) -> Result<ProductsFound, ProductSearchError> {
        let loaded = self.current_index(agent).await?;
        let query = query.clone();
        run_blocking(move || loaded.index.search(&query)).await
    }

    /// Returns the approximate memory of all indexes, in bytes.
    pub async fn index_bytes(&self) -> u64 {
        self.indexes.run_pending_tasks().await;
        self.indexes.weighted_size()
    }

    async fn current_index(&self, agent: &Agent) -> Result<Arc<LoadedIndex>, ProductSearchError> {
        let key = (
            agent.id.clone(),
            fingerprint(&agent.settings.ecommerce.products),
        );
        let look = self
            .looks
            .get_with(key.clone(), async { Arc::default() })
            .await;
        let mut looked_at = look.lock_owned().await;
        let present = self.indexes.get(&key).await;
        if let Some(loaded) = &present
            && looked_at.is_some_and(|at| at.elapsed() < FRESH)
        {
            return Ok(Arc::clone(loaded));
        }
        // A separate task, so that the build continues after its caller gave up. Otherwise an index
        // that takes longer than any caller waits would never be finished.
        let (search, agent) = (self.clone(), agent.clone());
        let look = async move {
            let began = Instant::now();
            let loaded = search.refresh_index(&agent, key, present).await?;
            *looked_at = Some(began);
            Ok(loaded)
        };
        let looked = self.tasks.spawn(look.in_current_span()).await;
        looked.map_err(|error| ProductSearchError::Index(error.to_string()))?
    }

    async fn refresh_index(
        &self,
        agent: &Agent,
        key: IndexKey,
        present: Option<Arc<LoadedIndex>>,
    ) -> Result<Arc<LoadedIndex>, ProductSearchError> {
        match (
            self.up_to_date_index(agent, key, present.as_ref()).await,
            present,
        ) {
            // An older index is better than none: prices change rarely, and an outage ends.
            (Err(ProductSearchError::Store(error @ StoreError::Unavailable(_))), Some(present)) => {
                tracing::warn!(%error, "store unavailable, searching the older product index");
                Ok(present)
            }
            (looked, _) => looked,
        }
    }

    /// Returns an index of the stored version: the present one or a new one.
    async fn up_to_date_index(
        &self,
        agent: &Agent,
        key: IndexKey,
        present: Option<&Arc<LoadedIndex>>,
    ) -> Result<Arc<LoadedIndex>, ProductSearchError> {
        for _ in 0..READS_MAX {
            let kept = self
                .products
                .read_status(&agent.org_id, &agent.id)
                .await?
                .kept;
            let version = kept.as_ref().map(|kept| &kept.version);
            if let Some(present) = present.filter(|present| present.version.as_ref() == version) {
                return Ok(Arc::clone(present));
            }
            if let Some(loaded) = self.build_index(agent, kept).await? {
                self.indexes.insert(key, Arc::clone(&loaded)).await;
                return Ok(loaded);
            }
        }
        let error = "products were replaced faster than they could be read";
        Err(StoreError::Unavailable(error.into()).into())
    }

    /// Builds a new index; returns `None` if the version was replaced while it was read.
    async fn build_index(
        &self,
        agent: &Agent,
        kept: Option<PublishedProducts>,
    ) -> Result<Option<Arc<LoadedIndex>>, ProductSearchError> {
        let closed =
            |error: tokio::sync::AcquireError| ProductSearchError::Index(error.to_string());
        let _turn = self.builds.acquire().await.map_err(closed)?;
        let chunks = match &kept {
            Some(kept) => {
                read_chunks(self.products.as_ref(), (&agent.org_id, &agent.id), kept).await?
            }
            None => Some(Vec::new()),
        };
        let Some(chunks) = chunks else {
            return Ok(None);
        };
        let products = agent.settings.ecommerce.products.clone();
        let index = run_blocking(move || ProductIndex::build(&products, &chunks)).await?;
        Ok(Some(Arc::new(LoadedIndex {
            index,
            version: kept.map(|kept| kept.version),
        })))
    }
}

/// Runs blocking work outside of the async threads.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProductSearchError> + Send + 'static,
) -> Result<T, ProductSearchError> {
    task::spawn_blocking(work)
        .await
        .map_err(|error| ProductSearchError::Index(error.to_string()))?
}

/// Returns a hash that differs for different lists of products.
fn fingerprint(products: &[Product]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for product in products {
        (&product.title, &product.price, &product.image, &product.url).hash(&mut hasher);
    }
    hasher.finish()
}
