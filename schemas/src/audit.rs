//! The audit log: who changed what, when and from where. It names fields and shows values of harmless ones; secrets and
//! texts that people wrote are never in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    email::EmailAddress,
    ids::{AuditId, OrgId, RequestId, UserId},
};

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Identifier, which also says when.
    pub id: AuditId,
    /// Whose things were changed.
    pub org_id: OrgId,
    /// Who changed them.
    pub actor: AuditActor,
    /// What was done.
    pub action: AuditAction,
    /// Kind of the thing, for instance `agent`.
    pub kind: String,
    /// Its id.
    pub subject: String,
    /// The fields that changed.
    pub fields: Vec<FieldChange>,
    /// The network that the request came from; never a whole address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The request; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum AuditActor {
    /// A person who was signed in, or who just proved to be this one.
    User {
        /// The account.
        id: UserId,
        /// Its name at that time.
        email: EmailAddress,
    },
    /// The holder of the administrator's token.
    Token,
    /// Who can start commands on the service's machine.
    Command,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditAction {
    /// Made.
    Create,
    /// Changed.
    Update,
    /// Removed.
    Delete,
    /// A key got a successor.
    Rotate,
    /// A one-time link was made.
    Link,
    /// A person signed in.
    SignIn,
    /// A person signed out.
    SignOut,
    /// Conversations were taken out of the service as a file.
    Export,
}

/// A field that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Its name, with dots.
    pub field: String,
    /// What it was, where that is harmless; absent also when it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}
