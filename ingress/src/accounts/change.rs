//! Changes to accounts. Only one change of an organization's accounts runs at a time, across
//! processes, because some rules, such as the last owner, concern all accounts together.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    ids::{OrgId, RequestId, UserId},
    user::{User, UserAccount, UserRole, UserState},
};

use super::session::find_account;
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    state::{
        AppState,
        advisory_lock::{LOCK_POLL_INTERVAL, LockAttempt, try_acquire_lock},
    },
};

/// Maximum number of accounts per organization.
const ACCOUNTS_MAX: usize = 500;

/// The account to change, and the required guarantee.
#[derive(Clone, Copy)]
pub(crate) struct AccountEdit<'a> {
    /// Organization of the account.
    pub(crate) org: &'a OrgId,
    pub(crate) id: &'a str,
    /// Requires the change to happen at most once; it then fails while the lock service is
    /// unavailable.
    pub(crate) once: bool,
}

/// Updates an account with `edit`, which receives the account, its version and the organization's
/// other accounts. `None` removes the account. `edit` may be called several times.
///
/// # Errors
/// Returns the errors of `edit`, and 404 if the organization has no such account.
pub(crate) async fn change_account(
    state: &AppState,
    target: AccountEdit<'_>,
    mut edit: impl FnMut(UserAccount, i64, &[UserAccount]) -> ApiResult<Option<UserAccount>>,
) -> ApiResult<(UserAccount, Option<UserAccount>)> {
    let nonce = RequestId::random();
    loop {
        {
            let _guard = state.apply.write_lock.lock().await;
            let (lock_name, mut all) = list_accounts(state, target.org).await?;
            let place = all
                .iter()
                .position(|account| account.user.id.as_str() == target.id);
            let before = all.swap_remove(place.ok_or_else(|| {
                ApiError::new(
                    ErrorCode::NotFound,
                    "the organization has no user with this id",
                )
            })?);
            let found = state
                .backends
                .catalog
                .versioned(EntryKind::User, target.id)
                .await?;
            let version = found.map(|found| found.version).unwrap_or_default();
            let after = edit(before.clone(), version, &all)?;
            if after.as_ref() == Some(&before) {
                return Ok((before, after));
            }
            match try_acquire_lock(state, &lock_name, nonce.as_str()).await {
                LockAttempt::HeldByOther => {}
                LockAttempt::Unavailable if target.once => {
                    return Err(ApiError::unavailable(
                        "the change must happen once, which cannot be guaranteed at the moment",
                    ));
                }
                LockAttempt::Acquired | LockAttempt::Unavailable => {
                    write_account(state, target, after.as_ref()).await?;
                    return Ok((before, after));
                }
            }
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}

/// Creates an account.
///
/// # Errors
/// Returns 409 if the organization has an account with this address, or too many. Accounts of other
/// organizations make no difference.
pub(crate) async fn create_account(state: &AppState, account: UserAccount) -> ApiResult<()> {
    let nonce = RequestId::random();
    let id = account.user.id.clone();
    loop {
        {
            let _guard = state.apply.write_lock.lock().await;
            let User { org_id, email, .. } = &account.user;
            let catalog = state.backends.catalog.as_ref();
            if find_account(catalog, &state.secret, org_id, email)
                .await?
                .is_some()
            {
                return Err(ApiError::new(
                    ErrorCode::Conflict,
                    "an account with this address already exists",
                )
                .param("email"));
            }
            let (_, all) = list_accounts(state, &account.user.org_id).await?;
            if all.len() >= ACCOUNTS_MAX {
                return Err(ApiError::new(
                    ErrorCode::Conflict,
                    "the organization has the maximum number of accounts",
                ));
            }
            if try_acquire_lock(state, &format!("admin-account:{id}"), nonce.as_str()).await
                != LockAttempt::HeldByOther
            {
                return Ok(state
                    .backends
                    .catalog
                    .put(&CatalogEntry::User(Box::new(account)))
                    .await?);
            }
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}

/// Rejects a change that would leave the organization without an active owner.
pub(crate) fn check_last_owner(
    before: &UserAccount,
    after: Option<&UserAccount>,
    fellows: &[UserAccount],
) -> ApiResult<()> {
    let decides = |account: &UserAccount| {
        account.user.role == UserRole::Owner && account.user.state == UserState::Active
    };
    if !decides(before) || after.is_some_and(decides) || fellows.iter().any(decides) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Conflict,
        "an organization needs at least one active owner",
    ))
}

/// Returns the accounts of an organization, and a lock name derived from exactly this state.
async fn list_accounts(state: &AppState, org: &OrgId) -> ApiResult<(String, Vec<UserAccount>)> {
    let entries = state
        .backends
        .catalog
        .list(EntryKind::User, Some(org))
        .await?;
    let text = serde_json::to_vec(&entries).map_err(|error| ApiError::internal(&error))?;
    let digest = HEXLOWER.encode(&Sha256::digest(&text));
    let accounts = entries.into_iter().filter_map(|entry| match entry {
        CatalogEntry::User(account) => Some(*account),
        _ => None,
    });
    Ok((format!("admin-accounts:{org}:{digest}"), accounts.collect()))
}

async fn write_account(
    state: &AppState,
    target: AccountEdit<'_>,
    after: Option<&UserAccount>,
) -> ApiResult<()> {
    match after {
        Some(account) => {
            state
                .backends
                .catalog
                .put(&CatalogEntry::User(Box::new(account.clone())))
                .await?
        }
        None => {
            // A malformed id cannot belong to an account.
            let id: UserId = target.id.parse().map_err(|_| {
                ApiError::new(
                    ErrorCode::NotFound,
                    "the organization has no user with this id",
                )
            })?;
            state
                .backends
                .catalog
                .remove(EntryKind::User, target.org, id.as_str())
                .await?;
        }
    }
    Ok(())
}
