//! The sealed form of a file: XChaCha20-Poly1305 in the STREAM construction, bound to organization
//! and file, so that blocks cannot be exchanged, reordered or left out.
//!
//! The first block is the header, of a fixed size; the others are the content. So the size of the
//! content follows from that of the object, and a range is read without what is before it.

use std::ops::Range;

use aead_stream::{NewStream, StreamBE32, StreamPrimitive};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305,
    aead::{Payload, array::Array},
};
use serde::{Serialize, de::DeserializeOwned};
use switchboard_schemas::{
    ids::{FileId, OrgId},
    secret::InstallationSecret,
};

/// Version of the sealed form, its first byte.
const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 19;
const TAG_BYTES: usize = 16;
/// Size of the plain header: JSON, filled up with spaces.
const HEADER_BYTES: usize = 4096;
/// Bytes before the content: version, nonce and sealed header.
pub(super) const PREFIX_BYTES: usize = 1 + NONCE_BYTES + HEADER_BYTES + TAG_BYTES;
/// Size of a plain block of the content; the last one may be shorter.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
const SEALED_BLOCK_BYTES: u64 = (BLOCK_BYTES + TAG_BYTES) as u64;

/// The error for bytes that were not sealed for this file, or are damaged.
#[derive(Debug, thiserror::Error)]
#[error("the file cannot be decrypted with this installation secret")]
pub(super) struct UnsealError;

/// Encrypts and decrypts the files of an installation.
pub(super) struct FileVault {
    cipher: XChaCha20Poly1305,
}

/// Encrypts or decrypts the blocks of one file.
pub(super) struct BlockSeal {
    stream: StreamBE32<XChaCha20Poly1305>,
    nonce: [u8; NONCE_BYTES],
    context: String,
}

impl FileVault {
    pub(super) fn new(secret: &InstallationSecret) -> Self {
        let key = Key::from(secret.derive_key("files"));
        Self {
            cipher: XChaCha20Poly1305::new(&key),
        }
    }

    /// Returns the seal of a new file.
    pub(super) fn new_seal(&self, org: &OrgId, file: &FileId) -> BlockSeal {
        self.block_seal(org, file, rand::random())
    }

    /// Opens the first [`PREFIX_BYTES`] of an object.
    pub(super) fn open_header<H: DeserializeOwned>(
        &self,
        org: &OrgId,
        file: &FileId,
        prefix: &[u8],
    ) -> Result<(H, BlockSeal), UnsealError> {
        let (version, rest) = prefix.split_first().ok_or(UnsealError)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES).ok_or(UnsealError)?;
        if *version != SEAL_VERSION {
            return Err(UnsealError);
        }
        let nonce = nonce.try_into().map_err(|_| UnsealError)?;
        let seal = self.block_seal(org, file, nonce);
        let plain = seal.open(0, false, sealed)?;
        let header = serde_json::from_slice(&plain).map_err(|_| UnsealError)?;
        Ok((header, seal))
    }

    fn block_seal(&self, org: &OrgId, file: &FileId, nonce: [u8; NONCE_BYTES]) -> BlockSeal {
        BlockSeal {
            stream: StreamBE32::from_aead(self.cipher.clone(), &Array(nonce)),
            nonce,
            context: format!("{org}/{file}"),
        }
    }
}

impl BlockSeal {
    /// Seals the header. Returns the first [`PREFIX_BYTES`] of the object.
    pub(super) fn seal_header(&self, header: &impl Serialize) -> Result<Vec<u8>, UnsealError> {
        let mut plain = serde_json::to_vec(header).map_err(|_| UnsealError)?;
        if plain.len() > HEADER_BYTES {
            return Err(UnsealError);
        }
        plain.resize(HEADER_BYTES, b' ');
        let sealed = self.seal(0, false, &plain)?;
        Ok([&[SEAL_VERSION][..], &self.nonce, &sealed].concat())
    }

    /// Seals the block of the content with this index, counted from 0.
    pub(super) fn seal_block(
        &self,
        index: u32,
        is_last: bool,
        plain: &[u8],
    ) -> Result<Vec<u8>, UnsealError> {
        self.seal(index.saturating_add(1), is_last, plain)
    }

    /// Opens the result of [`Self::seal_block`].
    pub(super) fn open_block(
        &self,
        index: u32,
        is_last: bool,
        sealed: &[u8],
    ) -> Result<Vec<u8>, UnsealError> {
        self.open(index.saturating_add(1), is_last, sealed)
    }

    fn seal(&self, position: u32, is_last: bool, plain: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let sealed = self.stream.encrypt(position, is_last, self.payload(plain));
        sealed.map_err(|_| UnsealError)
    }

