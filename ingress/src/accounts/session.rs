//! Dashboard sessions: created by sign-in, found by cookie, and ended by expiry, sign-out or
//! changes of the account.

use axum::extract::FromRequestParts;
use http::{HeaderMap, StatusCode, request::Parts};
use switchboard_backends::{
    StoreError,
    accounts::DashboardSession,
    catalog::{CatalogEntry, CatalogEntryStore, EntryKind},
};
use switchboard_schemas::{
    email::EmailAddress,
    ids::{OrgId, UserId},
    random_token::{RandomToken, TokenHash, TokenPurpose},
    secret::InstallationSecret,
    time::Timestamp,
    user::{UserAccount, UserState},
};

use super::{
    check_same_site,
    cookie::{has_session_cookie, session_tokens},
};
use crate::{
    http::{ApiError, ApiResult, ErrorCode},
    limits::RateLimitHeaders,
    state::AppState,
};

/// Minimum interval between updates of a session's last use; shorter for short sessions.
const NOTED_EVERY_MS: u64 = 60_000;
/// Updates per idle timeout of a session.
const NOTES_PER_IDLE_TIME: u64 = 10;

/// A user with a valid session.
#[derive(Debug)]
pub(crate) struct SignedIn {
    /// The current account, so that lost permissions take effect with the next request.
    pub(crate) account: UserAccount,
    pub(crate) session: DashboardSession,
}

impl FromRequestParts<AppState> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let found = Self::find(parts, state).await?;
        let limit_headers = RateLimitHeaders::from_extensions(&parts.extensions);
        let person = found.account.user.id.as_str();
        state
            .limits
            .admit_administrator(person, &limit_headers)
            .await?;
        Ok(found)
    }
}

impl SignedIn {
    /// Finds the user of a request without counting it, so that signing out is never limited.
    pub(super) async fn find(parts: &Parts, state: &AppState) -> ApiResult<Self> {
        if !has_session_cookie(&parts.headers) {
            return Err(ApiError::new(
                ErrorCode::MissingApiKey,
                "no user is signed in",
            ));
        }
        check_same_site(&parts.method, &parts.uri, &parts.headers, &state.config)?;
        for token in session_tokens(&parts.headers, &state.config) {
            if let Some(found) = Self::find_session(&token, state).await? {
                let user = &found.account.user;
                tracing::Span::current().record("user.id", user.id.as_str());
                tracing::Span::current().record("org.id", user.org_id.as_str());
                return Ok(found);
            }
        }
        Err(ApiError::uncoded(
            StatusCode::UNAUTHORIZED,
            "the session has ended: sign in again",
        ))
    }

    async fn find_session(token: &RandomToken, state: &AppState) -> ApiResult<Option<Self>> {
        let (hash, now) = (
            token.hash(&state.secret, TokenPurpose::Session),
            Timestamp::now(),
        );
        let Some(mut session) = state.backends.accounts.find_session(&hash).await? else {
            return Ok(None);
        };
        let unused_ms = now.millis_since(session.seen_at);
        if now >= session.expires_at || unused_ms >= state.config.session_idle_ms {
            return Ok(None);
        }
        let account = load_account(state, &session.user).await?;
        let account = account.filter(|account| {
            account.session_epoch == session.epoch && account.user.state == UserState::Active
        });
        let Some(account) = account else {
            return Ok(None);
        };
        if unused_ms >= NOTED_EVERY_MS.min(state.config.session_idle_ms / NOTES_PER_IDLE_TIME) {
            session.seen_at = now;
            state
                .backends
                .accounts
                .touch_session(&hash, &session)
                .await?;
        }
        Ok(Some(Self { account, session }))
    }
}

/// Returns the account with this id. Bypasses the cache, which could admit a user who was just
/// disabled.
pub(crate) async fn load_account(state: &AppState, id: &UserId) -> ApiResult<Option<UserAccount>> {
    match state
        .backends
        .catalog
        .get(EntryKind::User, id.as_str())
        .await?
    {
        Some(CatalogEntry::User(account)) => Ok(Some(*account)),
        _ => Ok(None),
    }
}

/// Returns the organization's account with this address.
///
/// # Errors
/// The catalog cannot be reached.
pub(crate) async fn find_account(
    catalog: &dyn CatalogEntryStore,
    secret: &InstallationSecret,
    org: &OrgId,
    email: &EmailAddress,
) -> Result<Option<UserAccount>, StoreError> {
    for id in [
        UserId::derive(secret, org, email),
        UserId::of_older_version(secret, email),
    ] {
        if let Some(CatalogEntry::User(account)) = catalog.get(EntryKind::User, id.as_str()).await?
            && account.user.org_id == *org
        {
            return Ok(Some(*account));
        }
    }
    Ok(None)
}

/// Creates a session of `account` with a new token, so that an attacker cannot preset a known one.
pub(super) async fn begin_session(
    state: &AppState,
    account: &UserAccount,
) -> ApiResult<(RandomToken, DashboardSession)> {
    let (token, now) = (RandomToken::generate(), Timestamp::now());
    let session = DashboardSession {
        user: account.user.id.clone(),
        epoch: account.session_epoch,
        began_at: now,
        seen_at: now,
        expires_at: now.after(std::time::Duration::from_millis(
            state.config.session_lifetime_ms,
        )),
    };
    let hash = token.hash(&state.secret, TokenPurpose::Session);
    state
        .backends
        .accounts
        .begin_session(&hash, &session)
        .await?;
    Ok((token, session))
}

/// Deletes the sessions of a browser's cookies.
pub(super) async fn end_held(state: &AppState, headers: &HeaderMap) -> ApiResult<()> {
    for token in session_tokens(headers, &state.config) {
        let hash: TokenHash = token.hash(&state.secret, TokenPurpose::Session);
        state.backends.accounts.end_session(&hash).await?;
    }
    Ok(())
}
