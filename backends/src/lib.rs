//! The backends of Switchboard: traits for every external service, each with an embedded and a
//! production implementation that keep the same contract.
//!
//! Reading order: [`config`] selects the implementations. [`bus`] carries jobs and events,
//! [`relay`] carries replies to waiting connections, [`store`] stores conversations and
//! [`analytics`] counts them. [`catalog`] stores the configuration of organizations, [`products`]
//! the products of their agents. [`limiter`] enforces rate limits, [`accounts`] stores sessions and
//! the audit log, [`files`] stores what visitors send with their messages, [`organization_eraser`]
//! erases an organization from all of them, and [`vault`] encrypts secrets. No crate above this one
//! knows which implementation runs.

#[cfg(test)]
#[macro_use]
mod conformance_tests;

pub mod accounts;
pub mod analytics;
pub mod bus;
pub mod catalog;
pub mod config;
mod error;
pub mod files;
mod json;
pub mod limiter;
pub mod organization_eraser;
pub mod products;
mod redis_link;
pub mod relay;
pub mod scylla_link;
mod sqlite;
mod sqlite_residue;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod vault;

pub use self::error::StoreError;

use std::sync::Arc;

/// All backends of an installation.
#[derive(Clone)]
pub struct Backends {
    /// Topics with jobs and events.
    pub bus: Arc<dyn bus::MessageBus>,
    /// Claims, reply logs and other short-lived state of replies.
    pub relay: Arc<dyn relay::Relay>,
    /// Conversations and their messages.
    pub store: Arc<dyn store::ConversationStore>,
    /// Facts and daily totals of conversations.
    pub analytics: Arc<dyn analytics::AnalyticsStore>,
    /// Configuration of organizations, agents and teams.
    pub catalog: Arc<dyn catalog::CatalogStore>,
    /// Products of the agents.
    pub products: Arc<dyn products::ProductStore>,
    /// Rate limits of keys, visitors and addresses.
    pub limiter: Arc<dyn limiter::RateLimiter>,
    /// Sessions and the audit log.
    pub accounts: Arc<dyn accounts::AccountActivityStore>,
    /// Files of messages.
    pub files: Arc<files::FileStore>,
    /// Erasure of all rows of an organization.
    pub eraser: Arc<dyn organization_eraser::OrganizationEraser>,
}
