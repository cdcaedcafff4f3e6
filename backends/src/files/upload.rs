//! A file that is being uploaded: sealed block by block into a file without a name, so that neither
//! a client that goes away nor a crash leaves anything.

use std::{fs::File, io, sync::Arc};

use bytes::Bytes;
use switchboard_schemas::{
    file::Attachment,
    ids::{FileId, OrgId},
};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::{
    FileHeader, FileStore, StoredFile,
    seal::{BLOCK_BYTES, BlockLayout, BlockSeal, PREFIX_BYTES, UnsealError},
};
use crate::StoreError;

/// Blocks after which the free space of the disk is read again: 1 MiB. All uploads of a process
/// together write less in between than has to be free.
const BLOCKS_PER_DISK_CHECK: u32 = 16;

/// A file that is being uploaded. Dropping it discards what has arrived.
pub struct FileUpload {
    org: OrgId,
    id: FileId,
    /// The sealed blocks.
    spool: tokio::fs::File,
    free_bytes_min: u64,
    seal: BlockSeal,
    /// Plain bytes that are not sealed yet: at most one block, so that the last one is known.
    pending: Vec<u8>,
    blocks: u32,
    bytes: u64,
}

impl FileUpload {
    pub(super) async fn begin(store: &FileStore, org: &OrgId) -> Result<Self, StoreError> {
        let id = FileId::now();
        let directory = store.spool_dir.clone();
        let spool: File = tokio::task::spawn_blocking(move || tempfile::tempfile_in(directory))
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?
            .map_err(|error| spool_error(&error))?;
        Ok(Self {
            org: org.clone(),
            seal: store.vault.new_seal(org, &id),
            id,
            spool: tokio::fs::File::from_std(spool),
            free_bytes_min: store.free_bytes_min,
            pending: Vec::with_capacity(BLOCK_BYTES),
            blocks: 0,
            bytes: 0,
        })
    }

    /// Returns the number of bytes that have arrived.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes of the content.
    ///
    /// # Errors
    /// The local disk is full or broken.
    pub async fn write(&mut self, mut part: &[u8]) -> Result<(), StoreError> {
        self.bytes += part.len() as u64;
        while !part.is_empty() {
            if self.pending.len() == BLOCK_BYTES {
                self.write_block(false).await?;
            }
            let taken = part.len().min(BLOCK_BYTES - self.pending.len());
            self.pending.extend_from_slice(&part[..taken]);
            part = &part[taken..];
        }
        Ok(())
    }

    /// Stores the file under its id, where it waits for a message. `check` sees the whole content,
    /// on a thread that may block; a file that it rejects is not stored.
    ///
    /// # Errors
    /// The store cannot be reached. The inner error is that of `check`.
    pub async fn finish<E: Send + 'static>(
        mut self,
        store: &FileStore,
        header: FileHeader,
        check: Option<impl FnOnce(&[u8]) -> Result<(), E> + Send + 'static>,
    ) -> Result<Result<StoredFile, E>, StoreError> {
        // Bounds the memory of uploads: their bytes are on disk until now.
        let _permit = store
            .finishing
            .acquire()
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.write_block(true).await?;
        let sealed_header = self.seal.seal_header(&header).map_err(refused)?;
        let object = self
            .read_spool(sealed_header)
            .await
            .map_err(|error| spool_error(&error))?;
        let seal = Arc::new(self.seal);
        if let Some(check) = check {
            let (seal, sealed) = (seal.clone(), object.slice(PREFIX_BYTES..));
            let layout = BlockLayout::of_content(self.bytes);
            let checked = tokio::task::spawn_blocking(move || {
                open_blocks(&seal, layout, &sealed).map(|plain| check(&plain))
            });
            let outcome = checked.await;
            let outcome = outcome.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            if let Err(refusal) = outcome? {
                return Ok(Err(refusal));
            }
        }
        store.put_upload(&self.org, &self.id, object).await?;
        Ok(Ok(StoredFile {
            attachment: Attachment {
                file_id: self.id,
                name: header.name.clone(),
                mime_type: header.mime_type,
                bytes: self.bytes,
            },
            org_id: self.org,
            header,
            conversation: None,
            seal,
        }))
    }

    async fn write_block(&mut self, is_last: bool) -> Result<(), StoreError> {
        if self.blocks.is_multiple_of(BLOCKS_PER_DISK_CHECK) {
            self.check_disk()?;
        }
        let sealed = self
            .seal
            .seal_block(self.blocks, is_last, &self.pending)
            .map_err(refused)?;
        self.pending.clear();
        self.blocks += 1;
        let written = self.spool.write_all(&sealed).await;
        written.map_err(|error| spool_error(&error))
    }

    fn check_disk(&self) -> Result<(), StoreError> {
        let Ok(disk) = rustix::fs::fstatvfs(&self.spool) else {
            // File systems need not count their free blocks.
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free >= self.free_bytes_min {
            return Ok(());
        }
        let detail = format!("uploads are refused: the local disk has only {free} bytes free");
        Err(StoreError::Unavailable(detail))
    }

    /// Returns the object: the sealed header, then the blocks.
    async fn read_spool(&mut self, mut object: Vec<u8>) -> io::Result<Bytes> {
        self.spool.flush().await?;
        let sealed = usize::try_from(self.spool.metadata().await?.len());
        let sealed = sealed.map_err(io::Error::other)?;
        self.spool.rewind().await?;
        // In one piece: a growing buffer would take up to three times as much.
        let start = object.len();
        object.reserve_exact(sealed);
        object.resize(start + sealed, 0);
        self.spool.read_exact(&mut object[start..]).await?;
        Ok(object.into())
    }
}

/// Opens all blocks of a content.
pub(super) fn open_blocks(
    seal: &BlockSeal,
    layout: BlockLayout,
    mut sealed: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let size = usize::try_from(layout.content_bytes()).unwrap_or_default();
    let mut plain = Vec::with_capacity(size);
    for index in layout.blocks_of(&(0..layout.content_bytes())) {
        let damaged = || StoreError::Malformed("file: a block is missing".into());
        let (block, rest) = sealed
            .split_at_checked(layout.sealed_bytes(index))
            .ok_or_else(damaged)?;
        let number = u32::try_from(index).map_err(|_| damaged())?;
        let opened = seal.open_block(number, layout.is_last(index), block);
        plain.extend(opened.map_err(|error| StoreError::Malformed(error.to_string()))?);
        sealed = rest;
    }
    Ok(plain)
}

fn refused(error: UnsealError) -> StoreError {
    StoreError::Refused(error.to_string())
}

fn spool_error(error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("temporary file of an upload: {error}"))
}
