//! Who administers, and what they may do. Every handler asks the one type here, whatever proves who they are.

use axum::extract::FromRequestParts;
use http::{header, request::Parts};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;
use switchboard_schemas::{
    audit::AuditActor,
    ids::OrgId,
    user::{User, UserRole},
};

use super::things::not_found;
use crate::{
    accounts::{SignedIn, has_session_cookie},
    audit::{AuditChange, AuditTrail},
    auth::key_headers::bearer_token,
    http::{ApiError, ApiResult, ErrorCode, RateLimitAddress},
    state::AppState,
};

/// Proof that the request comes from an administrator.
pub(crate) struct Administrator {
    reach: Reach,
    trail: AuditTrail,
}

/// How far an administrator's rights go.
enum Reach {
    /// The installation's own token: every organization.
    Installation,
    /// A person who is signed in: their own organization, as far as their role goes.
    Person(Box<User>),
}

/// Whose things are touched.
#[derive(Clone, Copy)]
pub(crate) enum Ground<'a> {
    /// All organizations: what belongs to none of them alone.
    Installation,
    /// One organization.
    Organization(&'a OrgId),
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Read what is configured.
    ReadConfiguration,
    /// Make, change or remove agents, teams and providers, or rename the organization.
    Configure,
    /// Make, change or remove API keys.
    ManageKeys,
    /// Make or remove organizations.
    ManageOrganizations,
    /// Read what visitors and agents said.
    ReadConversations,
    /// Do something about a conversation, for instance export or delete it.
    ActOnConversations,
    /// Read, invite, change or remove people.
    ManageUsers,
    /// Read who changed what.
    ReadAudit,
}

/// The matrix of rights: the least role that may, each role may what those before it may; none: only the installation's
/// token. The names are what the dashboard is told.
const RIGHTS: [(Action, &str, Option<UserRole>); 8] = [
    (
        Action::ReadConfiguration,
        "readConfiguration",
        Some(UserRole::Viewer),
    ),
    (
        Action::ReadConversations,
        "readConversations",
        Some(UserRole::Viewer),
    ),
    (
        Action::ActOnConversations,
        "actOnConversations",
        Some(UserRole::Operator),
    ),
    (Action::Configure, "configure", Some(UserRole::Editor)),
    (Action::ReadAudit, "readAudit", Some(UserRole::Editor)),
    (Action::ManageKeys, "manageKeys", Some(UserRole::Owner)),
    (Action::ManageUsers, "manageUsers", Some(UserRole::Owner)),
    (Action::ManageOrganizations, "manageOrganizations", None),
];

/// The names of what a role may do in its organization.
pub(crate) fn rights_of(role: UserRole) -> Vec<&'static str> {
    let rights = RIGHTS
        .iter()
        .filter(|(_, _, least)| least.is_some_and(|least| role >= least));
    rights.map(|(_, name, _)| *name).collect()
}

fn role_may(role: UserRole, action: Action) -> bool {
    let right = RIGHTS.iter().find(|(listed, _, _)| *listed == action);
    right
        .and_then(|(_, _, least)| *least)
        .is_some_and(|least| role >= least)
}

impl Administrator {
    /// Whether they may; an error that says no otherwise. The request's log line names the organization.
    pub(crate) fn may(&self, ground: Ground<'_>, action: Action) -> ApiResult<()> {
        if let Ground::Organization(org) = ground {
            tracing::Span::current().record("org.id", org.as_str());
        }
        match (&self.reach, ground) {
            (Reach::Installation, _) => Ok(()),
            // Another organization's things are as absent as what does not exist.
            (Reach::Person(user), Ground::Organization(org)) if user.org_id != *org => {
                Err(not_found("organization"))
            }
            (Reach::Person(user), Ground::Organization(_)) if role_may(user.role, action) => Ok(()),
            (Reach::Person(_), _) => Err(ApiError::new(
                ErrorCode::InsufficientScope,
                "the role of this account does not include this",
            )),
        }
    }

    /// The same for one organization.
    pub(crate) fn may_in(&self, org: &OrgId, action: Action) -> ApiResult<()> {
        self.may(Ground::Organization(org), action)
    }

    /// Under which name their requests are counted where these are limited.
    pub(crate) fn counted_as(&self) -> &str {
        match &self.reach {
            Reach::Installation => "token",
            Reach::Person(user) => user.id.as_str(),
        }
    }

    /// Whether they have the installation's own token.
    pub(crate) const fn is_installation(&self) -> bool {
        matches!(self.reach, Reach::Installation)
    }

