//! The audit log: the author, time, origin and content of each change.
//!
//! Entries name the changed fields and show values of harmless ones. They never contain secrets or
//! texts that people wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    email::EmailAddress,
    ids::{AuditId, OrgId, RequestId, UserId},
};

/// One recorded change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Id of the entry, ordered by time.
    pub id: AuditId,
    /// Organization whose resources were changed.
    pub org_id: OrgId,
    /// Author of the change.
    pub actor: AuditActor,
    /// Kind of change.
    pub action: AuditAction,
    /// Kind of the resource, for instance `agent`.
    pub kind: String,
    /// Id of the changed resource.
    pub subject: String,
    /// Fields that changed.
    pub fields: Vec<FieldChange>,
    /// Network of the request; never a whole address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Id of the request; absent for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum AuditActor {
    /// A signed-in user, or one who has just proved their identity.
    User {
        /// Id of the user's account.
        id: UserId,
        /// Name of the user at that time.
        email: EmailAddress,
    },
    /// The holder of the administrator token.
    Token,
    /// A command on the machine of the service.
    Command,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditAction {
    /// The resource was created.
    Create,
    /// The resource was changed.
    Update,
    /// The resource was removed.
    Delete,
    /// An API key was rotated.
    Rotate,
    /// A one-time link was created.
    Link,
    /// A user signed in.
    SignIn,
    /// A user signed out.
    SignOut,
    /// Conversations were exported.
    Export,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Path of the field, separated by dots.
    pub field: String,
    /// Value before the change, if it is safe to show; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Value after the change, if it is safe to show; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}
