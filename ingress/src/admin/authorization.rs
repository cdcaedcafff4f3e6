//! Authorization of the admin API: the caller's identity, and the [`Admin`] extractor that every
//! handler takes.

use std::{collections::HashMap, marker::PhantomData};

use axum::extract::{FromRequestParts, Path};
use http::{header, request::Parts};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::{
    agent::Agent,
    audit::{AuditAction, AuditActor, FieldChange},
    ids::{OrgId, RequestId},
    organization::Organization,
    user::User,
};

use super::{
    entries::{find, not_found},
    permissions::Permission,
    planner::ChangeAuthor,
};
use crate::{
    accounts::{SignedIn, has_session_cookie},
    audit::{AuditChange, AuditTrail},
    auth::key_headers::bearer_token,
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress},
    state::AppState,
};

pub(crate) struct Administrator {
    identity: CallerIdentity,
    trail: AuditTrail,
}

enum CallerIdentity {
    /// The holder of the admin token, who can access every organization.
    Installation,
    /// A signed-in user, who can access their own organization within their role.
    Person(Box<User>),
}

/// Proof that the caller has permission `P` on the subject `S` of the path.
///
/// The first argument of every handler; the router of the admin API accepts no other handlers.
pub(crate) struct Admin<P, S = Organization> {
    pub(super) state: AppState,
    pub(super) administrator: Administrator,
    /// The resource that the permission was checked for.
    pub(super) subject: S,
    permission: PhantomData<P>,
}

/// The resource that a permission is checked for.
pub(crate) trait PermissionSubject: Sized + Send + Sync + 'static {
    /// `true` if the path names the subject, which may then not exist.
    const CAN_BE_MISSING: bool = true;

    /// Checks permission `P` and loads the subject inside the caller's tenant.
    ///
    /// # Errors
    /// 404 for a missing resource or one of another organization, 403 if the role does not suffice.
    fn load<P: Permission>(
        administrator: &Administrator,
        state: &AppState,
        path: &PathIds,
    ) -> impl Future<Output = ApiResult<Self>> + Send;
}

/// The whole installation, which only the admin token administers.
pub(crate) struct InstallationSubject;

/// The organizations in which the caller has the permission.
pub(crate) struct PermittedOrganizations {
    /// The only one of them; `None` if the permission holds in all.
    only: Option<OrgId>,
}

/// The ids in a path, by parameter name.
pub(crate) struct PathIds(HashMap<String, String>);

impl PathIds {
    /// Returns the id of this name, or an empty text.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn organization(&self) -> ApiResult<OrgId> {
        let id = self.get("org");
        id.parse().map_err(|_| not_found("organization", id))
    }
}

impl Administrator {
    /// Checks permission `P` in an organization and adds the organization to the request's log
    /// line.
    ///
    /// # Errors
    /// 404 for another organization than the caller's, 403 if the role does not suffice.
    pub(super) fn authorize<P: Permission>(&self, org: &OrgId) -> ApiResult<()> {
        tracing::Span::current().record("org.id", org.as_str());
        match &self.identity {
            CallerIdentity::Installation => Ok(()),
            // The response must not reveal that another organization exists.
            CallerIdentity::Person(user) if user.org_id != *org => {
                Err(not_found("organization", org.as_str()))
            }
            CallerIdentity::Person(user) if P::is_granted_to(user.role) => Ok(()),
            CallerIdentity::Person(_) => Err(insufficient_role()),
        }
    }

    fn authorize_installation(&self) -> ApiResult<()> {
        match self.identity {
            CallerIdentity::Installation => Ok(()),
            CallerIdentity::Person(_) => Err(insufficient_role()),
        }
    }

    /// Returns the subject of the caller's rate limits.
    pub(super) fn rate_limit_subject(&self) -> &str {
        match &self.identity {
            CallerIdentity::Installation => "token",
            CallerIdentity::Person(user) => user.id.as_str(),
        }
    }

    /// Returns whether the caller holds the admin token.
    pub(super) const fn is_installation(&self) -> bool {
        matches!(self.identity, CallerIdentity::Installation)
    }

    /// Returns the caller as the author of a change.
    pub(super) const fn author(&self) -> ChangeAuthor {
        match self.identity {
            CallerIdentity::Installation => ChangeAuthor::Operator,
            CallerIdentity::Person(_) => ChangeAuthor::Member,
        }
    }

    /// Returns the caller in the form of the audit log.
    pub(super) fn actor(&self) -> AuditActor {
        match &self.identity {
            CallerIdentity::Installation => AuditActor::Token,
            CallerIdentity::Person(user) => AuditActor::User {
                id: user.id.clone(),
                email: user.email.clone(),
            },
        }
    }

    /// Returns the id of the request.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        self.trail.request_id.clone()
    }

    /// Records a change by the caller in the audit log.
    pub(super) async fn record(&self, state: &AppState, change: AuditChange<'_>) {
        self.trail.record(state, self.actor(), change).await;
    }
}

