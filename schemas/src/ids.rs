//! Typed identifiers: a prefix for each kind, so that an id identifies its kind and cannot be
//! passed where another is expected.
//!
//! Ids on the message path are derived and never read from a store, so that the path needs no lock:
//! any process computes the same conversation from (organization, owner, session) and the same
//! reply from its user message.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use hmac::{Hmac, KeyInit, Mac};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, schema},
};
use uuid::Uuid;

use crate::{
    base32,
    client_text::{SessionId, VisitorId},
    email::EmailAddress,
    secret::InstallationSecret,
    time::Timestamp,
};

/// Maximum length of any id, in characters.
const ID_CHARS_MAX: usize = 64;

/// The reason why a text is not an id of the expected kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a {prefix}… id")]
pub struct InvalidId {
    prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $payloads:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Returns the id as clients see it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let error = InvalidId { prefix: $prefix };
                let payload = text.strip_prefix($prefix).filter(|rest| rest.is_ascii()).ok_or(error)?;
                let well_formed = payload.len() == $payloads * base32::ENCODED_CHARS
                    && (0..$payloads).all(|part| {
                        let start = part * base32::ENCODED_CHARS;
                        base32::is_encoded(&payload[start..start + base32::ENCODED_CHARS])
                    });
                if well_formed { Ok(Self(text.into())) } else { Err(InvalidId { prefix: $prefix }) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let pattern = format!("^{}[0-9a-hjkmnp-tv-z]{{{}}}$", $prefix, $payloads * base32::ENCODED_CHARS);
                json_schema!({ "type": "string", "pattern": pattern })
            }
        }

        impl ToSchema for $name {}

        /// Documents ids as they are to clients: opaque except for the prefix.
        impl PartialSchema for $name {
            fn schema() -> RefOr<schema::Schema> {
                let example = format!("{}{}", $prefix, "7".repeat($payloads * base32::ENCODED_CHARS));
                ObjectBuilder::new().schema_type(schema::Type::String)
                    .description(Some(concat!("An opaque id that begins with `", $prefix, "`.")))
                    .pattern(Some(concat!("^", $prefix, "[0-9a-z]+$")))
                    .max_length(Some(ID_CHARS_MAX))
                    .examples([example])
                    .into()
            }
        }
    )*};
}

// The closed list of prefixes. Append only, because clients keep ids forever.
ids! {
    /// An organization, the owner of all other resources.
    OrgId = "org_", 1;
    /// Id of an agent.
    AgentId = "agt_", 1;
    /// A team of agents.
    TeamId = "team_", 1;
    /// A model provider of an organization.
    ProviderId = "prov_", 1;
    /// The public id of an API key, never the key itself.
    KeyId = "key_", 1;
    /// Id of a conversation.
    ConversationId = "conv_", 1;
    /// A message. Its first half is that of its conversation, so that any ingress finds it.
    MessageId = "msg_", 2;
    /// An event on the topic for analytics.
    EventId = "evt_", 1;
    /// Id of one HTTP request.
    RequestId = "req_", 1;
    /// A running ingress process, the address to which replies are pushed.
    IngressId = "ing_", 1;
    /// Id of a user's account.
    UserId = "usr_", 1;
    /// An entry of the audit log, ordered by time.
    AuditId = "aud_", 1;
    /// The erasure of a visitor.
    ErasureId = "era_", 1;
    /// A file that was sent with a message, ordered by the time of its upload.
    FileId = "file_", 1;
}

impl OrgId {
    /// Derives the id of the organization with this slug in this installation.
    pub fn derive(secret: &InstallationSecret, slug: &str) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "organization", &[slug]),
        ))
    }

    /// Generates the id of an organization whose slug another one had before.
    pub fn random() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::new_v4().as_u128()))
    }
}

impl AgentId {
    /// Derives the id of the agent with this slug, so that two simultaneous applies create one
    /// agent.
    pub fn derive(secret: &InstallationSecret, org: &OrgId, slug: &str) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "agent", &[org.as_str(), slug]),
        ))
    }
}

