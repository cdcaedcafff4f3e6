//! Removals of organizations.

use serde::{Deserialize, Serialize};

use crate::{
    erasure::ErasureCursor,
    ids::{OrgId, RequestId},
    time::Timestamp,
};

/// The removal of an organization, which is also its receipt. It consists of ids, times and numbers
/// and is kept for good, because it shows that the id of the organization must not be used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationRemoval {
    /// The removed organization.
    pub org_id: OrgId,
    /// Id of the next organization with the same slug.
    pub successor: OrgId,
    /// Request of the removal; absent for an organization that an older version deleted.
    pub request_id: Option<RequestId>,
    /// Time of the request.
    pub began_at: Timestamp,
    /// Time since which nobody can sign in or send messages; absent until then.
    pub closed_at: Option<Timestamp>,
    /// Position from which counting the conversations continues.
    pub place: Option<ErasureCursor>,
    /// True once all conversations are counted.
    pub is_counted: bool,
    /// Number of conversations.
    pub conversations: u64,
    /// Number of their messages.
    pub messages: u64,
    /// Time at which everything was erased; absent until then.
    pub finished_at: Option<Timestamp>,
}

impl OrganizationRemoval {
    /// Begins the removal of an organization.
    #[must_use]
    pub fn begin(org_id: OrgId, request_id: Option<RequestId>) -> Self {
        Self {
            org_id,
            successor: OrgId::random(),
            request_id,
            began_at: Timestamp::now(),
            closed_at: None,
            place: None,
            is_counted: false,
            conversations: 0,
            messages: 0,
            finished_at: None,
        }
    }
}
