//! Password rules and hashing. Hashing is slow by design and therefore limited in concurrency.

use std::{sync::Arc, time::Duration};

use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use secrecy::{ExposeSecret, SecretString};
use switchboard_schemas::user::PasswordHash;
use tokio::{sync::Semaphore, task};

use crate::http::{ApiError, ApiResult};

/// Argon2id parameters recommended by OWASP: memory per hash, passes, lanes.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Hashes computed in parallel, each with its own memory and processor.
const HASHES_AT_ONCE: usize = 2;
/// Timeout of waiting for a free hashing slot: the queue has at most one sign-in of each address.
const SLOT_WAIT: Duration = Duration::from_secs(20);
const PASSWORD_CHARS_MIN: usize = 12;
const PASSWORD_BYTES_MAX: usize = 1024;

/// Hashes and verifies passwords with bounded concurrency.
pub(crate) struct PasswordHashing {
    places: Arc<Semaphore>,
}

impl Default for PasswordHashing {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
        }
    }
}

impl PasswordHashing {
    /// Returns the hash of a new password.
    ///
    /// # Errors
    /// Returns `UNAVAILABLE` if no hashing slot becomes free in time.
    pub(crate) async fn hash(&self, password: SecretString) -> ApiResult<PasswordHash> {
        self.with_slot(move || {
            let salt: [u8; SALT_BYTES] = rand::random();
            let hash =
                new_hasher()?.hash_password_with_salt(password.expose_secret().as_bytes(), &salt);
            hash.map(|hash| PasswordHash(hash.to_string()))
                .map_err(|error| error.to_string())
        })
        .await
    }

    /// Returns true if `password` matches the stored hash. Without a hash the same work is done, so
    /// that response times do not reveal which accounts exist.
    ///
    /// # Errors
    /// Returns `UNAVAILABLE` if no hashing slot becomes free in time.
    pub(crate) async fn verify(
        &self,
        password: SecretString,
        kept: Option<PasswordHash>,
    ) -> ApiResult<bool> {
        self.with_slot(move || {
            let is_kept = kept.is_some();
            let kept = kept.unwrap_or_else(decoy_hash);
            // Parameters are read from the stored hash, so that older hashes stay valid.
            let verified =
                new_hasher()?.verify_password(password.expose_secret().as_bytes(), kept.0.as_str());
            Ok(is_kept & verified.is_ok())
        })
        .await
    }

    async fn with_slot<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> ApiResult<T> {
        let place = tokio::time::timeout(SLOT_WAIT, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(ApiError::unavailable("too many concurrent sign-ins"));
        };
        let working = task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        let outcome = working.await.map_err(|error| ApiError::internal(&error))?;
        outcome.map_err(|error| ApiError::internal(&error))
    }
}

/// Validates a new password. Only its length is checked: composition rules make passwords worse.
///
/// # Errors
/// Returns an error if it is too short, too long, or equal to the account's address.
pub(crate) fn chosen_password(field: &str, text: &str, email: &str) -> ApiResult<SecretString> {
    if text.chars().count() < PASSWORD_CHARS_MIN {
        return Err(ApiError::field(field, "must have at least 12 characters"));
    }
    if text.len() > PASSWORD_BYTES_MAX {
        return Err(ApiError::field(field, "must have at most 1024 bytes"));
    }
    if text.eq_ignore_ascii_case(email) {
        return Err(ApiError::field(
            field,
            "must not be the account's own address",
        ));
    }
    Ok(text.into())
}

/// Returns a password to verify, or an empty one if the text is too long to be valid.
pub(crate) fn offered_password(text: &str) -> SecretString {
    if text.len() > PASSWORD_BYTES_MAX {
        String::new().into()
    } else {
        text.into()
    }
}

fn new_hasher() -> Result<Argon2<'static>, String> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_BYTES))
        .map_err(|error| error.to_string())?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Returns a hash that no password matches and that costs as much to verify as any other.
fn decoy_hash() -> PasswordHash {
    let (salt, hash) = ("A".repeat(22), "A".repeat(43));
    PasswordHash(format!(
        "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${hash}"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn password_is_verified_and_another_one_is_not() {
        let passwords = PasswordHashing::default();
        let kept = passwords
            .hash("correct horse battery".into())
            .await
            .unwrap();
        assert!(kept.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !kept.0.contains("horse"));
        assert_ne!(
            kept,
            passwords
                .hash("correct horse battery".into())
                .await
                .unwrap(),
            "two hashes share a salt"
        );
        assert!(
            passwords
                .verify("correct horse battery".into(), Some(kept.clone()))
                .await
                .unwrap()
        );
        assert!(
            !passwords
                .verify("correct horse batterz".into(), Some(kept))
                .await
                .unwrap()
        );
        assert!(
            !passwords
                .verify("correct horse battery".into(), None)
                .await
                .unwrap()
        );
    }

    #[tokio::test]
    async fn decoy_is_computed_like_a_stored_hash() {
        let stored = PasswordHashing::default()
            .hash("correct horse battery".into())
            .await
            .unwrap();
        let costs = |hash: &PasswordHash| {
            let parts: Vec<String> = hash.0.split('$').map(str::to_owned).collect();
            let lengths = [parts[4].len(), parts[5].len()];
            (parts[..4].to_vec(), lengths)
        };
        assert_eq!(costs(&decoy_hash()), costs(&stored));
        // A malformed hash would be refused with another error before anything is computed.
        let refusal = |hash: &PasswordHash| {
            let guess = b"a wrong guess of it";
            new_hasher()
                .unwrap()
                .verify_password(guess, hash.0.as_str())
        };
        assert_eq!(refusal(&decoy_hash()), refusal(&stored));
        assert!(refusal(&stored).is_err());
    }

    #[tokio::test]
    async fn unknown_account_costs_as_much_as_a_known_one() {
        let passwords = PasswordHashing::default();
        let stored = passwords
            .hash("correct horse battery".into())
            .await
            .unwrap();
        let cost = async |account: Option<PasswordHash>| {
            let began = Instant::now();
            let guess = "a wrong guess of it".into();
            assert!(!passwords.verify(guess, account).await.unwrap());
            began.elapsed()
        };
        // A busy machine only adds to a time: the shortest of at least five approach the real
        // costs, and further ones approach them more.
        let (mut known, mut unknown) = (Duration::MAX, Duration::MAX);
        for round in 1..=100 {
            known = known.min(cost(Some(stored.clone())).await);
            unknown = unknown.min(cost(None).await);
            if round >= 5 && unknown * 2 > known {
                return;
            }
        }
        panic!("{unknown:?} for an unknown account, {known:?} for a known one");
    }

    #[test]
    fn password_rules_are_length_and_not_the_account_name() {
        let ada = "ada.lovelace@example.org";
        for text in [
            "",
            "elevenchars",
            "Ada.Lovelace@example.org",
            &"x".repeat(1025),
        ] {
            assert!(chosen_password("password", text, ada).is_err(), "{text}");
        }
        for text in ["twelve chars", "aaaaaaaaaaaa", "žluťoučký kůň"] {
            assert!(chosen_password("password", text, ada).is_ok(), "{text}");
        }
    }
}
