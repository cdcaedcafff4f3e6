//! API keys: their text form, their stored form and their permissions (specification:
//! Authentication).

use std::str::FromStr;

use rand::{RngExt, distr::Alphanumeric};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ids::{KeyId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

/// Prefix of every production key.
pub const KEY_PREFIX: &str = "svc_live_";
/// Number of random characters of a key, about 154 bits.
const RANDOM_CHARS: usize = 26;
/// Number of characters of the checksum, which rejects a mistyped key without a store lookup.
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An API key in clear text, as its holder sends it. It is never printed or stored.
#[derive(Clone)]
pub struct ApiKeyText(String);

/// The error for a text that is not an API key. It gives no reason, so that the text cannot be
/// echoed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an API key")]
pub struct InvalidApiKey;

/// The keyed hash by which a key is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ApiKeyHash(pub [u8; 32]);

/// A permission of an API key (specification: Scopes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Sends and receives messages.
    Chat,
    /// Reads agent and widget configuration.
    Config,
    /// Reads and updates conversation history.
    Conversations,
}

impl KeyScope {
    /// Returns the name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Config => "config",
            Self::Conversations => "conversations",
        }
    }
}

/// The stored form of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Public id of the key.
    pub id: KeyId,
    /// Organization of the key.
    pub org_id: OrgId,
    /// Label given when the key was created.
    pub name: String,
    /// Permissions of the key; an empty list grants all.
    pub scopes: Vec<KeyScope>,
    /// Time from which the key is rejected; absent for never.
    pub expires_at: Option<Timestamp>,
    /// Rate limits that differ from the defaults.
    #[serde(default)]
    pub limits: KeyLimits,
    /// Last characters of the key's text, to tell keys apart.
    pub last_four: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Requests per minute of one key; an absent value means the default limit (specification: Limits).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyLimits {
    /// Requests per minute of agent and team chat together.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub chat_per_minute: Option<u32>,
    /// Requests per minute of both configuration reads together.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub config_per_minute: Option<u32>,
    /// Requests per minute of conversation reads and updates together.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub conversations_per_minute: Option<u32>,
}

impl ApiKey {
    /// Returns `true` if the key has the permission.
    pub fn has_scope(&self, scope: KeyScope) -> bool {
        self.scopes.is_empty() || self.scopes.contains(&scope)
    }

    /// Returns `true` if the key has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

impl ApiKeyText {
    /// Generates a random key.
    pub fn generate() -> Self {
        let random: String = rand::rng()
            .sample_iter(Alphanumeric)
            .take(RANDOM_CHARS)
            .map(char::from)
            .collect();
        let checksum = checksum(&random);
        Self(format!("{KEY_PREFIX}{random}{checksum}"))
    }

    /// Returns the clear text, for the one response that shows it and for the file of the demo key.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash under which the key is stored.
    pub fn hash(&self, secret: &InstallationSecret) -> ApiKeyHash {
        ApiKeyHash(secret.mac("api-key", self.0.as_bytes()))
    }

    /// Returns the last characters of the text, to tell keys apart.
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

/// Returns the CRC-32 (IEEE 802.3) of a text in base 62. It guards against typing errors and is not
/// a secret.
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
    fn wrong_character_is_detected() {
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
    fn other_texts_are_rejected() {
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
    fn checksum_is_the_standard_crc32() {
        // The check value of CRC-32/ISO-HDLC for "123456789" is 0xCBF43926 = 3421780262.
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    proptest! {
        #[test]
        fn parsed_key_equals_its_input(text in "(svc_live_)?[0-9A-Za-z]{0,40}|\\PC{0,60}") {
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
