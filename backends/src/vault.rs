//! Encryption of provider keys at rest: XChaCha20-Poly1305 with a key derived from the installation
//! secret, bound to the organization, so that an encrypted key copied to another organization's row
//! cannot be opened.

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use secrecy::{ExposeSecret, SecretString};
use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

/// Version of the encrypted form, its first byte, so that the key can be rotated.
const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Encrypts and decrypts secrets of organizations.
#[derive(Clone)]
pub struct SecretVault {
    cipher: XChaCha20Poly1305,
}

/// The error for bytes that cannot be decrypted: another secret, another organization, or damage.
#[derive(Debug, thiserror::Error)]
#[error("the provider key cannot be decrypted with this installation secret")]
pub struct UnsealError;

impl SecretVault {
    /// Creates the vault of this installation.
    pub fn new(secret: &InstallationSecret) -> Self {
        let key = Key::from(secret.derive_key("provider-keys"));
        Self {
            cipher: XChaCha20Poly1305::new(&key),
        }
    }

    /// Encrypts `plain` for `org`.
    pub fn seal(&self, org: &OrgId, plain: &SecretString) -> Result<Vec<u8>, UnsealError> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload {
            msg: plain.expose_secret().as_bytes(),
            aad: org.as_str().as_bytes(),
        };
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| UnsealError)?;
        Ok([&[SEAL_VERSION][..], &nonce, &sealed].concat())
    }

    /// Decrypts the result of [`Self::seal`] for the same organization.
    pub fn open(&self, org: &OrgId, sealed: &[u8]) -> Result<SecretString, UnsealError> {
        let (head, message) = sealed
            .split_at_checked(1 + NONCE_BYTES)
            .ok_or(UnsealError)?;
        let (version, nonce) = head.split_first().ok_or(UnsealError)?;
        if *version != SEAL_VERSION {
            return Err(UnsealError);
        }
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| UnsealError)?;
        let payload = Payload {
            msg: message,
            aad: org.as_str().as_bytes(),
        };
        let plain = self
            .cipher
            .decrypt(&XNonce::from(nonce), payload)
            .map_err(|_| UnsealError)?;
        String::from_utf8(plain)
            .map(SecretString::from)
            .map_err(|_| UnsealError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> SecretVault {
        SecretVault::new(&InstallationSecret::from_bytes([1; 32]))
    }

    fn org(slug: &str) -> OrgId {
        OrgId::derive(&InstallationSecret::from_bytes([1; 32]), slug)
    }

    #[test]
    fn sealed_key_opens_only_for_its_organization() {
        let sealed = vault().seal(&org("a"), &"sk-secret".into()).unwrap();
        assert_eq!(
            vault().open(&org("a"), &sealed).unwrap().expose_secret(),
            "sk-secret"
        );
        assert!(vault().open(&org("b"), &sealed).is_err());
    }

    #[test]
    fn foreign_or_damaged_key_does_not_open() {
        let sealed = vault().seal(&org("a"), &"sk-secret".into()).unwrap();
        let other = SecretVault::new(&InstallationSecret::from_bytes([2; 32]));
        assert!(other.open(&org("a"), &sealed).is_err());
        for cut in 0..sealed.len() {
            assert!(vault().open(&org("a"), &sealed[..cut]).is_err());
        }
    }

    #[test]
    fn sealed_bytes_do_not_contain_the_plain_text() {
        let sealed = vault().seal(&org("a"), &"sk-secret".into()).unwrap();
        assert!(!sealed.windows(9).any(|window| window == b"sk-secret"));
    }
}
