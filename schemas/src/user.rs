//! Users of the dashboard: accounts of an organization, each identified by an e-mail address. A
//! person in several organizations has an account in each.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    email::EmailAddress,
    ids::{OrgId, UserId},
    time::Timestamp,
};

/// A user without credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Id of the account, derived from organization and address.
    pub id: UserId,
    /// Organization of the account.
    pub org_id: OrgId,
    /// E-mail address of the account, unique in the organization.
    pub email: EmailAddress,
    /// Display name of the user.
    pub name: String,
    /// Role of the user.
    pub role: UserRole,
    /// Sign-in state of the account.
    pub state: UserState,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The role of a user. Each role includes the permissions of those before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum UserRole {
    /// Reads everything except secrets.
    Viewer,
    /// Manages conversations, too.
    Operator,
    /// Changes the configuration, too.
    Editor,
    /// Manages users, too.
    Owner,
}

impl UserRole {
    /// All roles, in the order of their permissions.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Editor, Self::Owner];
}

/// The sign-in state of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UserState {
    /// The user has received an invitation link and has not used it.
    Invited,
    /// The user can sign in.
    Active,
    /// The user cannot sign in.
    Disabled,
}

/// An account with its credentials. It is stored in the catalog and never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserAccount {
    /// The user of the account.
    pub user: User,
    /// Password hash; absent until a password is set.
    pub password: Option<PasswordHash>,
    /// The only valid link; a new one replaces it.
    pub link: Option<OneTimeLink>,
    /// Epoch of the account's sessions. Sessions of another epoch are invalid, so that one write
    /// ends all of them in every process. It is random, so that a recreated account does not accept
    /// sessions of its predecessor.
    pub session_epoch: u64,
}

/// A password hash in PHC text form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(pub String);

/// The stored form of a one-time link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OneTimeLink {
    /// Hash of the secret in the link.
    pub hash: [u8; 32],
    /// Purpose of the link.
    pub purpose: LinkPurpose,
    /// Time from which the link is invalid.
    pub expires_at: Timestamp,
}

/// The purpose of a sign-in link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkPurpose {
    /// Sets the first password.
    Invitation,
    /// Sets another password and signs in.
    Reset,
    /// Signs in, and sets a password only if one is sent.
    SignIn,
}

impl LinkPurpose {
    /// Returns `true` if the link requires a password.
    pub const fn needs_password(self) -> bool {
        matches!(self, Self::Invitation | Self::Reset)
    }
}

impl UserAccount {
    /// Ends all sessions of the user.
    pub fn end_sessions(&mut self) {
        self.session_epoch = rand::random();
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(…)")
    }
}