impl<P> Admin<P> {
    /// Returns whether the caller also has another permission in the organization.
    pub(super) fn may<Q: Permission>(&self) -> bool {
        match &self.administrator.identity {
            CallerIdentity::Installation => true,
            CallerIdentity::Person(user) => Q::is_granted_to(user.role),
        }
    }

    pub(super) const fn org(&self) -> &OrgId {
        &self.subject.id
    }

    /// Records a change in the audit log of the organization; `subject` is the kind and the id of
    /// the changed resource.
    pub(super) async fn record(
        &self,
        subject: (&str, &str),
        action: AuditAction,
        fields: Vec<FieldChange>,
    ) {
        let change = AuditChange {
            org: self.org(),
            kind: subject.0,
            subject: subject.1,
            action,
            fields,
        };
        self.administrator.record(&self.state, change).await;
    }
}

impl<P: Permission, S: PermissionSubject> FromRequestParts<AppState> for Admin<P, S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let administrator = Administrator::from_request_parts(parts, state).await?;
        let path = PathIds::from_request_parts(parts, state).await?;
        let subject = S::load::<P>(&administrator, state, &path).await?;
        Ok(Self {
            state: state.clone(),
            administrator,
            subject,
            permission: PhantomData,
        })
    }
}

impl FromRequestParts<AppState> for PathIds {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let ids = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let Path(ids) = ids.map_err(|rejection| {
            ApiError::uncoded(rejection.status(), "the request cannot be served")
        })?;
        Ok(Self(ids))
    }
}

impl PermissionSubject for InstallationSubject {
    const CAN_BE_MISSING: bool = false;

    async fn load<P: Permission>(
        administrator: &Administrator,
        _: &AppState,
        _: &PathIds,
    ) -> ApiResult<Self> {
        administrator.authorize_installation().map(|()| Self)
    }
}

impl PermissionSubject for PermittedOrganizations {
    const CAN_BE_MISSING: bool = false;

    async fn load<P: Permission>(
        administrator: &Administrator,
        _: &AppState,
        _: &PathIds,
    ) -> ApiResult<Self> {
        Self::of_caller::<P>(administrator)
    }
}

impl PermittedOrganizations {
    fn of_caller<P: Permission>(administrator: &Administrator) -> ApiResult<Self> {
        let only = match &administrator.identity {
            CallerIdentity::Installation => None,
            CallerIdentity::Person(user) => {
                administrator.authorize::<P>(&user.org_id)?;
                Some(user.org_id.clone())
            }
        };
        Ok(Self { only })
    }

    /// Returns the only organization in which the caller has the permission; `None` for all.
    pub(super) const fn only(&self) -> Option<&OrgId> {
        self.only.as_ref()
    }
}

impl PermissionSubject for Organization {
    async fn load<P: Permission>(
        administrator: &Administrator,
        state: &AppState,
        path: &PathIds,
    ) -> ApiResult<Self> {
        if P::LEAST_ROLE.is_none() {
            administrator.authorize_installation()?;
        }
        let id = path.organization()?;
        administrator.authorize::<P>(&id)?;
        let catalog = &state.apply.catalog;
        match catalog.get(EntryKind::Organization, id.as_str()).await? {
            Some(CatalogEntry::Organization(organization)) => Ok(organization),
            _ => Err(not_found("organization", id.as_str())),
        }
    }
}

impl PermissionSubject for Agent {
    async fn load<P: Permission>(
        administrator: &Administrator,
        state: &AppState,
        path: &PathIds,
    ) -> ApiResult<Self> {
        let organization = Organization::load::<P>(administrator, state, path).await?;
        let found = find(state, &organization.id, EntryKind::Agent, path.get("id")).await?;
        match found.entry {
            CatalogEntry::Agent(agent) => Ok(*agent),
            _ => Err(not_found(EntryKind::Agent.name(), path.get("id"))),
        }
    }
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let trail = AuditTrail::from_parts(parts, state);
        // The header takes precedence, because a browser adds the cookie by itself.
        let has_token = !presented_token(parts).is_empty();
        let identity = if !has_token && has_session_cookie(&parts.headers) {
            let SignedIn { account, .. } = SignedIn::from_request_parts(parts, state).await?;
            CallerIdentity::Person(Box::new(account.user))
        } else {
            check_token(parts, state).await?;
            CallerIdentity::Installation
        };
        Ok(Self { identity, trail })
    }
}

fn insufficient_role() -> ApiError {
    ApiError::new(
        ErrorCode::InsufficientScope,
        "the role of this account does not include this",
    )
}

/// Returns the token of the `Authorization` header, or nothing.
fn presented_token(parts: &Parts) -> &[u8] {
    let header = parts.headers.get(header::AUTHORIZATION);
    header.and_then(bearer_token).unwrap_or_default()
}

