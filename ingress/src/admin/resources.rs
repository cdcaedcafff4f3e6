//! Organizations, agents, teams, providers and keys as resources: list, create, read, replace,
//! patch and delete.

pub(super) mod agents;
pub(super) mod handlers;
pub(super) mod key_handlers;
pub(super) mod keys;
pub(super) mod organization_handlers;
pub(super) mod organizations;
pub(super) mod providers;
pub(super) mod references;
pub(super) mod resource;
pub(super) mod teams;
