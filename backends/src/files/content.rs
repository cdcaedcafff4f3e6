//! Reads of files: whole, by range, and as a model sees them.

use std::ops::Range;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetRange, ObjectStoreExt, path::Path};
use switchboard_schemas::ids::{FileId, OrgId};

use super::{
    FileStore, StoredFile, delete_if_any,
    seal::{BLOCK_BYTES, BlockLayout, PREFIX_BYTES},
    upload::open_blocks,
};
use crate::StoreError;

impl FileStore {
    /// Reads the whole content.
    ///
    /// # Errors
    /// The store cannot be reached, or its object is damaged.
    pub async fn read(&self, file: &StoredFile) -> Result<Vec<u8>, StoreError> {
        let object = self.objects()?.get(&file.path()).await?.bytes().await?;
        let sealed = object.get(PREFIX_BYTES..).unwrap_or_default();
        open_blocks(&file.seal, file.layout(), sealed)
    }

    /// Reads a range of the content, which must be within it. The stream ends with an error where
    /// the store fails or the object is damaged.
    ///
    /// # Errors
    /// The store cannot be reached, or has no such object any more.
    pub async fn read_range(
        &self,
        file: &StoredFile,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, StoreError>> + Send + use<>, StoreError> {
        let layout = file.layout();
        let blocks = layout.blocks_of(&range);
        let options = GetOptions {
            range: Some(GetRange::Bounded(layout.object_range(&blocks))),
            ..GetOptions::default()
        };
        let found = self.objects()?.get_opts(&file.path(), options).await?;
        let sealed = found.into_stream().map_err(StoreError::from);
        let seal = file.seal.clone();
        let state = (blocks.start, Vec::new(), Box::pin(sealed));
        Ok(stream::try_unfold(
            state,
            move |(index, mut pending, mut sealed)| {
                let (seal, range, end) = (seal.clone(), range.clone(), blocks.end);
                async move {
                    if index >= end {
                        return Ok(None);
                    }
                    let size = layout.sealed_bytes(index);
                    while pending.len() < size {
                        let Some(part) = sealed.next().await else {
                            return Err(StoreError::Malformed("file: a block is missing".into()));
                        };
                        pending.extend_from_slice(&part?);
                    }
                    let rest = pending.split_off(size);
                    let number = u32::try_from(index).unwrap_or(u32::MAX);
                    let plain = seal
                        .open_block(number, layout.is_last(index), &pending)
                        .map_err(|error| StoreError::Malformed(error.to_string()))?;
                    let start = index * BLOCK_BYTES as u64;
                    let wanted = within(&range, start, plain.len());
                    let part = Bytes::from(plain).slice(wanted);
                    Ok(Some((part, (index + 1, rest, sealed))))
                }
            },
        ))
    }

    /// Stores the form in which models see a file of a conversation, sealed like the file.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn put_reading(&self, file: &StoredFile, reading: &[u8]) -> Result<(), StoreError> {
        let Some(path) = file.reading_path() else {
            return Ok(());
        };
        let refused = |error: super::seal::UnsealError| StoreError::Refused(error.to_string());
        let (org, id) = (&file.org_id, &file.attachment.file_id);
        let seal = self.vault.new_seal(org, id);
        let mut object = seal.seal_header(&()).map_err(refused)?;
        let layout = BlockLayout::of_content(reading.len() as u64);
        for (index, block) in (0..).zip(reading.chunks(BLOCK_BYTES)) {
            let is_last = layout.is_last(u64::from(index));
            object.extend(seal.seal_block(index, is_last, block).map_err(refused)?);
        }
        let objects = self.objects()?;
        objects.put(&path, object.into()).await?;
        // The file may have been removed since it was read.
        match objects.head(&file.path()).await {
            Err(object_store::Error::NotFound { .. }) => delete_if_any(objects, &path).await,
            _ => Ok(()),
        }
    }

    /// Returns the form in which models see a file, if it was stored.
    ///
    /// # Errors
    /// The store cannot be reached, or its object is damaged.
    pub async fn reading(&self, file: &StoredFile) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(path) = file.reading_path() else {
            return Ok(None);
        };
        let object = match self.objects()?.get(&path).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.open_reading(&file.org_id, &file.attachment.file_id, &object)
            .map(Some)
    }

    fn open_reading(&self, org: &OrgId, id: &FileId, object: &[u8]) -> Result<Vec<u8>, StoreError> {
        let damaged = || StoreError::Malformed("reading of a file".into());
        let (prefix, sealed) = object.split_at_checked(PREFIX_BYTES).ok_or_else(damaged)?;
        let opened = self.vault.open_header::<()>(org, id, prefix);
        let ((), seal) = opened.map_err(|_| damaged())?;
        let layout = BlockLayout::of_object(object.len() as u64).ok_or_else(damaged)?;
        open_blocks(&seal, layout, sealed)
    }
}

impl StoredFile {
    const fn layout(&self) -> BlockLayout {
        BlockLayout::of_content(self.attachment.bytes)
    }

    /// Returns the object with the reading; `None` before the file belongs to a conversation.
    fn reading_path(&self) -> Option<Path> {
        let (org, id) = (&self.org_id, &self.attachment.file_id);
        let conversation = self.conversation.as_ref()?;
        let folder = super::conversation_path(org, conversation);
        Some(folder.join(id.as_str()).join("reading"))
    }
}

/// Returns the part of a block that starts at `start` which lies within `range`.
fn within(range: &Range<u64>, start: u64, length: usize) -> Range<usize> {
    let offset = |position: u64| {
        let offset = usize::try_from(position.saturating_sub(start)).unwrap_or(length);
        offset.min(length)
    };
    offset(range.start)..offset(range.end)
}