async fn check_token(parts: &mut Parts, state: &AppState) -> ApiResult<()> {
    let token = presented_token(parts);
    let expected = state.admin_token.as_ref();
    // An empty setting counts as no token: it must not open the installation.
    let expected = expected
        .map(|token| token.expose_secret().as_bytes())
        .filter(|token| !token.is_empty());
    // Hashes are compared, because the time of a comparison reveals the length of its texts.
    let hash = |text| state.secret.mac("admin-token", text);
    if expected.is_some_and(|expected| hash(expected).ct_eq(&hash(token)).into()) {
        return Ok(());
    }
    let (is_missing, is_set) = (token.is_empty(), expected.is_some());
    let Ok(RateLimitAddress(address)) = RateLimitAddress::from_request_parts(parts, state).await;
    let subject = address.map(|address| format!("admin:{address}"));
    let failures = &state.limits.failed_authentications;
    failures.record_failure(subject.as_deref()).await?;
    let (code, detail) = match (is_missing, is_set) {
        (true, true) => (ErrorCode::MissingApiKey, "the admin token is needed"),
        (true, false) => (
            ErrorCode::MissingApiKey,
            "the admin token is needed, and this service has none; set SWITCHBOARD__ADMIN__TOKEN where it runs",
        ),
        (false, true) => (ErrorCode::InvalidApiKey, "this is not the admin token"),
        (false, false) => (
            ErrorCode::InvalidApiKey,
            "this service has no admin token; set SWITCHBOARD__ADMIN__TOKEN where it runs",
        ),
    };
    Err(ApiError::new(code, detail))
}

/// The id of the resource in a path; the id of the organization if the path names nothing below it.
pub(super) struct ResourceId(pub(super) String);

impl FromRequestParts<AppState> for ResourceId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let path = PathIds::from_request_parts(parts, state).await?;
        let id = Some(path.get("id")).filter(|id| !id.is_empty());
        Ok(Self(id.unwrap_or(path.get("org")).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::user::UserRole;

    use super::*;
    use crate::{
        accounts::link::new_account,
        admin::permissions::{
            ActOnConversations, Configure, ManageKeys, ManageOrganizations, ManageUsers, ReadAudit,
            ReadConfiguration, ReadConversations, ReadLeads, rights_of,
        },
        testing::{org_id, secret},
    };

    fn person(role: UserRole) -> Administrator {
        let email = "ada@example.org".parse().unwrap();
        let account = new_account(&secret(), &org_id(), email, "Ada".into(), role);
        Administrator {
            identity: CallerIdentity::Person(Box::new(account.user)),
            trail: AuditTrail::default(),
        }
    }

    fn check_permission<P: Permission>(granted: [bool; 4]) {
        let other = OrgId::derive(&secret(), "other");
        for (role, is_granted) in UserRole::ALL.into_iter().zip(granted) {
            let (person, name) = (person(role), P::NAME);
            assert_eq!(
                person.authorize::<P>(&org_id()).is_ok(),
                is_granted,
                "{role:?} {name}"
            );
            assert_eq!(
                rights_of(role).contains(&name),
                is_granted,
                "{role:?} {name}"
            );
            assert!(person.authorize_installation().is_err(), "{role:?}");
            let permitted = PermittedOrganizations::of_caller::<P>(&person);
            let only = permitted.as_ref().map(PermittedOrganizations::only);
            let contains = |org: &OrgId| only.is_ok_and(|only| only.is_none_or(|only| only == org));
            assert_eq!(contains(&org_id()), is_granted, "{role:?} {name}");
            assert!(!contains(&other), "{role:?} {name}");
            let refused = person.authorize::<P>(&other).unwrap_err();
            assert!(refused.is_not_found(), "{role:?} {name}");
        }
        let token = Administrator {
            identity: CallerIdentity::Installation,
            trail: AuditTrail::default(),
        };
        assert!(token.authorize::<P>(&other).is_ok() && token.authorize_installation().is_ok());
        let permitted = PermittedOrganizations::of_caller::<P>(&token);
        assert!(permitted.is_ok_and(|it| it.only().is_none()));
    }

    /// Written out, and not derived from the table that it tests.
    #[test]
    fn each_role_has_the_permissions_of_the_matrix() {
        // Viewer, operator, editor, owner.
        check_permission::<ReadConfiguration>([true, true, true, true]);
        check_permission::<ReadConversations>([true, true, true, true]);
        check_permission::<ReadLeads>([false, true, true, true]);
        check_permission::<ActOnConversations>([false, true, true, true]);
        check_permission::<Configure>([false, false, true, true]);
        check_permission::<ReadAudit>([false, false, true, true]);
        check_permission::<ManageKeys>([false, false, false, true]);
        check_permission::<ManageUsers>([false, false, false, true]);
        check_permission::<ManageOrganizations>([false, false, false, false]);
    }
}
