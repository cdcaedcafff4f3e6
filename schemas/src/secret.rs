//! The installation secret, shared by all processes, from which ids, key hashes and encryption keys
//! are derived.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Minimum length of an operator's secret, in bytes. The admin token gives access to all
/// organizations, and only its length protects it against guesses from many addresses.
pub const SECRET_BYTES_MIN: usize = 16;

/// The installation secret. It is never printed.
#[derive(Clone)]
pub struct InstallationSecret(Vec<u8>);

/// Part of the placeholders that examples contain in place of a secret.
const PLACEHOLDER: &str = "changeme";

/// The error for a secret that is easy to guess.
#[derive(Debug, thiserror::Error)]
pub enum WeakSecret {
    /// It is shorter than [`SECRET_BYTES_MIN`].
    #[error("must have at least {SECRET_BYTES_MIN} bytes")]
    TooShort,
    /// It is a placeholder of an example.
    #[error("is a placeholder; use for instance the output of `openssl rand -hex 32`")]
    Placeholder,
}

/// Checks that an operator's secret is long enough and no placeholder.
///
/// # Errors
/// The reason for which it is easy to guess.
pub fn check_strength(secret: &str) -> Result<(), WeakSecret> {
    if secret.len() < SECRET_BYTES_MIN {
        Err(WeakSecret::TooShort)
    } else if secret.to_ascii_lowercase().contains(PLACEHOLDER) {
        Err(WeakSecret::Placeholder)
    } else {
        Ok(())
    }
}

impl InstallationSecret {
    /// Creates a secret from random bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes.to_vec())
    }

    /// Parses a secret as an operator writes it.
    ///
    /// # Errors
    /// It is easy to guess.
    pub fn parse(text: &str) -> Result<Self, WeakSecret> {
        let text = text.trim();
        check_strength(text)?;
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// Derives a key for one purpose, which reveals nothing about the keys of other purposes.
    pub fn derive_key(&self, purpose: &str) -> [u8; 32] {
        self.mac(purpose, &[])
    }

    /// Returns the HMAC-SHA-256 of `message` for one purpose.
    pub fn mac(&self, purpose: &str, message: &[u8]) -> [u8; 32] {
        self.running_mac(purpose, message)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Returns `true` if `tag` is [`Self::mac`] of `message`. The comparison takes constant time.
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
