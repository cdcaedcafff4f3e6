//! 256 random bits as text: what proves a session, or opens a one-time link. Only a keyed hash of it is ever kept.

use std::str::FromStr;

use crate::{base32, secret::InstallationSecret};

/// Parts of 128 bits.
const PARTS: usize = 2;
/// Characters of a token.
pub const TOKEN_CHARS: usize = PARTS * base32::ENCODED_CHARS;

/// The text in clear, as its holder sends it; never printed but in the one answer that makes it, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomToken(String);

/// The keyed hash under which a token is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenHash(pub [u8; 32]);

/// What a token is for: one that was made for one thing proves nothing elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPurpose {
    /// A session of the dashboard.
    Session,
    /// A link that works once.
    Link,
}

/// The text has not the form of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token")]
pub struct InvalidToken;

impl RandomToken {
    /// Draws a new one.
    pub fn generate() -> Self {
        Self((0..PARTS).map(|_| base32::encode(rand::random())).collect())
    }

    /// The text, for its holder alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash under which it is kept and found.
    pub fn hash(&self, secret: &InstallationSecret, purpose: TokenPurpose) -> TokenHash {
        TokenHash(secret.mac(purpose.name(), self.0.as_bytes()))
    }

    /// Whether `hash` is this token's, in a time that does not tell how much of it is right.
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
    fn no_two_tokens_are_alike_and_each_reads_as_itself() {
        let (one, two) = (RandomToken::generate(), RandomToken::generate());
        assert!(one != two);
        assert!(one.expose().parse::<RandomToken>().unwrap() == one);
        for text in ["", "é", &one.expose()[1..], &format!("{}0", one.expose())] {
            assert!(text.parse::<RandomToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_hash_belongs_to_one_purpose_and_one_installation() {
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
