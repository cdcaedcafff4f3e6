//! Records of erasures: the deletion of all data of a visitor.
//!
//! A record contains only keyed hashes of the visitor. Those who know the visitor can verify it,
//! and nobody can read the identity from it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ids::{ConversationId, ErasureId, OrgId, UserId, keyed_bits},
    secret::InstallationSecret,
    time::Timestamp,
};

/// An erasure and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Erasure {
    /// Id of the erasure.
    pub id: ErasureId,
    /// Organization of the visitor.
    pub org_id: OrgId,
    /// Visitor whose data is erased.
    pub visitor: VisitorDigest,
    /// Author of the request.
    pub by: ErasureRequester,
    /// Time of the request. Conversations that began later are not affected.
    pub began_at: Timestamp,
    /// Time at which all data was deleted; absent while the erasure is running.
    pub finished_at: Option<Timestamp>,
    /// Position from which the search through the conversations continues.
    pub place: Option<ErasureCursor>,
    /// Number of requests that have worked on it. Of two states of one erasure the one with more
    /// requests is the later.
    pub steps: u64,
    /// Number of conversations that were examined.
    pub looked_at: u64,
    /// Number of conversations that were deleted.
    pub conversations: u64,
    /// Number of messages that were deleted.
    pub messages: u64,
}

/// Keyed hashes of a visitor's identifiers, 32 hexadecimal digits each. Without the installation
/// secret nobody can test names against them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisitorDigest {
    /// Hash of the visitor id.
    pub visitor_id: Option<String>,
    /// Hash of the e-mail address.
    pub visitor_email: Option<String>,
}

/// The author of an erasure request. A user is recorded by id only, because the record outlives the
/// account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ErasureRequester {
    /// A signed-in user.
    User {
        /// Id of the user's account.
        id: UserId,
    },
    /// The holder of the administrator token.
    Token,
}

/// A position in the list of conversations, latest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErasureCursor {
    /// Time at which the conversation began.
    pub began_at: Timestamp,
    /// Id of the conversation; without one, the cursor stands for all that began before.
    pub id: Option<ConversationId>,
}

impl VisitorDigest {
    /// Computes the digests of a visitor's identifiers.
    pub fn from_identifiers(
        secret: &InstallationSecret,
        org: &OrgId,
        visitor_id: Option<&str>,
        visitor_email: Option<&str>,
    ) -> Self {
        let digest = |field, value: &str| {
            format!(
                "{:032x}",
                keyed_bits(secret, "erasure", &[org.as_str(), field, value])
            )
        };
        Self {
            visitor_id: visitor_id.map(|value| digest("visitorId", value)),
            // Different spellings of an address are one visitor.
            visitor_email: visitor_email.map(|value| digest("visitorEmail", &value.to_lowercase())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitor_digest_depends_on_installation_org_and_field() {
        let secret = InstallationSecret::from_bytes([7; 32]);
        let (org, other) = (
            OrgId::derive(&secret, "acme"),
            OrgId::derive(&secret, "other"),
        );
        let of = |secret: &InstallationSecret, org: &OrgId| {
            VisitorDigest::from_identifiers(secret, org, Some("ada"), Some("ada"))
        };
        let digest = of(&secret, &org);
        assert_eq!(digest, of(&secret, &org));
        assert_ne!(digest.visitor_id, digest.visitor_email);
        assert_ne!(digest, of(&secret, &other));
        assert_ne!(digest, of(&InstallationSecret::from_bytes([8; 32]), &org));
        assert!(!format!("{digest:?}").contains("ada"));
        assert_eq!(
            VisitorDigest::from_identifiers(&secret, &org, None, Some("ADA")).visitor_email,
            digest.visitor_email
        );
        assert_eq!(digest.visitor_id.unwrap().len(), 32);
    }
}
