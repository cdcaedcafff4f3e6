//! Authentication and authorization of public requests: API keys, visitor tokens, agents and teams.

pub(crate) mod authorized_agent;
pub(crate) mod authorized_team;
pub(crate) mod caller;
pub(crate) mod credential;
pub(crate) mod key_headers;
pub(crate) mod visitor;
