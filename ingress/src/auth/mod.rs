//! Authentication and authorization: API keys, visitor tokens, agents, teams and the permissions of
//! people.

pub(crate) mod authorized_agent;
pub(crate) mod authorized_team;
pub(crate) mod caller;
pub(crate) mod credential;
pub(crate) mod id_hints;
pub(crate) mod key_headers;
pub(crate) mod permissions;
pub(crate) mod visitor;
