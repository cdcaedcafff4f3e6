//! The changes that a document would make, for `switchboard apply --dry-run`. Nothing is written.

use axum::Json;
use serde::Serialize;
use serde_json::json;
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_schemas::audit::{AuditAction, FieldChange};
use utoipa::ToSchema;

use super::{
    applied_keys::latest_key,
    apply::{PlannedDocument, parse_document},
    audit_entries::configured,
    authorization::{Admin, InstallationSubject},
    bodies::{JsonBody, JsonObject, fields_of},
    document::{ApplyDocument, OrganizationDocument},
    permissions::ManageOrganizations,
    resources::references::ResourceReferences,
};
use crate::{audit::differences_in_full, http::ApiResult, state::apply_context::ApplyContext};

/// The changes that a document would make.
#[derive(Serialize, ToSchema)]
pub(super) struct DocumentPlan {
    /// The changes, in the order in which they would be made.
    changes: Vec<PlannedChange>,
    /// The number of resources that the document names and that would stay as they are.
    unchanged: usize,
}

/// A change that a document would make to one resource.
#[derive(Serialize, ToSchema)]
struct PlannedChange {
    /// The slug of the organization.
    organization: String,
    /// The kind of the resource, for instance `agent`.
    kind: &'static str,
    /// Its slug, or the name of a key.
    name: String,
    /// `create` or `update`.
    action: AuditAction,
    /// The fields that would change. Secrets are named without their values.
    fields: Vec<FieldChange>,
}

/// Returns what applying a document would change.
pub(super) async fn plan_document(
    admin: Admin<ManageOrganizations, InstallationSubject>,
    body: JsonBody<ApplyDocument>,
) -> ApiResult<Json<DocumentPlan>> {
    let context = &admin.state.apply;
    let _write_lock = context.write_lock.lock().await;
    let PlannedDocument { document, entries } = parse_document(&admin.state, body).await?;
    let mut plan = DocumentPlan {
        changes: Vec::new(),
        unchanged: 0,
    };
    for (organization, entries) in document.organizations.iter().zip(&entries) {
        plan.add_organization(context, organization, entries)
            .await?;
    }
    Ok(Json(plan))
}

impl DocumentPlan {
    async fn add_organization(
        &mut self,
        context: &ApplyContext,
        document: &OrganizationDocument,
        entries: &[CatalogEntry],
    ) -> ApiResult<()> {
        let slug = &document.slug;
        let org = context.organization_id(slug).await?;
        let mut references = ResourceReferences::default();
        for kind in [EntryKind::Provider, EntryKind::Agent] {
            references.add_slugs(&context.catalog.list(kind, Some(&org)).await?);
        }
        references.add_slugs(entries);
        for after in entries {
            let before = context.catalog.get(after.kind(), after.id()).await?;
            if before.as_ref() == Some(after) {
                self.unchanged += 1;
                continue;
            }
            let before = before.map(|before| compared(&before, &references));
            let fields = (before, compared(after, &references));
            self.add(slug, after.kind(), after.label(), fields);
        }
        let stored = context.catalog.list(EntryKind::Key, Some(&org)).await?;
        for fields in &document.keys {
            let before = match latest_key(&stored, &fields.name) {
                Some((key, hash)) => {
                    let key = key.clone();
                    Some(configured(
                        &CatalogEntry::Key { key, hash },
                        &ResourceReferences::default(),
                    ))
                }
                None => None,
            };
            let mut after = fields_of(fields)?;
            if fields.limits.is_none() {
                after.insert("limits".into(), json!({}));
            }
            self.add(slug, EntryKind::Key, &fields.name, (before, after));
        }
        Ok(())
    }

    /// Adds a change unless nothing differs.
    fn add(
        &mut self,
        organization: &str,
        kind: EntryKind,
        name: &str,
        (before, after): (Option<JsonObject>, JsonObject),
    ) {
        let fields = differences_in_full(before.as_ref(), Some(&after));
        if before.is_some() && fields.is_empty() {
            self.unchanged += 1;
            return;
        }
        self.changes.push(PlannedChange {
            organization: organization.to_owned(),
            kind: kind.name(),
            name: name.to_owned(),
            action: match before {
                None => AuditAction::Create,
                Some(_) => AuditAction::Update,
            },
            fields,
        });
    }
}

/// Returns the fields of an entry with the sealed key of a provider, whose value is never shown.
fn compared(entry: &CatalogEntry, references: &ResourceReferences) -> JsonObject {
    let mut fields = configured(entry, references);
    if let CatalogEntry::Provider { sealed_key, .. } = entry {
        fields.insert("apiKey".into(), json!(sealed_key));
    }
    fields
}
