//! Bytes of a feed as they arrive: small ones stay in memory, large ones go to a temporary file, so
//! that memory does not depend on the size of a feed. A workbook and the encoding of a text can
//! only be read once all bytes are there.

use std::{io::Write, sync::LazyLock};

use switchboard_schemas::{agent::FeedFormat, catalog_product::CatalogProduct};
use tempfile::SpooledTempFile;
use tokio::{
    sync::{Semaphore, mpsc},
    task,
};

use super::{FeedError, FeedReport, read_feed};
use crate::{error::StoreError, products::writer::ProductsWriter};

/// Size up to which a feed stays in memory, in bytes.
const MEMORY_BYTES_MAX: usize = 1 << 20;
/// Size from which arrived bytes are written, in bytes.
const WRITE_BYTES: usize = 256 << 10;
/// Products that are read ahead of the store.
const READ_AHEAD: usize = 64;
/// Feeds that are read at once in this process; each takes a core and memory for its largest row.
const READS_MAX: usize = 4;

static READS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(READS_MAX));

/// A feed that is arriving.
pub struct FeedFile {
    file: SpooledTempFile,
    arrived: Vec<u8>,
    bytes: u64,
    bytes_max: u64,
}

impl FeedFile {
    /// Creates a file for at most `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self {
            file: SpooledTempFile::new(MEMORY_BYTES_MAX),
            arrived: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// There are too many bytes, or they cannot be kept.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), FeedError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(FeedError::TooLarge {
                bytes: self.bytes,
                max: self.bytes_max,
            });
        }
        self.arrived.extend_from_slice(bytes);
        if self.arrived.len() < WRITE_BYTES {
            return Ok(());
        }
        let placeholder = SpooledTempFile::new(0);
        let mut file = std::mem::replace(&mut self.file, placeholder);
        let arrived = std::mem::take(&mut self.arrived);
        self.file = run_blocking(move || {
            file.write_all(&arrived)?;
            Ok(file)
        })
        .await?;
        Ok(())
    }
}

/// Reads a feed that has arrived and writes its products, if there is a writer. Returns the first
/// `shown` products and the report.
///
/// # Errors
/// The feed is rejected, or a product cannot be stored.
pub async fn read_products<E: From<FeedError> + From<StoreError>>(
    feed: FeedFile,
    (format, products_max): (FeedFormat, u64),
    mut writer: Option<&mut ProductsWriter>,
    shown: usize,
) -> Result<ReadFeed, E> {
    let _permit = READS
        .acquire()
        .await
        .map_err(|error| FeedError::Storage(error.to_string()))?;
    let (products, received) = mpsc::channel::<CatalogProduct>(READ_AHEAD);
    let reading = run_blocking(move || {
        let mut take = |product| {
            products
                .blocking_send(product)
                .map_err(|_| FeedError::Canceled)
        };
        let FeedFile {
            mut file, arrived, ..
        } = feed;
        file.write_all(&arrived)?;
        read_feed(&mut file, format, products_max, &mut take)
    });
    let mut read = ReadFeed::default();
    // The block owns the receiver, so that the reader stops if a product cannot be stored.
    let writing = async {
        let mut received = received;
        while let Some(product) = received.recv().await {
            read.count += 1;
            if let Some(writer) = &mut writer {
                writer.push(&product).await?;
            }
            if read.first.len() < shown {
                read.first.push(product);
            }
        }
        Ok::<_, E>(())
    };
    let (report, written) = tokio::join!(reading, writing);
    written?;
    read.report = report?;
    Ok(read)
}

/// The products of a feed.
#[derive(Debug, Default)]
pub struct ReadFeed {
    /// Number of products.
    pub count: u64,
    /// The first products.
    pub first: Vec<CatalogProduct>,
    /// Rows that were not taken as they are.
    pub report: FeedReport,
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FeedError> + Send + 'static,
) -> Result<T, FeedError> {
    task::spawn_blocking(work)
        .await
        .map_err(|error| FeedError::Storage(error.to_string()))?
}
