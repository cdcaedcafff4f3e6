//! Links that work once: an invitation, another password, a way in. The secret stands behind the `#`, which browsers send
//! to nobody; what is kept is its hash, in the account, so that the one link that works is the last one made.

use std::{sync::Arc, time::Duration};

use switchboard_backends::{
    accounts::AccountStore,
    catalog::{CatalogEntry, CatalogStore, EntryKind},
    store::StoreError,
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

use crate::audit::record_command;

/// What a link holds: whose it is, and the secret.
pub(crate) struct LinkText {
    user: UserId,
    token: RandomToken,
}

/// Makes links where no request asks for one: at a start, and for a command.
pub struct LinkMaker {
    /// Where accounts lie.
    pub catalog: Arc<dyn CatalogStore>,
    /// Where it is noted.
    pub accounts: Arc<dyn AccountStore>,
    /// Of the installation.
    pub secret: InstallationSecret,
    /// Where a browser reaches the dashboard.
    pub dashboard_url: String,
    /// How long links work.
    pub lifetime: Duration,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The catalogue did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody has taken the account's right to sign in.
    #[error("this account is disabled")]
    Disabled,
    /// The address names an account of somebody else's.
    #[error("this address names an account of another organization")]
    OfAnotherOrganization,
}

impl LinkText {
    /// Gives `account` a link, in the place of any other.
    pub(crate) fn give(
        secret: &InstallationSecret,
        account: &mut UserAccount,
        purpose: LinkPurpose,
        lifetime: Duration,
    ) -> Self {
        let token = RandomToken::generate();
        let hash = token.hash(secret, TokenPurpose::Link).0;
        account.link = Some(OneTimeLink {
            hash,
            purpose,
            expires_at: Timestamp::now().after(lifetime),
        });
        Self {
            user: account.user.id.clone(),
            token,
        }
    }

    /// Reads what a browser sent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (user, token) = text.split_at_checked(base32::ENCODED_CHARS)?;
        Some(Self {
            user: format!("{}{user}", UserId::PREFIX).parse().ok()?,
            token: token.parse().ok()?,
        })
    }

    /// Whose it says to be.
    pub(crate) const fn user(&self) -> &UserId {
        &self.user
    }

    /// The link of `account` that this is, if it still works.
    pub(crate) fn working<'a>(
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

    /// Where the holder goes.
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
    /// A link that signs in to the account of this address; one that is not there is made, as an owner.
    pub async fn sign_in_link(
        &self,
        org: &OrgId,
        email: &EmailAddress,
    ) -> Result<String, LinkError> {
        let id = UserId::derive(&self.secret, email);
        let known = match self.catalog.get(EntryKind::User, id.as_str()).await? {
            Some(CatalogEntry::User(account)) => Some(*account),
            _ => None,
        };
        let action = if known.is_some() {
            AuditAction::Link
        } else {
            AuditAction::Create
        };
        let mut account = known.unwrap_or_else(|| self.new_owner(org, email));
        if account.user.org_id != *org {
            return Err(LinkError::OfAnotherOrganization);
        }
        if account.user.state == UserState::Disabled {
            return Err(LinkError::Disabled);
        }
        let link = LinkText::give(
            &self.secret,
            &mut account,
            LinkPurpose::SignIn,
            self.lifetime,
        );
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

    /// The people of an organization who decide.
    pub async fn owners(&self, org: &OrgId) -> Result<Vec<User>, LinkError> {
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

/// An account that nobody has used yet.
pub(crate) fn new_account(
    secret: &InstallationSecret,
    org: &OrgId,
    email: EmailAddress,
    name: String,
    role: UserRole,
) -> UserAccount {
    let user = User {
        id: UserId::derive(secret, &email),
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

    #[test]
    fn a_link_reads_as_itself_and_only_the_last_one_works() {
        let mut account = account();
        let first = LinkText::give(
            &secret(),
            &mut account,
            LinkPurpose::Reset,
            Duration::from_secs(60),
        );
        let second = LinkText::give(
            &secret(),
            &mut account,
            LinkPurpose::Reset,
            Duration::from_secs(60),
        );
        let url = second.url("http://localhost:8080/");
        let (page, text) = url.split_once('#').unwrap();
        assert_eq!(page, "http://localhost:8080/dashboard/link");
        let read = LinkText::parse(text).unwrap();
        assert_eq!(read.user(), &account.user.id);
        assert!(read.working(&secret(), &account).is_some());
        assert!(first.working(&secret(), &account).is_none());
        assert!(
            !serde_json::to_string(&account)
                .unwrap()
                .contains(second.token.expose())
        );
    }

    #[test]
    fn a_link_past_its_time_or_of_a_disabled_account_does_not_work() {
        let mut account = account();
        let late = LinkText::give(&secret(), &mut account, LinkPurpose::SignIn, Duration::ZERO);
        assert!(late.working(&secret(), &account).is_none());
        let link = LinkText::give(
            &secret(),
            &mut account,
            LinkPurpose::SignIn,
            Duration::from_secs(60),
        );
        account.user.state = UserState::Disabled;
        assert!(link.working(&secret(), &account).is_none());
    }

    proptest! {
        #[test]
        fn whatever_is_taken_for_a_link_is_exactly_one(text in "[0-9a-z]{78}|\\PC{0,90}") {
            if let Some(link) = LinkText::parse(&text) {
                prop_assert_eq!(link.url("x"), format!("x/dashboard/link#{text}"));
            }
        }
    }

    #[test]
    fn what_is_no_link_is_refused() {
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
