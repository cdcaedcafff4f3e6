//! Users of an organization. Only the response that creates a link for a user contains its text.

use std::time::Duration;

use axum::{Json, extract::Query};
use serde::{Deserialize, Serialize};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    audit::AuditAction,
    email::EmailAddress,
    time::Timestamp,
    user::{LinkPurpose, UserAccount, UserRole, UserState},
};
use utoipa::ToSchema;

use super::{
    authorization::{Admin, ResourceId},
    bodies::{JsonBody, JsonObject, MergePatch, RequestBody, check_field, parse_checked},
    entries::{find, list_entries, other_kind, path_of},
    pages::{Page, PageQuery},
    permissions::ManageUsers,
    preconditions::VersionPrecondition,
    resources::resource::ResourceIdentity,
    responses::{JsonResponse, NoContent},
    validation::check_name,
};
use crate::{
    accounts::{
        AccountEdit, change_account, check_last_owner, create_account,
        link::{LinkText, new_account},
    },
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

const ROLE_RULE: &str = "must be owner, editor, operator or viewer";
const UNKNOWN_FIELD: &str = "unknown field";

/// The body of an invitation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewUser {
    /// The e-mail address with which the user signs in.
    email: EmailAddress,
    /// The role of the user.
    role: UserRole,
    /// The name that other users see; the address by default.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
}

/// The fields of a user that can be changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UserFields {
    /// The name that other users see.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// The role of the user.
    #[serde(default)]
    role: Option<UserRole>,
    /// The state of the account: `active` or `disabled`.
    #[serde(default)]
    state: Option<UserState>,
}

/// The body of a request for a link, an empty object.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkRequest {}

/// A user in a response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserView {
    #[serde(flatten)]
    identity: ResourceIdentity,
    /// The e-mail address with which the user signs in.
    email: EmailAddress,
    /// The name that other users see.
    name: String,
    /// The role of the user.
    role: UserRole,
    /// The state of the account; only active users can sign in.
    state: UserState,
    /// The time of the invitation.
    created_at: Timestamp,
    /// `true` if the user has set a password.
    has_password: bool,
    /// The expiry of the latest link; `null` without one.
    #[schema(required)]
    link_expires_at: Option<Timestamp>,
}

/// A user and a new link for them.
#[derive(Serialize, ToSchema)]
pub(super) struct LinkedUserView {
    #[serde(flatten)]
    user: UserView,
    /// The link.
    link: LinkView,
}

/// A link with which a user can sign in once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkView {
    /// The URL to open.
    url: String,
    /// The purpose of the link.
    purpose: LinkPurpose,
    /// The time from which it is rejected.
    expires_at: Timestamp,
}

/// Lists a page of the users, by e-mail address.
pub(super) async fn list(
    admin: Admin<ManageUsers>,
    Query(page): Query<PageQuery>,
) -> ApiResult<Json<Page<UserView>>> {
    let show = |entry: &_| UserView::new(entry, None);
    list_entries(
        &admin.state,
        EntryKind::User,
        Some(admin.org()),
        &page,
        show,
    )
    .await
}

pub(super) async fn read(
    admin: Admin<ManageUsers>,
    ResourceId(id): ResourceId,
) -> ApiResult<JsonResponse<200, UserView>> {
    show(&admin, &id).await
}

/// Invites a user.
pub(super) async fn create(
    admin: Admin<ManageUsers>,
    body: JsonBody<NewUser>,
) -> ApiResult<JsonResponse<201, LinkedUserView>> {
    let state = &admin.state;
    let NewUser { email, role, name } = body.parse(state).await?;
    let name = name.unwrap_or_else(|| email.as_str().to_owned());
    let mut account = new_account(&state.secret, admin.org(), email, name, role);
    let link = give_link(state, &mut account, LinkPurpose::Invitation);
    create_account(state, account.clone()).await?;
    let entry = CatalogEntry::User(Box::new(account));
    admin
        .record_entry(AuditAction::Create, None, Some(&entry))
        .await;
    let response = show_linked(&admin, entry.id(), link).await?;
    Ok(response.location(path_of(&entry, "users")))
}

/// Changes the name, the role or the state of a user.
pub(super) async fn patch(
    admin: Admin<ManageUsers>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
    body: JsonBody<MergePatch<UserFields>>,
) -> ApiResult<JsonResponse<200, UserView>> {
    find(&admin.state, admin.org(), EntryKind::User, &id).await?;
    let (fields, precondition) = body.read_change(&admin.state, precondition).await?;
    let patch = UserFields::from_fields(fields)?;
    let edit = |account: UserAccount, version, others: &[UserAccount]| {
        precondition.check(version)?;
        let changed = patch.apply_to(account.clone())?;
        check_last_owner(&account, Some(&changed), others)?;
        Ok(Some(changed))
    };
    change(&admin, &id, AuditAction::Update, edit).await?;
    show(&admin, &id).await
}

/// Deletes a user and ends their sessions.
pub(super) async fn delete(
    admin: Admin<ManageUsers>,
    ResourceId(id): ResourceId,
    precondition: VersionPrecondition,
) -> ApiResult<NoContent> {
    let edit = |account: UserAccount, version, others: &[UserAccount]| {
        precondition.check(version)?;
        check_last_owner(&account, None, others)?;
        Ok(None)
    };
    change(&admin, &id, AuditAction::Delete, edit).await?;
    Ok(NoContent)
}

