//! The outside world: traits, each with an embedded and a production twin that keep the same contract.
//!
//! Reading order: [`config`] says which twin; [`bus`] carries jobs and events; [`relay`] carries a reply to the
//! connection that waits; [`store`] keeps conversations, and [`analytics`] counts them; [`catalog`] keeps what organizations configure; [`products`]
//! keeps what their agents may show; [`limiter`] counts requests; [`accounts`] keeps who is signed in and what they
//! changed. [`vault`] seals what must not lie in clear. Nothing above this crate knows which twin runs.

#[cfg(test)]
#[macro_use]
mod conformance_tests;

pub mod accounts;
pub mod analytics;
pub mod bus;
pub mod catalog;
pub mod config;
pub mod error;
mod json;
pub mod limiter;
pub mod products;
mod redis_link;
pub mod relay;
pub mod scylla_link;
mod sqlite;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod vault;

use std::sync::Arc;

/// The outside world, opened.
#[derive(Clone)]
pub struct Backends {
    /// Jobs and events.
    pub bus: Arc<dyn bus::MessageBus>,
    /// Replies on their way.
    pub relay: Arc<dyn relay::Relay>,
    /// Conversations.
    pub store: Arc<dyn store::ConversationStore>,
    /// What is counted of conversations.
    pub analytics: Arc<dyn analytics::AnalyticsStore>,
    /// Configuration.
    pub catalog: Arc<dyn catalog::CatalogStore>,
    /// What agents may show.
    pub products: Arc<dyn products::ProductStore>,
    /// Request budgets.
    pub limiter: Arc<dyn limiter::RateLimiter>,
    /// Sessions and the audit log.
    pub accounts: Arc<dyn accounts::AccountStore>,
}
