//! Permissions of the admin API and the lowest role that has each of them.

use switchboard_schemas::user::UserRole;

/// A permission that a handler requires. It is a type, so that it is part of the handler's
/// signature.
pub(crate) trait Permission: Send + Sync + 'static {
    /// Name in the `rights` of a session and in the API description.
    const NAME: &'static str;
    /// Lowest role with this permission; higher roles have it too. `None` for permissions of the
    /// admin token alone.
    const LEAST_ROLE: Option<UserRole>;

    /// Returns true if users with this role have the permission in their own organization.
    fn is_granted_to(role: UserRole) -> bool {
        Self::LEAST_ROLE.is_some_and(|least| role >= least)
    }
}

macro_rules! permissions {
    ($($(#[$doc:meta])* $permission:ident = $name:literal, $least_role:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) enum $permission {}

            impl Permission for $permission {
                const NAME: &'static str = $name;
                const LEAST_ROLE: Option<UserRole> = $least_role;
            }
        )*

        /// Returns the names of all permissions that a role has in its organization.
        pub(crate) fn rights_of(role: UserRole) -> Vec<&'static str> {
            let granted = [$(($permission::NAME, $permission::is_granted_to(role))),*];
            granted.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
        }
    };
}

permissions! {
    /// Permission to read agents, teams, providers and keys.
    ReadConfiguration = "readConfiguration", Some(UserRole::Viewer);
    /// Permission to read conversations, receipts of erasures and analytics.
    ReadConversations = "readConversations", Some(UserRole::Viewer);
    /// Permission to read and export leads.
    ReadLeads = "readLeads", Some(UserRole::Operator);
    /// Permission to export and delete conversations.
    ActOnConversations = "actOnConversations", Some(UserRole::Operator);
    /// Permission to change agents, teams and providers, and to rename the organization.
    Configure = "configure", Some(UserRole::Editor);
    /// Permission to read the audit log.
    ReadAudit = "readAudit", Some(UserRole::Editor);
    /// Permission to create, change and delete API keys.
    ManageKeys = "manageKeys", Some(UserRole::Owner);
    /// Permission to invite, change and remove people.
    ManageUsers = "manageUsers", Some(UserRole::Owner);
    /// Permission to create and delete organizations.
    ManageOrganizations = "manageOrganizations", None;
}
