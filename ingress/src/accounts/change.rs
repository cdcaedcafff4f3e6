//! The one way in which accounts change: one change of an organization's accounts at a time, on whatever processes,
//! because some rules (there is always an owner) hold for all of them together.

use sha2::{Digest, Sha256};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    ids::{OrgId, RequestId, UserId},
    user::{UserAccount, UserRole, UserState},
};

use crate::{
    error::{ApiError, ApiResult, ErrorCode},
    first::{CHANGE_POLL, Right, right_to},
    state::AppState,
};

/// Accounts that an organization can have.
const ACCOUNTS_MAX: usize = 500;

/// Which account changes, and how carefully.
#[derive(Clone, Copy)]
pub(crate) struct AccountEdit<'a> {
    /// Whose account it is.
    pub(crate) org: &'a OrgId,
    /// The account.
    pub(crate) id: &'a str,
    /// Whether the change must happen at most once, even at the price that nobody can make it while the relay is away.
    pub(crate) once: bool,
}

/// Changes an account to what `edit` makes of it, of its version and of its fellows; none removes it. `edit` may be asked
/// several times.
///
/// # Errors
/// Those of `edit`; 404 when the organization has no such account.
pub(crate) async fn change_account(
    state: &AppState,
    what: AccountEdit<'_>,
    edit: impl Fn(UserAccount, i64, &[UserAccount]) -> ApiResult<Option<UserAccount>>,
) -> ApiResult<(UserAccount, Option<UserAccount>)> {
    let nonce = RequestId::random();
    loop {
        {
            let _turn = state.apply.turn.lock().await;
            let (note, mut all) = accounts(state, what.org).await?;
            let place = all
                .iter()
                .position(|account| account.user.id.as_str() == what.id);
            let before = all.swap_remove(
                place.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "there is no such user"))?,
            );
            let found = state
                .backends
                .catalog
                .versioned(EntryKind::User, what.id)
                .await?;
            let version = found.map(|found| found.version).unwrap_or_default();
            let after = edit(before.clone(), version, &all)?;
            if after.as_ref() == Some(&before) {
                return Ok((before, after));
            }
            match right_to(state, &note, &nonce).await {
                Right::Another => {}
                Right::Anybodys if what.once => {
                    return Err(ApiError::unavailable(
                        "what happens once cannot be promised now",
                    ));
                }
                Right::Ours | Right::Anybodys => {
                    write(state, what, after.as_ref()).await?;
                    return Ok((before, after));
                }
            }
        }
        tokio::time::sleep(CHANGE_POLL).await;
    }
}

/// Makes an account that is not there yet.
///
/// # Errors
/// 409 when the address names one already, of whatever organization, or the organization has too many.
pub(crate) async fn make_account(state: &AppState, account: UserAccount) -> ApiResult<()> {
    let nonce = RequestId::random();
    let id = account.user.id.clone();
    loop {
        {
            let _turn = state.apply.turn.lock().await;
            if state
                .backends
                .catalog
                .get(EntryKind::User, id.as_str())
                .await?
                .is_some()
            {
                return Err(ApiError::new(
                    ErrorCode::Conflict,
                    "this address names an account already",
                )
                .param("email"));
            }
            let (_, all) = accounts(state, &account.user.org_id).await?;
            if all.len() >= ACCOUNTS_MAX {
                return Err(ApiError::new(
                    ErrorCode::Conflict,
                    "the organization has as many accounts as it can have",
                ));
            }
            if right_to(state, &format!("admin-account:{id}"), &nonce).await != Right::Another {
                return Ok(state
                    .backends
                    .catalog
                    .put(&CatalogEntry::User(Box::new(account)))
                    .await?);
            }
        }
        tokio::time::sleep(CHANGE_POLL).await;
    }
}

/// Refuses a change that leaves an organization without anybody who can let people in.
pub(crate) fn last_owner(
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
        "the last owner of an organization stays one",
    ))
}

/// The accounts, with the name of the change that leads on from exactly these.
async fn accounts(state: &AppState, org: &OrgId) -> ApiResult<(String, Vec<UserAccount>)> {
    let entries = state
        .backends
        .catalog
        .list(EntryKind::User, Some(org))
        .await?;
    let text = serde_json::to_vec(&entries).map_err(|error| ApiError::internal(&error))?;
    let digest: String = Sha256::digest(&text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let accounts = entries.into_iter().filter_map(|entry| match entry {
        CatalogEntry::User(account) => Some(*account),
        _ => None,
    });
    Ok((format!("admin-accounts:{org}:{digest}"), accounts.collect()))
}

async fn write(
    state: &AppState,
    what: AccountEdit<'_>,
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
            // An id that is none names nothing, and was not found before.
            let id: UserId = what
                .id
                .parse()
                .map_err(|_| ApiError::new(ErrorCode::NotFound, "there is no such user"))?;
            state
                .backends
                .catalog
                .remove(EntryKind::User, what.org, id.as_str())
                .await?;
        }
    }
    Ok(())
}
