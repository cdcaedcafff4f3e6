//! Sessions: begun by a proof, found by a cookie, ended by time, by the person, or with everything that a person's
//! account loses.

use axum::extract::FromRequestParts;
use http::{HeaderMap, StatusCode, request::Parts};
use switchboard_backends::{
    accounts::DashboardSession,
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{
    ids::UserId,
    random_token::{RandomToken, TokenHash, TokenPurpose},
    time::Timestamp,
    user::{UserAccount, UserState},
};

use super::{
    check_same_site,
    cookie::{has_session_cookie, session_tokens},
};
use crate::{
    error::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// Uses that are closer together than this are noted once; shorter where sessions are.
const NOTED_EVERY_MS: u64 = 60_000;
/// Notes that fall into the time after which an unused session ends.
const NOTES_PER_IDLE_TIME: u64 = 10;

/// A person who is signed in and may be.
#[derive(Debug)]
pub(crate) struct SignedIn {
    /// As it is kept now: what a person loses is lost with the next request.
    pub(crate) account: UserAccount,
    /// The session.
    pub(crate) session: DashboardSession,
}

impl FromRequestParts<AppState> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        if !has_session_cookie(&parts.headers) {
            return Err(ApiError::new(
                ErrorCode::MissingApiKey,
                "nobody is signed in",
            ));
        }
        check_same_site(&parts.method, &parts.uri, &parts.headers, &state.config)?;
        for token in session_tokens(&parts.headers, &state.config) {
            if let Some(found) = Self::find(&token, state).await? {
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
}

impl SignedIn {
    async fn find(token: &RandomToken, state: &AppState) -> ApiResult<Option<Self>> {
        let (hash, now) = (
            token.hash(&state.secret, TokenPurpose::Session),
            Timestamp::now(),
        );
        let Some(mut session) = state.backends.accounts.session(&hash).await? else {
            return Ok(None);
        };
        let unused_ms = now.millis_since(session.seen_at);
        if now >= session.expires_at || unused_ms >= state.config.session_idle_ms {
            return Ok(None);
        }
        let account = account(state, &session.user).await?;
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

/// The account with this id. Read from the store itself: a cached one would let somebody in who was just shut out.
pub(crate) async fn account(state: &AppState, id: &UserId) -> ApiResult<Option<UserAccount>> {
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

/// Begins a session of `account`. Its token is always a new one, so that nobody is signed in with one that others know.
pub(super) async fn begin(
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

/// Ends the sessions that a browser holds.
pub(super) async fn end_held(state: &AppState, headers: &HeaderMap) -> ApiResult<()> {
    for token in session_tokens(headers, &state.config) {
        let hash: TokenHash = token.hash(&state.secret, TokenPurpose::Session);
        state.backends.accounts.end_session(&hash).await?;
    }
    Ok(())
}
