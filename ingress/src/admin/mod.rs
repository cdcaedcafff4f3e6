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
use switchboard_schemas::audit::AuditAction;

pub(crate) use self::routes::routes;
use self::{
    apply::{AppliedDocument, apply},
    audit_entries::WrittenEntry,
    authorization::{Admin, Installation},
    bodies::Body,
    document::Document,
    permissions::ManageOrganizations,
};
use crate::{auth::permissions, http::ApiResult};

/// Applies a document, which can name any organization.
async fn apply_document(
    admin: Admin<ManageOrganizations, Installation>,
    body: Body<Document>,
) -> ApiResult<Json<AppliedDocument>> {
    let document = Document::from_json(body.fields(&admin.state).await?.into())?;
    let applied = apply(&admin.state.apply, document).await?;
    for WrittenEntry { before, after } in &applied.written {
        let is_new = before.is_none();
        let action = if is_new {
            AuditAction::Create
        } else {
            AuditAction::Update
        };
        admin
            .record_entry(action, before.as_ref(), Some(after))
            .await;
    }
    Ok(Json(applied))
}
