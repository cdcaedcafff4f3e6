//! The receipt of an erasure: that everything of a visitor was deleted, when, by whom, and how much it was. Whom it was
//! about can be checked by who knows the visitor already, and read by nobody.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ids::{ConversationId, ErasureId, OrgId, UserId, keyed_bits},
    secret::InstallationSecret,
    time::Timestamp,
};

/// An erasure and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Erasure {
    /// Identifier.
    pub id: ErasureId,
    /// Tenant.
    pub org_id: OrgId,
    /// Whom it is about.
    pub visitor: VisitorDigest,
    /// Who asked for it.
    pub by: ErasureRequester,
    /// When it was asked for; what began after that is left alone.
    pub began_at: Timestamp,
    /// When everything was gone; none while it is not.
    pub finished_at: Option<Timestamp>,
    /// Where the walk through the conversations goes on.
    pub place: Option<ErasureCursor>,
    /// Requests that worked on it; of two states of one erasure the one with more of them is the later.
    pub steps: u64,
    /// Conversations that were looked at.
    pub looked_at: u64,
    /// Conversations that were deleted.
    pub conversations: u64,
    /// Messages that went with them.
    pub messages: u64,
}

/// Keyed hashes of what a visitor is known by, 32 hexadecimal digits each: without the installation's secret nobody can try names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisitorDigest {
    /// Of the visitor id.
    pub visitor_id: Option<String>,
    /// Of the e-mail address.
    pub visitor_email: Option<String>,
}

/// Who asked for an erasure; a person by id alone, because the receipt outlives the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ErasureRequester {
    /// A person who was signed in.
    User {
        /// The account.
        id: UserId,
    },
    /// The holder of the administrator's token.
    Token,
}

/// Behind this conversation of the list, latest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErasureCursor {
    /// When it began.
    pub began_at: Timestamp,
    /// Which it was; none: every one that began before.
    pub id: Option<ConversationId>,
}

impl VisitorDigest {
    /// The digests of what is known of a visitor.
    pub fn of(
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
            // One address is one visitor in any spelling.
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
            VisitorDigest::of(secret, org, Some("ada"), Some("ada"))
        };
        let digest = of(&secret, &org);
        assert_eq!(digest, of(&secret, &org));
        assert_ne!(digest.visitor_id, digest.visitor_email);
        assert_ne!(digest, of(&secret, &other));
        assert_ne!(digest, of(&InstallationSecret::from_bytes([8; 32]), &org));
        assert!(!format!("{digest:?}").contains("ada"));
        assert_eq!(
            VisitorDigest::of(&secret, &org, None, Some("ADA")).visitor_email,
            digest.visitor_email
        );
        assert_eq!(digest.visitor_id.unwrap().len(), 32);
    }
}
