//! The HTTP side of Switchboard: the public API, the admin API and the dashboard.
//!
//! Start with `server::router`, the table of routes. A request passes the layers in `http`
//! (request id, metrics, CORS, security headers), then `auth` (API key or visitor token, scope,
//! agent or team) with `limits`, and then its handler in `routes`. A chat message runs through
//! `chat::pipeline`, its job is published by `jobs`, and its reply comes back through `reply`.
//! `admin` is the API of operators, `accounts` the sign-in of dashboard users, `audit` the log
//! of their changes, and `openapi` the documentation of the public routes. `state` holds what
//! all handlers share.

mod audit;
mod auth;
mod chat;
mod files;
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
pub mod ceilings;
pub mod config;

#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(test)]
mod testing;

pub use self::{
    config::IngressConfig,
    server::Ingress,
    state::{AddressCheck, AddressUsage, ProviderTest},
};
