//! The contract of [`super::Catalog`], sentence by sentence, for both twins.

use switchboard_schemas::{ids::OrgId, organization::Organization, secret::InstallationSecret};

use super::Entry;

/// An organization of this slug.
pub(super) fn organization(slug: &str) -> Entry {
    let id = OrgId::derive(&InstallationSecret::from_bytes([1; 32]), slug);
    Entry::Organization(Organization { id, slug: slug.into(), name: slug.to_uppercase() })
}
