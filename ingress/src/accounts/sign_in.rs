//! `/api/dashboard`: sign-in, sign-out, the current session, one-time links and password changes.

use axum::{
    Json, Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_backends::{
    accounts::DashboardSession,
    catalog::{CatalogEntry, EntryKind},
};
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, FieldChange},
    email::EmailAddress,
    ids::{OrgId, UserId},
    organization::Organization,
    user::{LinkPurpose, User, UserAccount, UserState},
};

use super::{
    AccountEdit, SignedIn,
    bodies::{
        ChangePasswordRequest, SessionOrganization, SessionTimes, SessionUser, SessionView,
        SignInRequest, UseLinkRequest,
    },
    change_account, check_same_site,
    cookie::{expired_cookies, session_cookie},
    known_browser::{browser_cookie, known_browser},
    link::LinkText,
    session::{begin_session, end_held, find_account, load_account},
};
use crate::{
    audit::{AuditChange, AuditTrail},
    auth::permissions::rights_of,
    http::{
        ApiError, ApiResult, RateLimitAddress,
        body::{self, BodyLimits},
        fields,
    },
    state::{
        AppState,
        passwords::{chosen_password, offered_password},
    },
};

/// The path of the session.
pub(crate) const SESSION_PATH: &str = "/api/dashboard/session";
/// The path that takes one-time links.
pub(crate) const LINK_PATH: &str = "/api/dashboard/link";
/// The path of the user's password.
pub(crate) const PASSWORD_PATH: &str = "/api/dashboard/password";

const EMAIL: &str = "email";
const ORGANIZATION: &str = "organization";
const PASSWORD: &str = "password";
const LINK: &str = "link";
const CURRENT_PASSWORD: &str = "currentPassword";
const NEW_PASSWORD: &str = "newPassword";

/// Returns the routes of dashboard accounts.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route(
            SESSION_PATH,
            get(get_session).post(sign_in).delete(sign_out),
        )
        .route(LINK_PATH, post(use_link))
        .route(PASSWORD_PATH, post(change_password))
}

/// Returns the signed-in user with their rights.
async fn get_session(State(state): State<AppState>, signed_in: SignedIn) -> ApiResult<Response> {
    Ok(Json(session_view(&state, &signed_in.account, &signed_in.session).await?).into_response())
}

async fn sign_in(
    State(state): State<AppState>,
    address: RateLimitAddress,
    trail: AuditTrail,
    request: Request,
) -> ApiResult<Response> {
    let (headers, body): (_, SignInRequest) = read_own_body(&state, request).await?;
    let email = required_text(EMAIL, &body.email)?;
    let password = offered_password(required_text(PASSWORD, &body.password)?);
    let organization = fields::text_value(ORGANIZATION, &body.organization)?;
    let organization = signing_in_to(&state, organization).await?;
    let browser = known_browser(&headers, &state.secret, email);
    let attempt = state
        .limits
        .begin_sign_in(&email.trim().to_ascii_lowercase(), &address, browser)
        .await?;
    // A malformed address is treated as unknown: response and timing are the same.
    let known = match email.parse::<EmailAddress>() {
        Ok(email) => account_to_sign_in(&state, organization.as_ref(), &email).await?,
        Err(_) => None,
    };
    let known = known.filter(|account| account.user.state == UserState::Active);
    let hash = known.as_ref().and_then(|account| account.password.clone());
    let is_right = attempt
        .compare(state.passwords.verify(password, hash))
        .await?;
    let Some(account) = known.filter(|_| is_right) else {
        return Err(refused_sign_in(organization.is_some()));
    };
    start_session(&state, &headers, &trail, &account).await
}

/// Returns the id of the organization with this slug; without a slug, of the only one.
async fn signing_in_to(state: &AppState, slug: Option<&str>) -> ApiResult<Option<OrgId>> {
    if let Some(slug) = slug.map(str::trim).filter(|slug| !slug.is_empty()) {
        return Ok(Some(state.apply.organization_id(slug).await?));
    }
    let catalog = &state.backends.catalog;
    let all = catalog.page(EntryKind::Organization, None, 0, 2).await?;
    Ok(match all.entries.as_slice() {
        [only] => Some(only.org_id().clone()),
        _ => None,
    })
}

/// Returns the account of an address. Without an organization, it is from a version that had one
/// account per address.
async fn account_to_sign_in(
    state: &AppState,
    org: Option<&OrgId>,
    email: &EmailAddress,
) -> ApiResult<Option<UserAccount>> {
    let (catalog, secret) = (state.backends.catalog.as_ref(), &state.secret);
    match org {
        Some(org) => Ok(find_account(catalog, secret, org, email).await?),
        None => load_account(state, &UserId::of_older_version(secret, email)).await,
    }
}

