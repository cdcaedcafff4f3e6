//! The outside world: traits, each with an embedded and a production twin that keep the same contract.
//!
//! Reading order: [`config`] says which twin; [`bus`] carries jobs and events; [`relay`] carries a reply to the
//! connection that waits; [`store`] keeps conversations, and [`figures`] counts them; [`catalog`] keeps what organizations configure; [`products`]
//! keeps what their agents may show; [`limiter`] counts requests; [`accounts`] keeps who is signed in and what they
//! changed. [`vault`] seals what must not lie in clear. Nothing above this crate knows which twin runs.

#[cfg(test)]
#[macro_use]
mod twin_claims;

pub mod accounts;
pub mod bus;
pub mod catalog;
pub mod config;
pub mod figures;
pub mod limiter;
pub mod products;
mod redis_link;
pub mod relay;
pub mod scylla_link;
mod sqlite;
pub mod store;
pub mod vault;

use std::sync::Arc;

/// The outside world, opened.
#[derive(Clone)]
pub struct Backends {
    /// Jobs and events.
    pub bus: Arc<dyn bus::Bus>,
    /// Replies on their way.
    pub relay: Arc<dyn relay::Relay>,
    /// Conversations.
    pub store: Arc<dyn store::Store>,
    /// What is counted of conversations.
    pub figures: Arc<dyn figures::Figures>,
    /// Configuration.
    pub catalog: Arc<dyn catalog::Catalog>,
    /// What agents may show.
    pub products: Arc<dyn products::Products>,
    /// Request budgets.
    pub limiter: Arc<dyn limiter::Limiter>,
    /// Sessions and the audit log.
    pub accounts: Arc<dyn accounts::Accounts>,
}
