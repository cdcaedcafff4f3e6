//! `/api/admin/organizations/{org}/users`: people of an organization. Whoever invites somebody gets a link to hand on; its
//! text is in that answer and nowhere else.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, Query, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_backends::catalog::{CatalogEntry, EntryKind, VersionedEntry};
use switchboard_schemas::{
    audit::AuditAction,
    email::EmailAddress,
    ids::OrgId,
    user::{LinkPurpose, UserAccount, UserState},
};

use super::{
    administrator::{Action, Administrator},
    audit_fields::record_entry,
    one_thing::Fields,
    page::Page,
    precondition::{Precondition, etag},
    things::{created, find, listed, organization, read_fields},
};
use crate::{
    accounts::{
        AccountEdit, change_account, last_owner,
        link::{LinkText, new_account},
        make_account,
    },
    http::{ApiError, ApiResult},
    state::AppState,
};

const NAME_CHARS_MAX: usize = 200;
const LINK: &str = "link";

/// All of an organization, a page of them, by address.
pub(super) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(page): Query<Page>,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    let entries = state
        .apply
        .catalog
        .list(EntryKind::User, Some(&organization.id))
        .await?;
    listed(entries, &page, |entry| {
        Ok(view(account_of(entry)?, None).into())
    })
}

/// One of them.
pub(super) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    answer(
        StatusCode::OK,
        &find(&state, &organization.id, EntryKind::User, &id).await?,
        None,
    )
}

/// Invites somebody.
pub(super) async fn create(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    let (_, mut fields) = read_fields(&state, request).await?;
    let email: EmailAddress = taken(&mut fields, "email", "must be an e-mail address")?
        .ok_or_else(|| missing("email"))?;
    let role = taken(
        &mut fields,
        "role",
        "must be owner, editor, operator or viewer",
    )?;
    let name = name(&mut fields)?.unwrap_or_else(|| email.as_str().to_owned());
    refuse_unknown(&fields)?;
    let role = role.ok_or_else(|| missing("role"))?;
    let mut account = new_account(&state.secret, &organization.id, email, name, role);
    let link = give_link(&state, &mut account, LinkPurpose::Invitation);
    make_account(&state, account.clone()).await?;
    let entry = CatalogEntry::User(Box::new(account.clone()));
    record_entry(
        &administrator,
        &state,
        AuditAction::Create,
        None,
        Some(&entry),
    )
    .await;
    let found = find(&state, &organization.id, EntryKind::User, entry.id()).await?;
    let path = format!("/api/admin/organizations/{org}/users/{}", entry.id());
    Ok(created(
        answer(
            StatusCode::CREATED,
            &found,
            Some(shown_link(&state, &account, &link)),
        )?,
        &path,
    ))
}

/// Changes a name, a role, or whether somebody may sign in.
pub(super) async fn patch(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    find(&state, &organization.id, EntryKind::User, &id).await?;
    let (headers, mut fields) = read_fields(&state, request).await?;
    let precondition = Precondition::take(&headers, &mut fields)?;
    let wanted = Wanted::read(fields)?;
    let what = AccountEdit {
        org: &organization.id,
        id: &id,
        once: false,
    };
    let changed = change_account(&state, what, |account, version, fellows| {
        precondition.check(version)?;
        let changed = wanted.made_of(account.clone())?;
        last_owner(&account, Some(&changed), fellows)?;
        Ok(Some(changed))
    });
    let (before, after) = changed.await?;
    record_change(&administrator, &state, AuditAction::Update, before, after).await;
    answer(
        StatusCode::OK,
        &find(&state, &organization.id, EntryKind::User, &id).await?,
        None,
    )
}