impl TeamId {
    /// Derives the id of the team with this slug.
    pub fn derive(secret: &InstallationSecret, org: &OrgId, slug: &str) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "team", &[org.as_str(), slug]),
        ))
    }
}

impl ProviderId {
    /// Derives the id of the provider with this slug.
    pub fn derive(secret: &InstallationSecret, org: &OrgId, slug: &str) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "provider", &[org.as_str(), slug]),
        ))
    }
}

impl KeyId {
    /// Derives the id of the key with this name, so that two simultaneous applies create one key.
    pub fn derive(
        secret: &InstallationSecret,
        org: &OrgId,
        name: &str,
        created_at_micros: i64,
    ) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(
                secret,
                "key",
                &[org.as_str(), name, &created_at_micros.to_string()],
            ),
        ))
    }
}

impl UserId {
    /// Derives the id of the organization's account with this e-mail address. Finding an account by
    /// address is reading an id, and two simultaneous invitations of one address create one
    /// account.
    pub fn derive(secret: &InstallationSecret, org: &OrgId, email: &EmailAddress) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "user", &[org.as_str(), email.as_str()]),
        ))
    }

    /// Derives the id that an older version gave to the account with this e-mail address, the only
    /// one in the installation.
    pub fn of_older_version(secret: &InstallationSecret, email: &EmailAddress) -> Self {
        Self(encode_id(
            Self::PREFIX,
            keyed_bits(secret, "user", &[email.as_str()]),
        ))
    }
}

impl ErasureId {
    /// Generates an id, ordered by time.
    pub fn now() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::now_v7().as_u128()))
    }
}

impl AuditId {
    /// Generates the id of an entry of this moment.
    pub fn now() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::now_v7().as_u128()))
    }

    /// Returns the creation time of the entry, in milliseconds.
    pub fn created_at(&self) -> Timestamp {
        created_at(&self.0[Self::PREFIX.len()..])
    }
}

impl FileId {
    /// Generates the id of a file that is uploaded at this moment.
    pub fn now() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::now_v7().as_u128()))
    }

    /// Returns the time of the upload, in milliseconds.
    pub fn created_at(&self) -> Timestamp {
        created_at(&self.0[Self::PREFIX.len()..])
    }
}

/// Returns the time with which UUIDs of version 7 start, in milliseconds.
fn created_at(payload: &str) -> Timestamp {
    let millis = base32::decode(payload).unwrap_or_default() >> 80;
    let millis = i64::try_from(millis).unwrap_or_default();
    Timestamp::from_micros(millis.saturating_mul(1000))
}

impl ConversationId {
    /// Derives the conversation of `session` with an agent.
    pub fn of_agent(org: &OrgId, agent: &AgentId, session: &SessionId) -> Self {
        Self(encode_id(
            Self::PREFIX,
            digest_bits(
                "conversation",
                &[org.as_str(), agent.as_str(), session.as_str()],
            ),
        ))
    }

    /// Derives the conversation of `session` with a team.
    pub fn of_team(org: &OrgId, team: &TeamId, session: &SessionId) -> Self {
        Self(encode_id(
            Self::PREFIX,
            digest_bits(
                "conversation",
                &[org.as_str(), team.as_str(), session.as_str()],
            ),
        ))
    }

    /// Derives the conversation of `session` with an agent for the holder of a visitor token. Each
    /// visitor has a separate space of sessions: the same session id means another conversation,
    /// and nobody learns of the other.
    pub fn of_visitor(
        org: &OrgId,
        agent: &AgentId,
        visitor: &VisitorId,
        session: &SessionId,
    ) -> Self {
        let parts = [
            org.as_str(),
            agent.as_str(),
            visitor.as_str(),
            session.as_str(),
        ];
        let rest = digest_bits("visitor-conversation", &parts) & u128::from(u64::MAX);
        Self(encode_id(
            Self::PREFIX,
            u128::from(visitor_mark(org, agent, visitor)) << 64 | rest,
        ))
    }

