//! The installation secret: one value shared by all processes, from which ids, key hashes and encryption keys derive.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Shortest secret that is accepted, in bytes.
pub const SECRET_BYTES_MIN: usize = 16;

/// The installation secret; never printed.
#[derive(Clone)]
pub struct InstallationSecret(Vec<u8>);

/// The secret is shorter than [`SECRET_BYTES_MIN`].
#[derive(Debug, thiserror::Error)]
#[error("the installation secret must have at least {SECRET_BYTES_MIN} bytes")]
pub struct SecretTooShort;

impl InstallationSecret {
    /// A secret of random bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes.to_vec())
    }

    /// A secret as an operator writes it.
    pub fn parse(text: &str) -> Result<Self, SecretTooShort> {
        let text = text.trim();
        if text.len() < SECRET_BYTES_MIN {
            Err(SecretTooShort)
        } else {
            Ok(Self(text.as_bytes().to_vec()))
        }
    }

    /// A key for one purpose; knowing it tells nothing about another purpose's.
    pub fn derive_key(&self, purpose: &str) -> [u8; 32] {
        self.mac(purpose, &[])
    }

    /// HMAC-SHA-256 of `message` for one purpose.
    pub fn mac(&self, purpose: &str, message: &[u8]) -> [u8; 32] {
        self.running_mac(purpose, message)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Whether `tag` is [`Self::mac`] of `message`, in a time that does not tell how much of it is right.
    pub fn verify_mac(&self, purpose: &str, message: &[u8], tag: &[u8]) -> bool {
        self.running_mac(purpose, message).verify_slice(tag).is_ok()
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }

    fn running_mac(&self, purpose: &str, message: &[u8]) -> Hmac<Sha256> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(&(purpose.len() as u64).to_be_bytes());
        mac.update(purpose.as_bytes());
        mac.update(message);
        mac
    }
}

impl fmt::Debug for InstallationSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InstallationSecret(…)")
    }
}
