//! The admin API: organizations and their resources, people, conversations, analytics and the audit log.
//!
//! Start with `routes`. `authorization` and `permissions` admit callers; `bodies`, `validation` and `errors` check requests;
//! `answers` and `pages` are their results; `operations` and `api_document` describe all of it. `document` and `apply` write whole
//! documents, `resources` and `edits` single resources. `trials` run drafts before they are saved.

pub mod apply;
pub mod document;

mod analytics;
mod announcements;
mod answers;
mod api_document;
mod applied_keys;
mod audit_entries;
mod audit_log;
mod authorization;
mod bodies;
mod conversations;
mod csv;
mod edits;
mod errors;
mod operations;
mod pages;
mod preconditions;
mod product_items;
mod products;
mod resources;
mod routes;
mod themes;
mod trial_requests;
mod trials;
mod unknown_fields;
mod users;
mod validation;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod audit_log_tests;
#[cfg(test)]
mod products_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials_tests;

use axum::Json;

pub(crate) use self::routes::routes;
use self::{
    apply::{Applied, apply},
    audit_entries::record_written,
    authorization::{Admin, Installation},
    bodies::Body,
    document::Document,
    permissions::ManageOrganizations,
};
use crate::{auth::permissions, http::ApiResult};

/// Applies a document, which can name any organization.
async fn apply_document(
    Admin {
        state,
        administrator,
        ..
    }: Admin<ManageOrganizations, Installation>,
    body: Body<Document>,
) -> ApiResult<Json<Applied>> {
    let document = Document::from_json(body.fields(&state).await?.into())?;
    let applied = apply(&state.apply, document).await?;
    record_written(&administrator, &state, &applied.written).await;
    Ok(Json(applied))
}