/// Returns the error of a sign-in, which is the same whatever was wrong.
fn refused_sign_in(has_organization: bool) -> ApiError {
    if has_organization {
        let detail = "wrong e-mail address, password or organization";
        return ApiError::uncoded(StatusCode::UNAUTHORIZED, detail);
    }
    let detail = "wrong e-mail address or password, or the organization is missing: this installation has several";
    ApiError::uncoded(StatusCode::UNAUTHORIZED, detail).param(ORGANIZATION)
}

/// Deletes the session and its cookies, even if the session has expired.
async fn sign_out(
    State(state): State<AppState>,
    trail: AuditTrail,
    request: Request,
) -> ApiResult<Response> {
    let (parts, _) = request.into_parts();
    check_same_site(&parts.method, &parts.uri, &parts.headers, &state.config)?;
    let signed_in = SignedIn::find(&parts, &state).await;
    end_held(&state, &parts.headers).await?;
    if let Ok(SignedIn { account, .. }) = signed_in {
        record_own(&state, &trail, &account, AuditAction::SignOut, &[]).await;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    for cookie in expired_cookies(&state.config)? {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Uses a one-time link: sets the supplied password and creates a session.
async fn use_link(
    State(state): State<AppState>,
    address: RateLimitAddress,
    trail: AuditTrail,
    request: Request,
) -> ApiResult<Response> {
    let (headers, body): (_, UseLinkRequest) = read_own_body(&state, request).await?;
    let text = required_text(LINK, &body.link)?;
    let Some((link, found, purpose)) = find_link(&state, text).await? else {
        state.limits.refuse_link(&address).await?;
        return Err(invalid_link());
    };
    let password = match fields::text_value(PASSWORD, &body.password)? {
        Some(text) => Some(chosen_password(PASSWORD, text, found.user.email.as_str())?),
        None if purpose.needs_password() => {
            return Err(missing_password(&state, &found, purpose).await?);
        }
        None => None,
    };
    let hash = match password {
        Some(password) => Some(state.passwords.hash(password).await?),
        None => None,
    };
    let target = AccountEdit {
        org: &found.user.org_id,
        id: found.user.id.as_str(),
        once: true,
    };
    let changed = change_account(&state, target, |mut account, _, _| {
        link.valid_link(&state.secret, &account)
            .ok_or_else(invalid_link)?;
        account.link = None;
        account.user.state = UserState::Active;
        if hash.is_some() {
            account.password.clone_from(&hash);
            account.end_sessions();
        }
        Ok(Some(account))
    });
    let (before, Some(after)) = changed.await? else {
        return Err(invalid_link());
    };
    let mut changed = vec![LINK];
    changed.extend((before.user.state != after.user.state).then_some("state"));
    changed.extend(hash.is_some().then_some(PASSWORD));
    record_own(&state, &trail, &after, AuditAction::Update, &changed).await;
    start_session(&state, &headers, &trail, &after).await
}

/// Returns a valid link with its account and purpose.
async fn find_link(
    state: &AppState,
    text: &str,
) -> ApiResult<Option<(LinkText, UserAccount, LinkPurpose)>> {
    let Some(link) = LinkText::parse(text) else {
        return Ok(None);
    };
    let Some(found) = load_account(state, link.user_id()).await? else {
        return Ok(None);
    };
    let purpose = link
        .valid_link(&state.secret, &found)
        .map(|valid| valid.purpose);
    Ok(purpose.map(|purpose| (link, found, purpose)))
}

/// Changes the password. All other sessions of the user end, and this one gets a new token.
async fn change_password(
    State(state): State<AppState>,
    address: RateLimitAddress,
    trail: AuditTrail,
    SignedIn { account: found, .. }: SignedIn,
    request: Request,
) -> ApiResult<Response> {
    let (headers, body): (_, ChangePasswordRequest) = read_own_body(&state, request).await?;
    let wanted = chosen_password(
        NEW_PASSWORD,
        required_text(NEW_PASSWORD, &body.new_password)?,
        found.user.email.as_str(),
    )?;
    // Users who signed in by link may not have a password.
    if found.password.is_some() {
        let current = offered_password(required_text(CURRENT_PASSWORD, &body.current_password)?);
        let email = found.user.email.as_str();
        let browser = known_browser(&headers, &state.secret, email);
        let attempt = state.limits.begin_sign_in(email, &address, browser).await?;
        let verification = state.passwords.verify(current, found.password.clone());
        if !attempt.compare(verification).await? {
            return Err(ApiError::field(CURRENT_PASSWORD, "is not the password"));
        }
    }
    let hash = state.passwords.hash(wanted).await?;
    let target = AccountEdit {
        org: &found.user.org_id,
        id: found.user.id.as_str(),
        once: false,
    };
    let changed = change_account(&state, target, |mut account, _, _| {
        if account.password != found.password || account.session_epoch != found.session_epoch {
            return Err(ApiError::field(CURRENT_PASSWORD, "was changed meanwhile"));
        }
        account.password = Some(hash.clone());
        // The holder of an older link could undo the change.
        account.link = None;
        account.end_sessions();
        Ok(Some(account))
    });
    let (_, Some(after)) = changed.await? else {
        return Err(invalid_link());
    };
    record_own(&state, &trail, &after, AuditAction::Update, &[PASSWORD]).await;
    start_session(&state, &headers, &trail, &after).await
}

/// Creates a new session that replaces those of the browser, and returns the user.
async fn start_session(
    state: &AppState,
    headers: &HeaderMap,
    trail: &AuditTrail,
    account: &UserAccount,
) -> ApiResult<Response> {
    end_held(state, headers).await?;
    let (token, session) = begin_session(state, account).await?;
    record_own(state, trail, account, AuditAction::SignIn, &[]).await;
    let mut response = Json(session_view(state, account, &session).await?).into_response();
    let email = &account.user.email;
    for cookie in [
        session_cookie(&token, headers, &state.config)?,
        browser_cookie(headers, &state.secret, email, &state.config)?,
    ] {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the organization of an account.
///
/// # Errors
/// 401 if it was deleted.
async fn organization_of(state: &AppState, user: &User) -> ApiResult<Organization> {
    let found = state
        .backends
        .catalog
        .get(EntryKind::Organization, user.org_id.as_str());
    match found.await? {
        Some(CatalogEntry::Organization(organization)) => Ok(organization),
        _ => Err(ApiError::uncoded(
            StatusCode::UNAUTHORIZED,
            "the organization was deleted",
        )),
    }
}

async fn session_view(
    state: &AppState,
    UserAccount { user, password, .. }: &UserAccount,
    session: &DashboardSession,
) -> ApiResult<SessionView> {
    let organization = organization_of(state, user).await?;
    Ok(SessionView {
        user: SessionUser {
            id: user.id.clone(),
            email: user.email.clone(),
            name: user.name.clone(),
            role: user.role,
            has_password: password.is_some(),
        },
        organization: SessionOrganization {
            id: organization.id.clone(),
            slug: organization.slug.clone(),
            name: organization.name.clone(),
            has_model: has_model(state, &organization.id).await?,
        },
        rights: rights_of(user.role),
        session: SessionTimes {
            began_at: session.began_at,
            expires_at: session.expires_at,
            idle_ms: state.config.session_idle_ms,
        },
    })
}

/// Returns true if a language model can reply for the organization.
async fn has_model(state: &AppState, org: &OrgId) -> ApiResult<bool> {
    if !state.config.is_demo {
        return Ok(true);
    }
    let providers = state.backends.catalog.list(EntryKind::Provider, Some(org));
    Ok(!providers.await?.is_empty())
}

/// Reads the body of a request from our own pages.
async fn read_own_body<T: DeserializeOwned>(
    state: &AppState,
    request: Request,
) -> ApiResult<(HeaderMap, T)> {
    let (parts, body) = request.into_parts();
    check_same_site(&parts.method, &parts.uri, &parts.headers, &state.config)?;
    let body =
        body::read_body(&parts.headers, body, BodyLimits::credentials(&state.config)).await?;
    Ok((parts.headers, body::parse_body(&body)?))
}

fn required_text<'a>(field: &str, value: &'a Value) -> ApiResult<&'a str> {
    fields::text_value(field, value)?.ok_or_else(|| ApiError::field(field, "is missing"))
}

/// Records a change that users made to their own account.
async fn record_own(
    state: &AppState,
    trail: &AuditTrail,
    account: &UserAccount,
    action: AuditAction,
    fields: &[&str],
) {
    let user = &account.user;
    let actor = AuditActor::User {
        id: user.id.clone(),
        email: user.email.clone(),
    };
    let named = fields.iter().map(|field| FieldChange {
        field: (*field).to_owned(),
        before: None,
        after: None,
    });
    let change = AuditChange {
        org: &user.org_id,
        kind: EntryKind::User.name(),
        subject: user.id.as_str(),
        action,
        fields: named.collect(),
    };
    trail.record(state, actor, change).await;
}

/// The same error for unknown, used, expired and replaced links.
fn invalid_link() -> ApiError {
    ApiError::uncoded(
        StatusCode::UNAUTHORIZED,
        "this link is not valid any more: request a new one",
    )
}

/// Returns the error for a missing password, with details that only the holder of the link may see.
async fn missing_password(
    state: &AppState,
    account: &UserAccount,
    purpose: LinkPurpose,
) -> ApiResult<ApiError> {
    let user = &account.user;
    let organization = organization_of(state, user).await?.slug;
    let details = json!({ "email": user.email, "name": user.name, "purpose": purpose,
        "organization": organization });
    Ok(ApiError::field(PASSWORD, "is missing").details(details))
}
