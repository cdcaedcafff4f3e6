//! Visitor tokens, the credentials of web pages without an API key.
//!
//! A token is a statement about one visitor of one agent, signed with the installation secret, so
//! that every ingress verifies it locally. The two kinds differ in prefix and signature domain. A
//! *token* authenticates requests and lives for minutes. A *secret* is accepted only by the route
//! that creates tokens, lives for weeks, and proves that a returning visitor is the same one.
//!
//! # Threats
//! - *The source of a page is public.* It contains an agent id or a chat key, neither of which
//!   opens a conversation.
//! - *A token leaks* (proxy log, browser extension): it reads and writes the sessions of one
//!   visitor with one agent until it expires, and cannot be renewed. It ends within 2 s with the
//!   key that it was created from.
//! - *A secret leaks* (script in the page): the visitor can be impersonated until it expires
//!   unused. It only creates tokens, for the same agent and origin, under the checks and limits of
//!   that route.
//! - *A client claims to be a visitor*: visitor ids are generated here and accepted only in a
//!   signed credential.
//! - *A client guesses*: a credential has 256 bits, is compared in constant time, and each failure
//!   counts as a failed authentication.
//! - *A program forges `Origin`*: possible, as with API keys. The binding protects a page's token
//!   from scripts of other pages.
//!
//! A credential contains ids of this installation, an expiry and a keyed hash of the origin,
//! nothing secret to the visitor.

use std::{fmt, str::FromStr};

use crate::{
    base32::{self, ENCODED_CHARS},
    client_text::VisitorId,
    ids::{AgentId, KeyId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};

/// Prefix of every visitor token, including its version.
pub const TOKEN_PREFIX: &str = "svt_1";
/// Prefix of every visitor secret, including its version.
pub const SECRET_PREFIX: &str = "svs_1";
/// Prefix of every generated visitor id.
const VISITOR_PREFIX: &str = "vis_";
/// Number of 128-bit blocks of claims.
const CLAIMS: usize = 6;
/// Number of 128-bit blocks of the signature.
const SIGNATURE: usize = 2;
const PREFIX_CHARS: usize = TOKEN_PREFIX.len();
const SIGNED_CHARS: usize = PREFIX_CHARS + CLAIMS * ENCODED_CHARS;
/// Length of a token and of a secret, in characters.
pub const CREDENTIAL_CHARS: usize = SIGNED_CHARS + SIGNATURE * ENCODED_CHARS;
/// Placeholder for an absent key or origin; no hash is zero.
const NONE: u128 = 0;

/// The claims of a visitor token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitorClaims {
    /// Organization of the agent.
    pub org_id: OrgId,
    /// Agent that the token gives access to.
    pub agent_id: AgentId,
    /// Id of the visitor, created by [`new_visitor_id`].
    pub visitor_id: VisitorId,
    /// API key with which the token was created and ends; absent if a page without a key created
    /// it.
    pub key_id: Option<KeyId>,
    /// Origin of the page that created the token; absent if a program created it.
    pub origin: Option<OriginHash>,
    /// Time from which the token is rejected.
    pub expires_at: Timestamp,
}

/// A keyed hash of a page's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginHash(u128);

/// The kind of a visitor credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// Authenticates requests like an API key.
    Token,
    /// Creates tokens.
    Secret,
}

/// A signed visitor credential in clear text, as its holder sends it. It is never printed or
/// stored.
#[derive(Clone, PartialEq, Eq)]
pub struct VisitorCredential {
    kind: CredentialKind,
    text: String,
}

/// The error for a text that is not a credential of this installation. It gives no reason, so that
/// the text cannot be echoed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a visitor token")]
pub struct InvalidVisitorToken;

/// Generates the id of a new visitor.
pub fn new_visitor_id() -> VisitorId {
    let text = format!("{VISITOR_PREFIX}{}", base32::encode(rand::random()));
    match text.parse() {
        Ok(id) => id,
        Err(_) => unreachable!("letters and digits are client text"),
    }
}

impl OriginHash {
    /// Returns the hash of an origin in canonical form.
    pub fn from_origin(secret: &InstallationSecret, origin: &str) -> Self {
        let mac = secret.mac("visitor-origin", origin.as_bytes());
        Self(
            mac.iter()
                .take(16)
                .fold(0, |bits, byte| bits << 8 | u128::from(*byte)),
        )
    }
}

