//! HTTP in, text out: the public and the administrative API.
//!
//! Reading order: `router` is the list of routes; a request meets `observe` (its id, log line and
//! metrics), `cors` (may a page read it), `credential` and `caller` (who), `limits` (how often), `reachable` (may they) and then its file below `routes`. A chat message becomes a job in
//! `turn`; its reply comes back through `reply`. `admin` is what operators configure with, `openapi` what
//! clients are told. `visitor` gives pages their tokens. `accounts` is how people sign in,
//! `audit` what they did. `server` is the accept loop.

mod audit;
mod auth;
mod chat;
mod http;
mod jobs;
mod limits;
mod metrics;
mod openapi;
mod reply;
mod routes;
mod server;
mod state;

pub mod accounts;
pub mod admin;
pub mod config;

#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(test)]
mod testing;

pub use self::{config::IngressConfig, server::Ingress};
