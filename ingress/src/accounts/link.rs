//! One-time links for invitations, password resets and sign-in. The secret is in the URL fragment,
//! which browsers never send. Only its hash is stored in the account, so that a new link replaces
//! the previous one.

use std::{sync::Arc, time::Duration};

use switchboard_backends::{
    StoreError,
    accounts::AccountActivityStore,
    catalog::{CatalogEntry, CatalogEntryStore, EntryKind},
};
use switchboard_schemas::{
    audit::AuditAction,
    base32,
    email::EmailAddress,
    ids::{OrgId, UserId},
    random_token::{RandomToken, TokenHash, TokenPurpose},
    secret::InstallationSecret,
    time::Timestamp,
    user::{LinkPurpose, OneTimeLink, User, UserAccount, UserRole, UserState},
};

use super::session::find_account;
use crate::audit::record_command;

/// Content of a link: the user id and the secret.
pub(crate) struct LinkText {
    user: UserId,
    token: RandomToken,
}

/// Creates sign-in links outside of requests: at startup and for commands.
pub struct LinkMaker {
    /// Catalog that contains the accounts.
    pub catalog: Arc<dyn CatalogEntryStore>,
    /// Store of the audit log.
    pub accounts: Arc<dyn AccountActivityStore>,
    /// Secret of the installation, for ids and hashes.
    pub secret: InstallationSecret,
    /// Base URL of the dashboard.
    pub dashboard_url: String,
    /// Lifetime of the links.
    pub lifetime: Duration,
}

/// Error of creating a link.
#[derive(Debug, thiserror::Error)]
pub enum LinkIssueError {
    /// The catalog is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The account is disabled.
    #[error("this account is disabled")]
    Disabled,
}

impl LinkText {
    /// Creates a link and stores its hash in `account`, replacing any previous link.
    pub(crate) fn issue_for(
        secret: &InstallationSecret,
        account: &mut UserAccount,
        purpose: LinkPurpose,
        expires_at: Timestamp,
    ) -> Self {
        let token = RandomToken::generate();
        let hash = token.hash(secret, TokenPurpose::Link).0;
        account.link = Some(OneTimeLink {
            hash,
            purpose,
            expires_at,
        });
        Self {
            user: account.user.id.clone(),
            token,
        }
    }

    /// Parses the text that a browser sent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (user, token) = text.split_at_checked(base32::ENCODED_CHARS)?;
        Some(Self {
            user: format!("{}{user}", UserId::PREFIX).parse().ok()?,
            token: token.parse().ok()?,
        })
    }

    pub(crate) const fn user_id(&self) -> &UserId {
        &self.user
    }

    /// Returns the stored link of `account` if it matches and has not expired.
    pub(crate) fn valid_link<'a>(
        &self,
        secret: &InstallationSecret,
        account: &'a UserAccount,
    ) -> Option<&'a OneTimeLink> {
        let link = account
            .link
            .as_ref()
            .filter(|_| account.user.state != UserState::Disabled)?;
        let is_it = self
            .token
            .has_hash(secret, TokenPurpose::Link, &TokenHash(link.hash));
        (is_it && Timestamp::now() < link.expires_at).then_some(link)
    }

    pub(crate) fn url(&self, dashboard_url: &str) -> String {
        let user = &self.user.as_str()[UserId::PREFIX.len()..];
        format!(
            "{}/dashboard/link#{user}{}",
            dashboard_url.trim_end_matches('/'),
            self.token.expose()
        )
    }
}

impl LinkMaker {
    /// Returns a link that signs in to the account of this address. A missing account is created as
    /// an owner.
    pub async fn sign_in_link(
        &self,
        org: &OrgId,
        email: &EmailAddress,
    ) -> Result<String, LinkIssueError> {
        let known = find_account(self.catalog.as_ref(), &self.secret, org, email).await?;
        let action = if known.is_some() {
            AuditAction::Link
        } else {
            AuditAction::Create
        };
        let mut account = known.unwrap_or_else(|| self.new_owner(org, email));
        if account.user.state == UserState::Disabled {
            return Err(LinkIssueError::Disabled);
        }
        let link = LinkText::issue_for(
            &self.secret,
            &mut account,
            LinkPurpose::SignIn,
            Timestamp::now().after(self.lifetime),
        );
        let id = account.user.id.clone();
        self.catalog
            .put(&CatalogEntry::User(Box::new(account)))
            .await?;
        record_command(
            self.accounts.as_ref(),
            org,
            action,
            EntryKind::User.name(),
            id.as_str(),
        )
        .await?;
        Ok(link.url(&self.dashboard_url))
    }

