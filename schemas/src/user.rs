//! People who use the dashboard: accounts of an organization, each known by an e-mail address.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    email::EmailAddress,
    ids::{OrgId, UserId},
    time::Timestamp,
};

/// A person as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Identifier, derived from the address.
    pub id: UserId,
    /// The one organization that the account belongs to.
    pub org_id: OrgId,
    /// The account's name: one address is one account of the installation.
    pub email: EmailAddress,
    /// Display name.
    pub name: String,
    /// What the person may do.
    pub role: UserRole,
    /// Whether the person may sign in.
    pub state: UserState,
    /// When the account was made.
    pub created_at: Timestamp,
}

/// What a person may do; each may what those before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum UserRole {
    /// Looks.
    Viewer,
    /// Looks after conversations.
    Operator,
    /// Configures.
    Editor,
    /// Decides who else may.
    Owner,
}

impl UserRole {
    /// All of them, from the least.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Editor, Self::Owner];
}

/// Whether a person may sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UserState {
    /// Was sent a link and has not used it.
    Invited,
    /// May sign in.
    Active,
    /// May not.
    Disabled,
}

/// An account whole, with what proves its holder; kept by the catalogue and shown to nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserAccount {
    /// The person.
    pub user: User,
    /// None before a password was set.
    pub password: Option<PasswordHash>,
    /// The one link that works; a new one replaces it.
    pub link: Option<OneTimeLink>,
    /// Sessions that began under another number have ended: one write ends all of a person's, on every process. Drawn at
    /// random, so that an account that is made again does not find those of its predecessor.
    pub session_epoch: u64,
}

/// A password's hash in PHC text form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(pub String);

/// A link that works once, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OneTimeLink {
    /// Of the secret in the link.
    pub hash: [u8; 32],
    /// What it does.
    pub purpose: LinkPurpose,
    /// From this moment on it does nothing.
    pub expires_at: Timestamp,
}

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkPurpose {
    /// Sets the first password.
    Invitation,
    /// Sets another password.
    Reset,
    /// Signs in, and sets a password only if one is sent along.
    SignIn,
}

impl LinkPurpose {
    /// Whether the link does nothing without a password.
    pub const fn needs_password(self) -> bool {
        matches!(self, Self::Invitation | Self::Reset)
    }
}

impl UserAccount {
    /// Ends all sessions of the person.
    pub fn end_sessions(&mut self) {
        self.session_epoch = rand::random();
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(…)")
    }
}
