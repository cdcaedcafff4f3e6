//! API keys: their text form, what is kept of them, and what they allow (specification: Authentication).

use std::str::FromStr;

use rand::{RngExt, distr::Alphanumeric};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ids::{KeyId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

/// What every production key begins with.
pub const KEY_PREFIX: &str = "svc_live_";
/// Random characters of a key, about 154 bits.
const RANDOM_CHARS: usize = 26;
/// Characters of the checksum: a mistyped key is refused without a look into a store.
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key in clear, as its holder sends it; never printed, never stored.
#[derive(Clone)]
pub struct ApiKeyText(String);

/// The text is no key of this service; says nothing about why, so that it cannot be echoed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an API key")]
pub struct InvalidApiKey;

/// The keyed hash under which a key is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ApiKeyHash(pub [u8; 32]);

/// What a key allows (specification: Scopes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Send and receive messages.
    Chat,
    /// Read agent and widget configuration.
    Config,
    /// Read and update conversation history.
    Conversations,
}

/// What is kept of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Its public name.
    pub id: KeyId,
    /// The organization it is bound to.
    pub org_id: OrgId,
    /// Label given at creation.
    pub name: String,
    /// What it allows; empty means all.
    pub scopes: Vec<KeyScope>,
    /// From this second on it is refused; absent means never.
    pub expires_at: Option<Timestamp>,
    /// Requests a minute that differ from the usual ones.
    #[serde(default)]
    pub limits: KeyLimits,
    /// The end of its text, to tell keys apart.
    pub last_four: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Requests a minute of one key; absent means the usual limit (specification: Limits).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyLimits {
    /// Agent and team chat together.
    pub chat_per_minute: Option<u32>,
    /// Both configuration reads.
    pub config_per_minute: Option<u32>,
    /// Conversation reads and updates.
    pub conversations_per_minute: Option<u32>,
}

impl ApiKey {
    /// Whether the key may do what `scope` covers.
    pub fn allows(&self, scope: KeyScope) -> bool {
        self.scopes.is_empty() || self.scopes.contains(&scope)
    }

    /// Whether the key is past its time: at that second and after it.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

impl ApiKeyText {
    /// Draws a new key.
    pub fn generate() -> Self {
        let random: String = rand::rng()
            .sample_iter(Alphanumeric)
            .take(RANDOM_CHARS)
            .map(char::from)
            .collect();
        let checksum = checksum(&random);
        Self(format!("{KEY_PREFIX}{random}{checksum}"))
    }

    /// The text, for the one answer that shows it and for the file of the demo key.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash under which the key is kept and found.
    pub fn hash(&self, secret: &InstallationSecret) -> ApiKeyHash {
        ApiKeyHash(secret.mac("api-key", self.0.as_bytes()))
    }

    /// The end of the text, to tell keys apart.
    pub fn last_four(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl FromStr for ApiKeyText {
    type Err = InvalidApiKey;

    fn from_str(text: &str) -> Result<Self, InvalidApiKey> {
        let payload = text.strip_prefix(KEY_PREFIX).ok_or(InvalidApiKey)?;
        let well_formed = payload.len() == RANDOM_CHARS + CHECKSUM_CHARS
            && payload.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && checksum(&payload[..RANDOM_CHARS]) == payload[RANDOM_CHARS..];
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidApiKey)
        }
    }
}

/// CRC-32 (IEEE 802.3) in base 62: not a secret, only a guard against typing errors and blind guesses.
fn checksum(random: &str) -> String {
    let mut crc = u32::MAX;
    for byte in random.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xEDB8_8320
            } else {
                crc >> 1
            };
        }
    }
    let mut rest = !crc;
    let mut digits = [0u8; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn generated_key_has_a_prefix_and_32_characters_and_parses() {
        let key = ApiKeyText::generate();
        assert_eq!(key.expose().len(), KEY_PREFIX.len() + 32);
        assert!(key.expose().parse::<ApiKeyText>().is_ok());
    }

    #[test]
    fn one_wrong_character_is_noticed() {
        let key = ApiKeyText::generate();
        for position in KEY_PREFIX.len()..key.expose().len() {
            let mut text = key.expose().as_bytes().to_vec();
            text[position] = if text[position] == b'a' { b'b' } else { b'a' };
            assert!(
                String::from_utf8(text)
                    .unwrap()
                    .parse::<ApiKeyText>()
                    .is_err()
            );
        }
    }

    #[test]
    fn test_keys_and_other_text_are_refused() {
        let live = ApiKeyText::generate();
        let test = live.expose().replace("svc_live_", "svc_test_");
        for text in [
            "",
            "svc_live_",
            "Bearer",
            &test,
            "svc_live_éééééééééééééééé",
        ] {
            assert!(text.parse::<ApiKeyText>().is_err());
        }
    }

    #[test]
    fn the_checksum_is_the_standard_crc32() {
        // The check value of CRC-32/ISO-HDLC for "123456789" is 0xCBF43926 = 3421780262.
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_for_a_key_is_exactly_one(text in "(svc_live_)?[0-9A-Za-z]{0,40}|\\PC{0,60}") {
            if let Ok(key) = text.parse::<ApiKeyText>() {
                let random = &text[KEY_PREFIX.len()..KEY_PREFIX.len() + RANDOM_CHARS];
                prop_assert_eq!(format!("{KEY_PREFIX}{random}{}", checksum(random)), text.as_str());
                prop_assert_eq!(key.expose(), text.as_str());
            }
        }

        #[test]
        fn key_parses_only_with_its_checksum_and_nothing_around_it(
            random in "[0-9A-Za-z]{26}",
            around in "[ \t\r\n\0a-z]{1,3}",
        ) {
            let text = format!("{KEY_PREFIX}{random}{}", checksum(&random));
            prop_assert!(text.parse::<ApiKeyText>().is_ok());
            for longer in [[around.as_str(), &text].concat(), [text.as_str(), &around].concat()] {
                prop_assert!(longer.parse::<ApiKeyText>().is_err());
            }
        }
    }
}
