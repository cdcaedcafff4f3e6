//! The admin API: organizations and their resources, users, conversations, analytics and the audit
//! log.
//!
//! Start with `routes`. `authorization` admits callers; `bodies`, `validation` and `errors` check
//! requests; `responses` and `pages` are the results; `entries` finds what is stored; `operations`
//! and `api_document` describe all of it. `document`, `document_plan` and `apply` plan and write
//! whole documents, of which `mistakes` finds all faults; `resources` and `edits` write single
//! resources; `planner` resolves their references. `playground` runs drafts before they are saved.

pub mod apply;
pub mod document;

mod account_operations;
mod analytics;
mod announcements;
mod api_document;
mod applied_keys;
mod audit_entries;
mod audit_log;
mod authorization;
mod bodies;
mod bounds;
mod conversations;
mod csv;
mod document_plan;
mod edits;
mod entries;
mod errors;
mod files;
mod mistakes;
mod operations;
mod pages;
mod planner;
mod playground;
mod playground_requests;
mod preconditions;
mod product_items;
mod products;
mod provider_test;
mod removals;
mod resources;
mod responses;
mod routes;
mod themes;
mod unknown_fields;
mod users;
mod validation;
mod widget_pages;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod audit_log_tests;
#[cfg(test)]
mod playground_tests;
#[cfg(test)]
mod products_tests;
#[cfg(test)]
mod tests;

use axum::Router;

use crate::{accounts, auth::permissions, state::AppState};

/// Returns all routes below `/api/admin`, and the routes of accounts below `/api/dashboard`.
pub(crate) fn routes() -> Router<AppState> {
    accounts::routes()
        .merge(api_document::routes())
        .merge(routes::admin_routes().router)
}