/// Removes somebody, whose sessions end with it.
pub(super) async fn remove(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    let precondition = Precondition::of_headers(&headers);
    let what = AccountEdit {
        org: &organization.id,
        id: &id,
        once: false,
    };
    let removed = change_account(&state, what, |account, version, fellows| {
        precondition.check(version)?;
        last_owner(&account, None, fellows)?;
        Ok(None)
    });
    let (before, _) = removed.await?;
    record_change(&administrator, &state, AuditAction::Delete, before, None).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a link for somebody who has not come yet, or who has lost the password; the one before it works no more.
pub(super) async fn link(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let organization = organization(&state, &administrator, &org, Action::ManageUsers).await?;
    find(&state, &organization.id, EntryKind::User, &id).await?;
    let (_, fields) = read_fields(&state, request).await?;
    refuse_unknown(&fields)?;
    let text = std::sync::Mutex::new(None);
    let what = AccountEdit {
        org: &organization.id,
        id: &id,
        once: false,
    };
    let changed = change_account(&state, what, |mut account, _, _| {
        let purpose = match account.user.state {
            UserState::Invited => LinkPurpose::Invitation,
            UserState::Active => LinkPurpose::Reset,
            UserState::Disabled => return Err(conflict("this account is disabled")),
        };
        let link = give_link(&state, &mut account, purpose);
        *text
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(link);
        Ok(Some(account))
    });
    let (before, after) = changed.await?;
    let text = text
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (Some(after), Some(text)) = (after, text) else {
        return Err(ApiError::internal(&"a link was not made"));
    };
    let shown = shown_link(&state, &after, &text);
    record_change(
        &administrator,
        &state,
        AuditAction::Link,
        before,
        Some(after),
    )
    .await;
    answer(
        StatusCode::CREATED,
        &find(&state, &organization.id, EntryKind::User, &id).await?,
        Some(shown),
    )
}

/// What a patch asks for.
struct Wanted {
    name: Option<String>,
    role: Option<switchboard_schemas::user::UserRole>,
    state: Option<UserState>,
}

impl Wanted {
    fn read(mut fields: Fields) -> ApiResult<Self> {
        let wanted = Self {
            name: name(&mut fields)?,
            role: taken(
                &mut fields,
                "role",
                "must be owner, editor, operator or viewer",
            )?,
            state: taken(&mut fields, "state", "must be active or disabled")?,
        };
        refuse_unknown(&fields)?;
        Ok(wanted)
    }

    fn made_of(&self, mut account: UserAccount) -> ApiResult<UserAccount> {
        if let Some(name) = &self.name {
            account.user.name.clone_from(name);
        }
        account.user.role = self.role.unwrap_or(account.user.role);
        match (account.user.state, self.state) {
            (_, None) => {}
            (current, Some(wanted)) if current == wanted => {}
            (_, Some(UserState::Disabled)) => {
                account.user.state = UserState::Disabled;
                account.link = None;
                account.end_sessions();
            }
            // Somebody who never came is invited again; a link makes them active.
            (UserState::Disabled, Some(UserState::Active)) => {
                account.user.state = if account.password.is_some() {
                    UserState::Active
                } else {
                    UserState::Invited
                };
            }
            _ => {
                return Err(ApiError::field(
                    "state",
                    "becomes active by the invitation alone",
                ));
            }
        }
        Ok(account)
    }
}

async fn record_change(
    administrator: &Administrator,
    state: &AppState,
    action: AuditAction,
    before: UserAccount,
    after: Option<UserAccount>,
) {
    let (before, after) = (
        CatalogEntry::User(Box::new(before)),
        after.map(|account| CatalogEntry::User(Box::new(account))),
    );
    if after.as_ref() != Some(&before) {
        record_entry(administrator, state, action, Some(&before), after.as_ref()).await;
    }
}

fn give_link(state: &AppState, account: &mut UserAccount, purpose: LinkPurpose) -> LinkText {
    let lifetime_ms = match purpose {
        LinkPurpose::Invitation => state.config.invitation_lifetime_ms,
        LinkPurpose::Reset | LinkPurpose::SignIn => state.config.sign_in_link_lifetime_ms,
    };
    LinkText::give(
        &state.secret,
        account,
        purpose,
        Duration::from_millis(lifetime_ms),
    )
}

fn shown_link(state: &AppState, account: &UserAccount, text: &LinkText) -> Value {
    let kept = account.link.as_ref();
    json!({
        "url": text.url(&state.config.dashboard_url),
        "purpose": kept.map(|link| link.purpose),
        "expiresAt": kept.map(|link| link.expires_at),
    })
}

fn answer(status: StatusCode, found: &VersionedEntry, link: Option<Value>) -> ApiResult<Response> {
    let mut shown = view(account_of(&found.entry)?, Some(found.version));
    if let Some(link) = link {
        shown.insert(LINK.to_owned(), link);
    }
    let mut response = (status, Json(shown)).into_response();
    if let Some(etag) = etag(found.version) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

fn view(
    UserAccount {
        user,
        password,
        link,
        ..
    }: &UserAccount,
    version: Option<i64>,
) -> Fields {
    let shown = json!({
        "id": user.id,
        "organizationId": user.org_id,
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "state": user.state,
        "createdAt": user.created_at,
        "hasPassword": password.is_some(),
        "linkExpiresAt": link.as_ref().map(|link| link.expires_at),
    });
    let mut shown = match shown {
        Value::Object(shown) => shown,
        _ => Fields::new(),
    };
    if let Some(version) = version {
        shown.insert("version".to_owned(), version.to_string().into());
    }
    shown
}

fn account_of(entry: &CatalogEntry) -> ApiResult<&UserAccount> {
    match entry {
        CatalogEntry::User(account) => Ok(account),
        _ => Err(ApiError::internal(&"no account lies under a user's id")),
    }
}

fn name(fields: &mut Fields) -> ApiResult<Option<String>> {
    let name: Option<String> = taken(fields, "name", "must be a string")?;
    let is_name = |name: &str| {
        !name.trim().is_empty()
            && name.chars().count() <= NAME_CHARS_MAX
            && !name.chars().any(char::is_control)
    };
    match name {
        Some(name) if !is_name(&name) => Err(ApiError::field(
            "name",
            "must have 1 to 200 characters and no control characters",
        )),
        name => Ok(name),
    }
}

/// Takes a field out of those that came.
fn taken<T: DeserializeOwned>(
    fields: &mut Fields,
    name: &str,
    wanted: &'static str,
) -> ApiResult<Option<T>> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value)
            .map(Some)
            .map_err(|_| ApiError::field(name, wanted)),
    }
}

fn missing(field: &str) -> ApiError {
    ApiError::field(field, "is missing")
}

fn refuse_unknown(fields: &Fields) -> ApiResult<()> {
    match fields.keys().next() {
        Some(unknown) => Err(ApiError::field(unknown, "unknown field")),
        None => Ok(()),
    }
}

fn conflict(detail: &'static str) -> ApiError {
    ApiError::new(crate::http::ErrorCode::Conflict, detail)
}

/// Removes all accounts of an organization that goes.
pub(super) async fn remove_all(
    administrator: &Administrator,
    state: &AppState,
    org: &OrgId,
) -> ApiResult<()> {
    for entry in state.apply.catalog.list(EntryKind::User, Some(org)).await? {
        state
            .apply
            .catalog
            .remove(EntryKind::User, org, entry.id())
            .await?;
        record_entry(
            administrator,
            state,
            AuditAction::Delete,
            Some(&entry),
            None,
        )
        .await;
    }
    Ok(())
}