    /// Who they are, as the audit log names them.
    pub(crate) fn actor(&self) -> AuditActor {
        match &self.reach {
            Reach::Installation => AuditActor::Token,
            Reach::Person(user) => AuditActor::User {
                id: user.id.clone(),
                email: user.email.clone(),
            },
        }
    }

    /// Writes into the audit log what they did.
    pub(crate) async fn record(&self, state: &AppState, change: AuditChange<'_>) {
        self.trail.record(state, self.actor(), change).await;
    }
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let trail = AuditTrail::of(parts, state);
        // A header wins: whoever sends one means it, and a browser adds the cookie by itself.
        let bearer = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(bearer_token)
            .unwrap_or_default();
        if bearer.is_empty() && has_session_cookie(&parts.headers) {
            let SignedIn { account, .. } = SignedIn::from_request_parts(parts, state).await?;
            return Ok(Self {
                reach: Reach::Person(Box::new(account.user)),
                trail,
            });
        }
        check_token(parts, state).await?;
        Ok(Self {
            reach: Reach::Installation,
            trail,
        })
    }
}

async fn check_token(parts: &mut Parts, state: &AppState) -> ApiResult<()> {
    let Ok(RateLimitAddress(address)) = RateLimitAddress::from_request_parts(parts, state).await;
    let guesser = address.map(|address| format!("admin:{address}"));
    state
        .limits
        .failed_authentications
        .check(guesser.as_deref())?;
    let token = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(bearer_token)
        .unwrap_or_default();
    let expected = state
        .admin_token
        .as_ref()
        .map(|token| token.expose_secret().as_bytes());
    // An empty token is no token: it must not open an installation that set none.
    match expected {
        Some(expected) if !expected.is_empty() && bool::from(expected.ct_eq(token)) => Ok(()),
        _ => {
            state
                .limits
                .failed_authentications
                .miss(guesser.as_deref())
                .await?;
            Err(refusal(
                token,
                expected.is_some_and(|expected| !expected.is_empty()),
            ))
        }
    }
}

fn refusal(token: &[u8], one_is_set: bool) -> ApiError {
    match (token.is_empty(), one_is_set) {
        (true, _) => ApiError::new(
            ErrorCode::MissingApiKey,
            "the administrator's token is needed",
        ),
        (false, true) => ApiError::new(
            ErrorCode::InvalidApiKey,
            "this is not the administrator's token",
        ),
        (false, false) => {
            let detail = "this service has no administrator's token; set SWITCHBOARD__ADMIN__TOKEN where it runs";
            ApiError::new(ErrorCode::InvalidApiKey, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        accounts::link::new_account,
        testing::{org_id, secret},
    };

    fn person(role: UserRole) -> Administrator {
        let account = new_account(
            &secret(),
            &org_id(),
            "ada@example.org".parse().unwrap(),
            "Ada".into(),
            role,
        );
        Administrator {
            reach: Reach::Person(Box::new(account.user)),
            trail: AuditTrail::default(),
        }
    }

    /// Written out, and not read from the table that it proves.
    #[test]
    fn each_role_may_what_the_matrix_says_and_nothing_else() {
        use Action::{
            ActOnConversations, Configure, ManageKeys, ManageOrganizations, ManageUsers, ReadAudit,
            ReadConfiguration, ReadConversations,
        };
        for (action, viewer, operator, editor, owner) in [
            (ReadConfiguration, true, true, true, true),
            (ReadConversations, true, true, true, true),
            (ActOnConversations, false, true, true, true),
            (Configure, false, false, true, true),
            (ReadAudit, false, false, true, true),
            (ManageKeys, false, false, false, true),
            (ManageUsers, false, false, false, true),
            (ManageOrganizations, false, false, false, false),
        ] {
            for (role, may) in UserRole::ALL
                .into_iter()
                .zip([viewer, operator, editor, owner])
            {
                assert_eq!(
                    person(role).may_in(&org_id(), action).is_ok(),
                    may,
                    "{role:?} {action:?}"
                );
                assert!(
                    person(role).may(Ground::Installation, action).is_err(),
                    "{role:?} {action:?}"
                );
                let other = OrgId::derive(&secret(), "other");
                let refused = person(role).may_in(&other, action).unwrap_err();
                assert!(refused.is_not_found(), "{role:?} {action:?}");
                let name = RIGHTS
                    .iter()
                    .find(|(listed, _, _)| *listed == action)
                    .unwrap()
                    .1;
                assert_eq!(rights_of(role).contains(&name), may, "{role:?} {action:?}");
            }
        }
        let token = Administrator {
            reach: Reach::Installation,
            trail: AuditTrail::default(),
        };
        assert!(
            RIGHTS
                .iter()
                .all(|(action, _, _)| token.may(Ground::Installation, *action).is_ok())
        );
    }
}
