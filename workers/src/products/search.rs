//! Indexes in memory: made when an agent's products are first asked for, made anew when these changed, and dropped when
//! they are not used or take too much.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use moka::future::Cache;
use switchboard_backends::{
    products::{ProductStore, ProductsVersion, PublishedProducts, reader::read_chunks},
    store::StoreError,
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

use super::{ProductQuery, ProductSearchError, ProductsFound, index::Index};

/// A change is looked for when an index was last compared this long ago; with making a new one it is live within 2 s.
const FRESH: Duration = Duration::from_millis(1000);
/// Indexes that are made at once in this process; each takes a core.
const BUILDS_MAX: usize = 2;
/// An index that nobody asks for goes out of memory.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// Agents of which it is remembered when they were last looked at.
const AGENTS_MAX: u64 = 10_000;
/// A version can go away while it is read, and the next one too.
const READS_MAX: u32 = 4;

/// Finds products; clones share their indexes.
#[derive(Clone)]
pub struct ProductSearch {
    products: Arc<dyn ProductStore>,
    indexes: Cache<IndexKey, Arc<Loaded>>,
    /// Held while an agent's products are looked at, so that all who ask meanwhile share the outcome.
    looks: Cache<IndexKey, Arc<Mutex<Option<Instant>>>>,
    builds: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// An agent, and a fingerprint of the products that its own document names: while somebody tries a draft, its products
/// and those of the saved agent are searched side by side.
type IndexKey = (AgentId, u64);

struct Loaded {
    index: Index,
    version: Option<ProductsVersion>,
}

impl ProductSearch {
    /// A search over `products`, whose indexes together take about so much memory at most.
    pub fn new(products: Arc<dyn ProductStore>, index_bytes_max: u64) -> Self {
        let weigh = |_: &IndexKey, loaded: &Arc<Loaded>| {
            u32::try_from(loaded.index.bytes()).unwrap_or(u32::MAX)
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

    /// The products of `agent` that match, best first.
    ///
    /// # Errors
    /// [`ProductSearchError::Store`] when the products cannot be read and none are in memory;
    /// [`ProductSearchError::Index`] when this machine fails.
    pub async fn search(
        &self,
        agent: &Agent,
        query: &ProductQuery,
    ) -> Result<ProductsFound, ProductSearchError> {
        let loaded = self.loaded(agent).await?;
        let query = query.clone();
        run(move || loaded.index.search(&query)).await
    }

    /// About how much memory the indexes take.
    pub async fn index_bytes(&self) -> u64 {
        self.indexes.run_pending_tasks().await;
        self.indexes.weighted_size()
    }

    async fn loaded(&self, agent: &Agent) -> Result<Arc<Loaded>, ProductSearchError> {
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
        // Whoever asks may give up waiting; an index that takes longer than they wait would else be begun for ever.
        let (search, agent) = (self.clone(), agent.clone());
        let look = async move {
            let began = Instant::now();
            let loaded = search.look(&agent, key, present).await?;
            *looked_at = Some(began);
            Ok(loaded)
        };
        let looked = self.tasks.spawn(look.in_current_span()).await;
        looked.map_err(|error| ProductSearchError::Index(error.to_string()))?
    }

    async fn look(
        &self,
        agent: &Agent,
        key: IndexKey,
        present: Option<Arc<Loaded>>,
    ) -> Result<Arc<Loaded>, ProductSearchError> {
        match (self.fresh(agent, key, present.as_ref()).await, present) {
            // What is in memory is better than nothing: prices change seldom, and an outage ends.
            (Err(ProductSearchError::Store(error @ StoreError::Unavailable(_))), Some(present)) => {
                tracing::warn!(%error, "products are searched as they last were");
                Ok(present)
            }
            (looked, _) => looked,
        }
    }

    /// An index of what is kept now: the one that is there, or a new one.
    async fn fresh(
        &self,
        agent: &Agent,
        key: IndexKey,
        present: Option<&Arc<Loaded>>,
    ) -> Result<Arc<Loaded>, ProductSearchError> {
        for _ in 0..READS_MAX {
            let kept = self.products.status(&agent.org_id, &agent.id).await?.kept;
            let version = kept.as_ref().map(|kept| &kept.version);
            if let Some(present) = present.filter(|present| present.version.as_ref() == version) {
                return Ok(Arc::clone(present));
            }
            if let Some(loaded) = self.load(agent, kept).await? {
                self.indexes.insert(key, Arc::clone(&loaded)).await;
                return Ok(loaded);
            }
        }
        let error = "products were replaced faster than they could be read";
        Err(StoreError::Unavailable(error.into()).into())
    }

    /// A new index; none when the version went away while it was read.
    async fn load(
        &self,
        agent: &Agent,
        kept: Option<PublishedProducts>,
    ) -> Result<Option<Arc<Loaded>>, ProductSearchError> {
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
        let index = run(move || Index::build(&products, &chunks)).await?;
        Ok(Some(Arc::new(Loaded {
            index,
            version: kept.map(|kept| kept.version),
        })))
    }
}

/// Does what takes long apart from the async threads.
async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProductSearchError> + Send + 'static,
) -> Result<T, ProductSearchError> {
    task::spawn_blocking(work)
        .await
        .map_err(|error| ProductSearchError::Index(error.to_string()))?
}

/// Tells apart two lists of products.
fn fingerprint(products: &[Product]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for product in products {
        (&product.title, &product.price, &product.image, &product.url).hash(&mut hasher);
    }
    hasher.finish()
}