    /// Returns the owners of an organization.
    pub async fn owners(&self, org: &OrgId) -> Result<Vec<User>, LinkIssueError> {
        let entries = self.catalog.list(EntryKind::User, Some(org)).await?;
        let owners = entries.into_iter().filter_map(|entry| match entry {
            CatalogEntry::User(account) if account.user.role == UserRole::Owner => {
                Some(account.user)
            }
            _ => None,
        });
        Ok(owners.collect())
    }

    fn new_owner(&self, org: &OrgId, email: &EmailAddress) -> UserAccount {
        new_account(
            &self.secret,
            org,
            email.clone(),
            "Owner".to_owned(),
            UserRole::Owner,
        )
    }
}

/// Creates an invited account that nobody has used yet.
pub(crate) fn new_account(
    secret: &InstallationSecret,
    org: &OrgId,
    email: EmailAddress,
    name: String,
    role: UserRole,
) -> UserAccount {
    let user = User {
        id: UserId::derive(secret, org, &email),
        org_id: org.clone(),
        email,
        name,
        role,
        state: UserState::Invited,
        created_at: Timestamp::now(),
    };
    let mut account = UserAccount {
        user,
        password: None,
        link: None,
        session_epoch: 0,
    };
    account.end_sessions();
    account
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{org_id, secret};

    fn account() -> UserAccount {
        new_account(
            &secret(),
            &org_id(),
            "ada@example.org".parse().unwrap(),
            "Ada".into(),
            UserRole::Owner,
        )
    }

    fn in_a_minute() -> Timestamp {
        Timestamp::now().after(Duration::from_secs(60))
    }

    #[test]
    fn link_round_trips_and_only_the_last_one_is_valid() {
        let mut account = account();
        let first = LinkText::issue_for(&secret(), &mut account, LinkPurpose::Reset, in_a_minute());
        let second =
            LinkText::issue_for(&secret(), &mut account, LinkPurpose::Reset, in_a_minute());
        let url = second.url("http://localhost:8080/");
        let (page, text) = url.split_once('#').unwrap();
        assert_eq!(page, "http://localhost:8080/dashboard/link");
        let read = LinkText::parse(text).unwrap();
        assert_eq!(read.user_id(), &account.user.id);
        assert!(read.valid_link(&secret(), &account).is_some());
        assert!(first.valid_link(&secret(), &account).is_none());
        assert!(
            !serde_json::to_string(&account)
                .unwrap()
                .contains(second.token.expose())
        );
    }

    #[test]
    fn expired_link_and_link_of_a_disabled_account_are_invalid() {
        let mut account = account();
        let late = LinkText::issue_for(
            &secret(),
            &mut account,
            LinkPurpose::SignIn,
            Timestamp::now(),
        );
        assert!(late.valid_link(&secret(), &account).is_none());
        let link = LinkText::issue_for(&secret(), &mut account, LinkPurpose::SignIn, in_a_minute());
        account.user.state = UserState::Disabled;
        assert!(link.valid_link(&secret(), &account).is_none());
    }

    proptest! {
        #[test]
        fn parsed_link_equals_its_input(text in "[0-9a-z]{78}|\\PC{0,90}") {
            if let Some(link) = LinkText::parse(&text) {
                prop_assert_eq!(link.url("x"), format!("x/dashboard/link#{text}"));
            }
        }
    }

    #[test]
    fn malformed_link_is_rejected() {
        for text in [
            "",
            "x",
            "é",
            &"0".repeat(77),
            &"0".repeat(79),
            &"z".repeat(78),
        ] {
            assert!(LinkText::parse(text).is_none(), "{text}");
        }
    }
}