    fn open(&self, position: u32, is_last: bool, sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let plain = self.stream.decrypt(position, is_last, self.payload(sealed));
        plain.map_err(|_| UnsealError)
    }

    fn payload<'a>(&'a self, msg: &'a [u8]) -> Payload<'a, 'a> {
        Payload {
            msg,
            aad: self.context.as_bytes(),
        }
    }
}

/// The blocks of a content of a given size.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLayout {
    content_bytes: u64,
}

impl BlockLayout {
    pub(super) const fn of_content(content_bytes: u64) -> Self {
        Self { content_bytes }
    }

    /// Returns the layout of a sealed object of this size.
    pub(super) fn of_object(object_bytes: u64) -> Option<Self> {
        let sealed = object_bytes.checked_sub(PREFIX_BYTES as u64)?;
        let blocks = sealed.div_ceil(SEALED_BLOCK_BYTES);
        let content_bytes = sealed.checked_sub(blocks * TAG_BYTES as u64)?;
        Some(Self { content_bytes })
    }

    pub(super) const fn content_bytes(self) -> u64 {
        self.content_bytes
    }

    /// Returns the indexes of the blocks that have the bytes of a range that is not empty.
    pub(super) const fn blocks_of(self, range: &Range<u64>) -> Range<u64> {
        range.start / BLOCK_BYTES as u64..range.end.div_ceil(BLOCK_BYTES as u64)
    }

    pub(super) const fn is_last(self, index: u64) -> bool {
        index + 1 >= self.content_bytes.div_ceil(BLOCK_BYTES as u64)
    }

    /// Returns the place of some blocks in the object.
    pub(super) fn object_range(self, blocks: &Range<u64>) -> Range<u64> {
        let prefix = PREFIX_BYTES as u64;
        let blocks_max = self.content_bytes.div_ceil(BLOCK_BYTES as u64);
        let object_bytes = prefix + self.content_bytes + blocks_max * TAG_BYTES as u64;
        let end = prefix + blocks.end * SEALED_BLOCK_BYTES;
        prefix + blocks.start * SEALED_BLOCK_BYTES..end.min(object_bytes)
    }

    /// Returns the size of a sealed block.
    pub(super) const fn sealed_bytes(self, index: u64) -> usize {
        let rest = self.content_bytes - index * BLOCK_BYTES as u64;
        let plain = if rest < BLOCK_BYTES as u64 {
            rest as usize
        } else {
            BLOCK_BYTES
        };
        plain + TAG_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> FileVault {
        FileVault::new(&InstallationSecret::from_bytes([1; 32]))
    }

    fn org(slug: &str) -> OrgId {
        OrgId::derive(&InstallationSecret::from_bytes([1; 32]), slug)
    }

    #[test]
    fn header_opens_only_for_its_organization_and_file() {
        let (file, other) = (FileId::now(), FileId::now());
        let seal = vault().new_seal(&org("a"), &file);
        let prefix = seal.seal_header(&"secret.txt").unwrap();
        assert_eq!(prefix.len(), PREFIX_BYTES);
        let (name, _) = vault()
            .open_header::<String>(&org("a"), &file, &prefix)
            .unwrap();
        assert_eq!(name, "secret.txt");
        assert!(!prefix.windows(6).any(|part| part == b"secret"));
        for (org, file) in [(org("b"), &file), (org("a"), &other)] {
            assert!(vault().open_header::<String>(&org, file, &prefix).is_err());
        }
    }

    #[test]
    fn block_opens_only_in_its_place() {
        let seal = vault().new_seal(&org("a"), &FileId::now());
        let sealed = seal.seal_block(1, false, b"text").unwrap();
        assert_eq!(seal.open_block(1, false, &sealed).unwrap(), b"text");
        assert!(seal.open_block(0, false, &sealed).is_err());
        assert!(seal.open_block(1, true, &sealed).is_err());
    }

    #[test]
    fn layout_of_an_object_is_that_of_its_content() {
        let block = BLOCK_BYTES as u64;
        for content in [1, block - 1, block, block + 1, 5 * block, 10_000_000] {
            let layout = BlockLayout::of_content(content);
            let blocks = layout.blocks_of(&(0..content));
            let object = layout.object_range(&blocks);
            let sealed: u64 = blocks.clone().map(|n| layout.sealed_bytes(n) as u64).sum();
            assert_eq!(object, PREFIX_BYTES as u64..PREFIX_BYTES as u64 + sealed);
            let read = BlockLayout::of_object(object.end).unwrap();
            assert_eq!(read.content_bytes(), content);
            assert!(
                layout.is_last(blocks.end - 1) && !blocks.rev().skip(1).any(|n| layout.is_last(n))
            );
        }
    }
}