impl CredentialKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Token => TOKEN_PREFIX,
            Self::Secret => SECRET_PREFIX,
        }
    }

    /// Returns the domain of the signature, so that one kind is never accepted as the other.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Token => "visitor-token",
            Self::Secret => "visitor-secret",
        }
    }
}

impl VisitorClaims {
    /// Returns `true` if the token has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Signs claims. Each id is one block, so that a credential has one spelling.
    pub fn sign(&self, kind: CredentialKind, secret: &InstallationSecret) -> VisitorCredential {
        let none = base32::encode(NONE);
        let key = self
            .key_id
            .as_ref()
            .map_or(none.as_str(), |key| id_digits(key.as_str()));
        let origin = base32::encode(self.origin.map_or(NONE, |origin| origin.0));
        let expires_at = base32::encode(u128::try_from(self.expires_at.micros()).unwrap_or(0));
        let (org, agent) = (
            id_digits(self.org_id.as_str()),
            id_digits(self.agent_id.as_str()),
        );
        let visitor = id_digits(self.visitor_id.as_str());
        let mut text = [
            kind.prefix(),
            org,
            agent,
            visitor,
            key,
            &origin,
            &expires_at,
        ]
        .concat();
        let mac = secret.mac(kind.purpose(), text.as_bytes());
        for half in mac.chunks(16) {
            text.push_str(&base32::encode(
                half.iter()
                    .fold(0, |bits, byte| bits << 8 | u128::from(*byte)),
            ));
        }
        VisitorCredential { kind, text }
    }
}

impl VisitorCredential {
    /// Returns the clear text, for the one response that shows it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the kind of the credential.
    pub const fn kind(&self) -> CredentialKind {
        self.kind
    }

    /// Verifies the signature and returns the claims. Expiry is checked by the caller.
    ///
    /// # Errors
    /// The credential was not signed by this installation.
    pub fn open(&self, secret: &InstallationSecret) -> Result<VisitorClaims, InvalidVisitorToken> {
        let (signed, signature) = self
            .text
            .split_at_checked(SIGNED_CHARS)
            .ok_or(InvalidVisitorToken)?;
        let tag: Vec<u8> = split_blocks(signature)
            .filter_map(base32::decode)
            .flat_map(u128::to_be_bytes)
            .collect();
        if !secret.verify_mac(self.kind.purpose(), signed.as_bytes(), &tag) {
            return Err(InvalidVisitorToken);
        }
        let mut blocks = split_blocks(&signed[PREFIX_CHARS..]);
        let mut next = || blocks.next().ok_or(InvalidVisitorToken);
        Ok(VisitorClaims {
            org_id: parse_id(OrgId::PREFIX, next()?)?,
            agent_id: parse_id(AgentId::PREFIX, next()?)?,
            visitor_id: parse_id(VISITOR_PREFIX, next()?)?,
            key_id: Some(next()?)
                .filter(|block| decode_block(block) != NONE)
                .map(|key| parse_id(KeyId::PREFIX, key))
                .transpose()?,
            origin: Some(decode_block(next()?))
                .filter(|bits| *bits != NONE)
                .map(OriginHash),
            expires_at: Timestamp::from_micros(
                i64::try_from(decode_block(next()?)).map_err(|_| InvalidVisitorToken)?,
            ),
        })
    }
}

/// Checks the form only; [`VisitorCredential::open`] checks the signature.
impl FromStr for VisitorCredential {
    type Err = InvalidVisitorToken;

    fn from_str(text: &str) -> Result<Self, InvalidVisitorToken> {
        let kinds = [CredentialKind::Token, CredentialKind::Secret];
        let kind = kinds
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
            .ok_or(InvalidVisitorToken)?;
        let well_formed = text.len() == CREDENTIAL_CHARS
            && text.is_ascii()
            && split_blocks(&text[PREFIX_CHARS..]).all(base32::is_encoded);
        if well_formed {
            Ok(Self {
                kind,
                text: text.to_owned(),
            })
        } else {
            Err(InvalidVisitorToken)
        }
    }
}

impl fmt::Debug for VisitorCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}(…)", self.kind)
    }
}

/// Returns the digits after an id's prefix, which contains no other underscore.
fn id_digits(id: &str) -> &str {
    id.split_once('_').map_or(id, |(_, payload)| payload)
}

