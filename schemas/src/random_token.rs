//! Random tokens of 256 bits for dashboard sessions and one-time links. Only a keyed hash is
//! stored.

use std::str::FromStr;

use crate::{base32, secret::InstallationSecret};

/// Number of parts of 128 bits.
const PARTS: usize = 2;
/// Length of a token, in characters.
pub const TOKEN_CHARS: usize = PARTS * base32::ENCODED_CHARS;

/// A token in clear text, as its holder sends it. It is shown only in the response that creates it
/// and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomToken(String);

/// The keyed hash by which a token is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenHash(pub [u8; 32]);

/// The purpose of a token. A token for one purpose is invalid for every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPurpose {
    /// A session of the dashboard.
    Session,
    /// A one-time link.
    Link,
}

/// The error for a text that does not have the form of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token")]
pub struct InvalidToken;

impl RandomToken {
    /// Generates a random token.
    pub fn generate() -> Self {
        Self((0..PARTS).map(|_| base32::encode(rand::random())).collect())
    }

    /// Returns the clear text, for its holder alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash under which the token is stored.
    pub fn hash(&self, secret: &InstallationSecret, purpose: TokenPurpose) -> TokenHash {
        TokenHash(secret.mac(purpose.name(), self.0.as_bytes()))
    }

    /// Returns `true` if `hash` is the hash of this token. The comparison takes constant time.
    pub fn has_hash(
        &self,
        secret: &InstallationSecret,
        purpose: TokenPurpose,
        hash: &TokenHash,
    ) -> bool {
        secret.verify_mac(purpose.name(), self.0.as_bytes(), &hash.0)
    }
}

impl TokenPurpose {
    const fn name(self) -> &'static str {
        match self {
            Self::Session => "dashboard-session",
            Self::Link => "one-time-link",
        }
    }
}

impl FromStr for RandomToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let well_formed = text.is_ascii()
            && text.len() == TOKEN_CHARS
            && (0..PARTS).all(|part| {
                base32::is_encoded(&text[part * base32::ENCODED_CHARS..][..base32::ENCODED_CHARS])
            });
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidToken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_round_trip() {
        let (one, two) = (RandomToken::generate(), RandomToken::generate());
        assert!(one != two);
        assert!(one.expose().parse::<RandomToken>().unwrap() == one);
        for text in ["", "é", &one.expose()[1..], &format!("{}0", one.expose())] {
            assert!(text.parse::<RandomToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn token_hash_depends_on_purpose_and_installation() {
        let token = RandomToken::generate();
        let (ours, other) = (
            InstallationSecret::from_bytes([1; 32]),
            InstallationSecret::from_bytes([2; 32]),
        );
        let hash = token.hash(&ours, TokenPurpose::Session);
        assert!(token.has_hash(&ours, TokenPurpose::Session, &hash));
        assert!(!token.has_hash(&ours, TokenPurpose::Link, &hash));
        assert!(!token.has_hash(&other, TokenPurpose::Session, &hash));
    }
}
