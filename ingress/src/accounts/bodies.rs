//! Bodies of the account routes. Fields of requests are raw values, so that each error names its
//! field. They do not implement `Debug`, so that passwords and links are never logged.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_schemas::{
    email::EmailAddress,
    ids::{OrgId, UserId},
    time::Timestamp,
    user::UserRole,
};
use utoipa::ToSchema;

/// Credentials of a user.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SignInRequest {
    #[serde(default)]
    #[schema(value_type = String, required = true)]
    pub(super) email: Value,
    #[serde(default)]
    #[schema(value_type = String, required = true, format = Password)]
    pub(super) password: Value,
    /// Slug of the organization; required if the installation has several.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) organization: Value,
}

/// A one-time link. Invitations and password links need the password to set.
#[derive(Deserialize, ToSchema)]
pub(crate) struct UseLinkRequest {
    /// Text of the link, which follows `#` in its URL.
    #[serde(default)]
    #[schema(value_type = String, required = true)]
    pub(super) link: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub(super) password: Value,
}

/// A change of the password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangePasswordRequest {
    #[serde(default)]
    #[schema(value_type = String, required = true, format = Password)]
    pub(super) new_password: Value,
    /// Required unless the user has no password yet.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub(super) current_password: Value,
}

/// A signed-in user with their permissions and their session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionView {
    pub(super) user: SessionUser,
    pub(super) organization: SessionOrganization,
    /// Names of the user's permissions in the organization.
    pub(super) rights: Vec<&'static str>,
    pub(super) session: SessionTimes,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionUser {
    pub(super) id: UserId,
    pub(super) email: EmailAddress,
    pub(super) name: String,
    pub(super) role: UserRole,
    /// False for users who have signed in by a link and not set a password yet.
    pub(super) has_password: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionOrganization {
    pub(super) id: OrgId,
    pub(super) slug: String,
    pub(super) name: String,
    /// False while neither the installation nor the organization has a language model, so that the
    /// built-in demo replies. A new provider changes that without a restart.
    pub(super) has_model: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionTimes {
    pub(super) began_at: Timestamp,
    pub(super) expires_at: Timestamp,
    /// Time without a request after which the session ends, in milliseconds.
    pub(super) idle_ms: u64,
}