    /// Returns `true` if this visitor began the conversation. The id alone decides: its first half
    /// is a hash of the visitor id, which no client can choose. The conversation need not exist.
    pub fn is_of_visitor(&self, org: &OrgId, agent: &AgentId, visitor: &VisitorId) -> bool {
        let bits = base32::decode(&self.0[Self::PREFIX.len()..]);
        bits.is_some_and(|bits| bits >> 64 == u128::from(visitor_mark(org, agent, visitor)))
    }
}

fn visitor_mark(org: &OrgId, agent: &AgentId, visitor: &VisitorId) -> u64 {
    (digest_bits("visitor", &[org.as_str(), agent.as_str(), visitor.as_str()]) >> 64) as u64
}

impl MessageId {
    /// Generates the id of a user message, ordered by time within its conversation.
    pub fn new_in(conversation: &ConversationId) -> Self {
        Self::in_conversation(conversation, Uuid::now_v7().as_u128())
    }

    /// Derives the id of the user message for an `Idempotency-Key` of the client `sender`, the same
    /// on every ingress. `payload` is the content of the request, so that a key that is reused for
    /// another request after its record has expired never means the old message.
    pub fn from_idempotency_key(
        conversation: &ConversationId,
        sender: &str,
        route: &str,
        idempotency_key: &str,
        payload: &str,
    ) -> Self {
        let bits = digest_bits("idempotent", &[sender, route, idempotency_key, payload]);
        Self::in_conversation(conversation, Uuid::new_v8(bits.to_be_bytes()).as_u128())
    }

    /// Returns `true` if the id was generated by [`Self::new_in`], so that no retried request can
    /// carry it.
    pub fn is_time_ordered(&self) -> bool {
        let payload = &self.0[Self::PREFIX.len() + base32::ENCODED_CHARS..];
        base32::decode(payload).is_some_and(|bits| Uuid::from_u128(bits).get_version_num() == 7)
    }

    /// Returns the id of the assistant's reply to this user message, known before any work is done.
    pub fn reply(&self) -> Self {
        Self::in_conversation(&self.conversation(), digest_bits("reply", &[self.as_str()]))
    }

    /// Returns the conversation of the message.
    pub fn conversation(&self) -> ConversationId {
        let start = Self::PREFIX.len();
        let payload = &self.0[start..start + base32::ENCODED_CHARS];
        ConversationId(format!("{}{payload}", ConversationId::PREFIX).into())
    }

    fn in_conversation(conversation: &ConversationId, bits: u128) -> Self {
        let payload = &conversation.0[ConversationId::PREFIX.len()..];
        Self(format!("{}{payload}{}", Self::PREFIX, base32::encode(bits)).into())
    }
}

impl EventId {
    /// Derives the id of the event that `fact` happened to `subject`, so that a retry has the same
    /// id.
    pub fn derive(subject: &str, fact: &str) -> Self {
        Self(encode_id(
            Self::PREFIX,
            digest_bits("event", &[subject, fact]),
        ))
    }
}

impl RequestId {
    /// Generates an id, ordered by time.
    pub fn random() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::now_v7().as_u128()))
    }
}

impl IngressId {
    /// Generates an id for a starting process.
    pub fn random() -> Self {
        Self(encode_id(Self::PREFIX, Uuid::new_v4().as_u128()))
    }
}

fn encode_id(prefix: &str, bits: u128) -> Arc<str> {
    format!("{prefix}{}", base32::encode(bits)).into()
}

/// Returns 128 bits that only holders of the installation secret can compute.
pub(crate) fn keyed_bits(secret: &InstallationSecret, domain: &str, parts: &[&str]) -> u128 {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose()) else {
        unreachable!("HMAC takes keys of any length")
    };
    for part in std::iter::once(&domain).chain(parts) {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    leading_bits(&mac.finalize().into_bytes())
}

/// Returns 128 bits of SHA-256 over length-prefixed parts, so that no two lists of parts have the
/// same digest.
fn digest_bits(domain: &str, parts: &[&str]) -> u128 {
    let mut digest = Sha256::new();
    for part in std::iter::once(&domain).chain(parts) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    leading_bits(&digest.finalize())
}

fn leading_bits(digest: &[u8]) -> u128 {
    digest
        .iter()
        .take(16)
        .fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests;
