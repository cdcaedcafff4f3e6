//! The admin API: organizations and their resources, users, conversations, analytics and the audit log.
//!
//! Start with `routes`. `authorization` admits callers; `bodies`, `validation` and `errors` check requests; `responses` and
//! `pages` are the results; `operations` and `api_document` describe all of it. `document` and `apply` write whole documents,
//! `resources` and `edits` single resources. `playground` runs drafts before they are saved.

pub mod apply;
pub mod document;

mod analytics;
mod announcements;
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
mod playground;
mod playground_requests;
mod preconditions;
mod product_items;
mod products;
mod resources;
mod responses;
mod routes;
mod themes;
mod unknown_fields;
mod users;
mod validation;

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

use axum::Json;
use switchboard_schemas::audit::AuditAction;

pub(crate) use self::routes::routes;
use self::{
    apply::{AppliedDocument, apply},
    audit_entries::WrittenEntry,
    authorization::{Admin, InstallationSubject},
    bodies::JsonBody,
    document::ApplyDocument,
    permissions::ManageOrganizations,
};
use crate::{auth::permissions, http::ApiResult};

/// Applies a document, which can name any organization.
async fn apply_document(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    body: JsonBody<ApplyDocument>,
) -> ApiResult<Json<AppliedDocument>> {
    let document = ApplyDocument::from_json(body.fields(&admin.state).await?.into())?;
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