/// Creates a link for a user who was invited or has lost the password. An earlier link stops
/// working.
pub(super) async fn create_link(
    admin: Admin<ManageUsers>,
    ResourceId(id): ResourceId,
    body: JsonBody<LinkRequest>,
) -> ApiResult<JsonResponse<201, LinkedUserView>> {
    let state = &admin.state;
    find(state, admin.org(), EntryKind::User, &id).await?;
    let LinkRequest {} = body.parse(state).await?;
    let mut created = None;
    let edit = |mut account: UserAccount, _, _: &[UserAccount]| {
        let purpose = match account.user.state {
            UserState::Invited => LinkPurpose::Invitation,
            UserState::Active => LinkPurpose::Reset,
            UserState::Disabled => {
                let detail = "this account is disabled";
                return Err(ApiError::new(ErrorCode::Conflict, detail));
            }
        };
        created = Some(give_link(state, &mut account, purpose));
        Ok(Some(account))
    };
    change(&admin, &id, AuditAction::Link, edit).await?;
    let link = created.ok_or_else(|| ApiError::internal(&"no link was created"))?;
    show_linked(&admin, &id, link).await
}

/// Changes an account with `edit`, as [`change_account`] does, and records the change.
async fn change(
    admin: &Admin<ManageUsers>,
    id: &str,
    action: AuditAction,
    edit: impl FnMut(UserAccount, i64, &[UserAccount]) -> ApiResult<Option<UserAccount>>,
) -> ApiResult<()> {
    let target = AccountEdit {
        org: admin.org(),
        id,
        once: false,
    };
    let (before, after) = change_account(&admin.state, target, edit).await?;
    if after.as_ref() != Some(&before) {
        let before = CatalogEntry::User(Box::new(before));
        let after = after.map(|account| CatalogEntry::User(Box::new(account)));
        admin
            .record_entry(action, Some(&before), after.as_ref())
            .await;
    }
    Ok(())
}

impl RequestBody for NewUser {
    fn from_fields(mut fields: JsonObject) -> ApiResult<Self> {
        check_field::<EmailAddress>(&mut fields, "email", "must be an e-mail address")?
            .ok_or_else(|| ApiError::field("email", "is missing"))?;
        check_field::<UserRole>(&mut fields, "role", ROLE_RULE)?;
        check_name_field(&mut fields)?;
        parse_checked(fields, UNKNOWN_FIELD)
    }
}

impl RequestBody for UserFields {
    fn from_fields(mut fields: JsonObject) -> ApiResult<Self> {
        check_name_field(&mut fields)?;
        check_field::<UserRole>(&mut fields, "role", ROLE_RULE)?;
        check_field::<UserState>(&mut fields, "state", "must be active or disabled")?;
        parse_checked(fields, UNKNOWN_FIELD)
    }
}

impl RequestBody for LinkRequest {
    fn from_fields(fields: JsonObject) -> ApiResult<Self> {
        parse_checked(fields, UNKNOWN_FIELD)
    }
}

impl UserFields {
    fn apply_to(&self, mut account: UserAccount) -> ApiResult<UserAccount> {
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
            // A user without a password becomes active with the next link.
            (UserState::Disabled, Some(UserState::Active)) => {
                let has_password = account.password.is_some();
                account.user.state = if has_password {
                    UserState::Active
                } else {
                    UserState::Invited
                };
            }
            _ => {
                let rule = "becomes active only by the invitation";
                return Err(ApiError::field("state", rule));
            }
        }
        Ok(account)
    }
}

fn check_name_field(fields: &mut JsonObject) -> ApiResult<()> {
    let name: Option<String> = check_field(fields, "name", "must be a string")?;
    Ok(name.as_deref().map_or(Ok(()), check_name)?)
}

/// Replaces the link of an account.
fn give_link(state: &AppState, account: &mut UserAccount, purpose: LinkPurpose) -> LinkView {
    let lifetime_ms = match purpose {
        LinkPurpose::Invitation => state.config.invitation_lifetime_ms,
        LinkPurpose::Reset | LinkPurpose::SignIn => state.config.sign_in_link_lifetime_ms,
    };
    let expires_at = Timestamp::now().after(Duration::from_millis(lifetime_ms));
    let text = LinkText::issue_for(&state.secret, account, purpose, expires_at);
    LinkView {
        url: text.url(&state.config.dashboard_url),
        purpose,
        expires_at,
    }
}

async fn show(admin: &Admin<ManageUsers>, id: &str) -> ApiResult<JsonResponse<200, UserView>> {
    let found = find(&admin.state, admin.org(), EntryKind::User, id).await?;
    let user = UserView::new(&found.entry, Some(found.version))?;
    Ok(JsonResponse::new(user).version(found.version))
}

async fn show_linked(
    admin: &Admin<ManageUsers>,
    id: &str,
    link: LinkView,
) -> ApiResult<JsonResponse<201, LinkedUserView>> {
    let found = find(&admin.state, admin.org(), EntryKind::User, id).await?;
    let user = UserView::new(&found.entry, Some(found.version))?;
    Ok(JsonResponse::new(LinkedUserView { user, link }).version(found.version))
}

impl UserView {
    fn new(entry: &CatalogEntry, version: Option<i64>) -> ApiResult<Self> {
        let CatalogEntry::User(account) = entry else {
            return Err(other_kind(EntryKind::User));
        };
        let user = &account.user;
        Ok(Self {
            identity: ResourceIdentity::new(entry, version),
            email: user.email.clone(),
            name: user.name.clone(),
            role: user.role,
            state: user.state,
            created_at: user.created_at,
            has_password: account.password.is_some(),
            link_expires_at: account.link.as_ref().map(|link| link.expires_at),
        })
    }
}