fn split_blocks(text: &str) -> impl Iterator<Item = &str> {
    (0..text.len() / ENCODED_CHARS).map(|number| &text[number * ENCODED_CHARS..][..ENCODED_CHARS])
}

fn decode_block(block: &str) -> u128 {
    base32::decode(block).unwrap_or(NONE)
}

fn parse_id<T: FromStr>(prefix: &str, payload: &str) -> Result<T, InvalidVisitorToken> {
    format!("{prefix}{payload}")
        .parse()
        .map_err(|_| InvalidVisitorToken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [CredentialKind; 2] = [CredentialKind::Token, CredentialKind::Secret];

    fn secret() -> InstallationSecret {
        InstallationSecret::from_bytes([7; 32])
    }

    fn claims(key: bool, origin: Option<&str>, expires_at: i64) -> VisitorClaims {
        let org_id = OrgId::derive(&secret(), "acme");
        VisitorClaims {
            agent_id: AgentId::derive(&secret(), &org_id, "shop"),
            visitor_id: new_visitor_id(),
            key_id: key.then(|| KeyId::derive(&secret(), &org_id, "site", 0)),
            origin: origin.map(|origin| OriginHash::from_origin(&secret(), origin)),
            expires_at: Timestamp::from_micros(expires_at),
            org_id,
        }
    }

    #[test]
    fn credential_of_another_installation_or_kind_does_not_open() {
        let claims = claims(true, Some("https://shop.example:443"), 5);
        let token = claims.sign(CredentialKind::Token, &secret());
        assert!(
            token
                .open(&InstallationSecret::from_bytes([8; 32]))
                .is_err()
        );
        let renamed = token.expose().replacen(TOKEN_PREFIX, SECRET_PREFIX, 1);
        assert!(
            renamed
                .parse::<VisitorCredential>()
                .unwrap()
                .open(&secret())
                .is_err()
        );
    }

    #[test]
    fn damaged_credential_is_rejected() {
        let token = claims(true, None, 5).sign(CredentialKind::Token, &secret());
        let opens = |text: &str| {
            text.parse::<VisitorCredential>()
                .is_ok_and(|token| token.open(&secret()).is_ok())
        };
        assert!(opens(token.expose()) && token.expose().len() == CREDENTIAL_CHARS);
        for position in 0..CREDENTIAL_CHARS {
            let mut text = token.expose().as_bytes().to_vec();
            for other in [b'0', b'1', b'A', b'_', b'z']
                .into_iter()
                .filter(|other| *other != token.expose().as_bytes()[position])
            {
                text[position] = other;
                assert!(!opens(std::str::from_utf8(&text).unwrap()), "{position}");
            }
            assert!(!opens(&token.expose()[..position]));
        }
        assert!(!opens(&format!("{}0", token.expose())) && !opens(&token.expose().to_uppercase()));
    }

    #[test]
    fn credential_expires_on_time_and_is_never_printed() {
        let claims = claims(false, None, 5);
        assert!(
            !claims.is_expired(Timestamp::from_micros(4))
                && claims.is_expired(Timestamp::from_micros(5))
        );
        let token = claims.sign(CredentialKind::Token, &secret());
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    proptest! {
        #[test]
        fn claims_round_trip_with_one_spelling(
            key: bool,
            origin in prop::option::of("[ -~]{0,40}"),
            expires_at in 0..i64::MAX,
        ) {
            let claims = claims(key, origin.as_deref(), expires_at);
            for kind in KINDS {
                let text = claims.sign(kind, &secret()).expose().to_owned();
                let read: VisitorCredential = text.parse().unwrap();
                prop_assert_eq!(read.kind(), kind);
                let opened = read.open(&secret()).unwrap();
                prop_assert_eq!(&opened, &claims);
                let again = opened.sign(kind, &secret());
                prop_assert_eq!(again.expose(), text.as_str());
            }
        }

        #[test]
        fn arbitrary_token_text_never_panics_or_opens_unsigned(
            text in prop_oneof![".*", "sv[ts]_1[0-9a-z]{208}", "sv[ts]_1[0-7][0-9a-hjkmnp-tv-z]{207}"],
        ) {
            if let Ok(statement) = text.parse::<VisitorCredential>() {
                prop_assert!(statement.open(&secret()).is_err());
            }
        }
    }
}
