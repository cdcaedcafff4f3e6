//! HTTP in, text out: the public and the administrative API.
//!
//! Reading order: `router` is the list of routes; a request meets `observe` (its id, log line and
//! metrics), `cors` (may a page read it), `credential` and `caller` (who), `limits` (how often), `reachable` (may they) and then its file below `routes`. A chat message becomes a job in
//! `turn`; its reply comes back through `reply`. `admin` is what operators configure with, `openapi` what
//! clients are told. `visitor` gives pages their tokens. `accounts` is how people sign in,
//! `audit` what they did. `server` is the accept loop.

mod router;
mod state;

mod cors;
mod observe;
mod security_headers;
mod trace_context;

mod error;
mod problem;

mod caller;
mod client_address;
mod credential;
mod key_headers;
mod key_uses;
mod limits;
mod origin;
mod query;
mod reachable;
mod reachable_team;
mod visitor;

mod body;
mod fields;
mod first;
mod turn;

mod accept;
mod conversation_job;
mod idempotency;
mod publish;
mod reply;

mod messages;

mod openapi;
mod routes;

pub mod accounts;
pub mod admin;
mod audit;
pub mod config;
mod connection_timer;
mod metrics;
mod server;
mod socket;

#[cfg(fuzzing)]
pub mod fuzzing;

pub use client_address::Network;
pub use config::IngressConfig;
pub use server::Ingress;

#[cfg(test)]
mod accept_tests;
#[cfg(test)]
mod account_tests;
#[cfg(test)]
mod admin_conversation_tests;
#[cfg(test)]
mod admin_tests;
#[cfg(test)]
mod analytics_tests;
#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod chat_tests;
#[cfg(test)]
mod conversation_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod products_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod trial_tests;
#[cfg(test)]
mod visitor_tests;
