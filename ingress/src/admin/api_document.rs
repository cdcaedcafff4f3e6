//! The OpenAPI 3.1 document of the admin API, generated from its routes.

use std::{collections::BTreeMap, sync::LazyLock};

use axum::{Router, routing::get};
use http::HeaderMap;
use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{PathsBuilder, RefOr, Schema, path::Operation},
};

use super::{
    account_operations::account_operations,
    audit_log::AuditEntryView,
    conversations::{LeadView, ListedConversationView},
    operations::{AdminOperation, OperationDescription, PATCH_SUFFIX},
    resources::{agents::AgentItem, teams::TeamItem},
    routes::admin_routes,
};
use crate::{
    http::problem::Problem,
    openapi::{PublishedDocument, problems},
    routes::openapi::serve_document,
    state::AppState,
};

/// The path of the document, which needs no token.
const PATH: &str = "/api/admin/openapi.json";
const DESCRIPTION: &str = "Manage configuration, users, conversations and analytics of organizations.\n\n\
    Programs authenticate with the admin token. Users authenticate with the session cookie of the dashboard and reach their \
    own organization within the permissions of their role. Responses about one resource have its version as `version` and as \
    `ETag`. A change that sends it back, in the body or in `If-Match`, fails with 409 if the resource has changed since.";
const REF_PREFIX: &str = "#/components/schemas/";
/// The groups of operations, in the order of the page.
const TAGS: [&str; 15] = [
    "Session",
    "Organizations",
    "Removals",
    "Agents",
    "Teams",
    "Providers",
    "Keys",
    "Users",
    "Conversations",
    "Files",
    "Leads",
    "Erasures",
    "Analytics",
    "Audit",
    "Apply",
];
/// Schemas whose fields are optional in requests and always present in responses.
const ALWAYS_COMPLETE: [&str; 12] = [
    "AgentLimits",
    "DisclosureSettings",
    "EcommerceSettings",
    "Features",
    "FileSettings",
    "LeadConsent",
    "LeadField",
    "LeadForm",
    "Product",
    "ProductFeed",
    "Theme",
    "WidgetSettings",
];

/// The document as it is served; all installations of a version have the same.
static ADMIN_DOCUMENT: LazyLock<PublishedDocument> =
    LazyLock::new(|| PublishedDocument::new(&admin_document()));

type SchemaMap = Map<String, Value>;

pub(super) fn routes() -> Router<AppState> {
    let serve = async |headers: HeaderMap| serve_document(&ADMIN_DOCUMENT, &headers);
    Router::new().route(PATH, get(serve))
}

pub(crate) fn admin_document() -> Value {
    let (mut paths, mut schemas) = (PathsBuilder::new().build(), BTreeMap::new());
    for operation in account_operations()
        .into_iter()
        .chain(admin_routes().operations)
    {
        let AdminOperation { path, method, .. } = &operation;
        let described = describe(&operation, &mut schemas);
        paths.add_path_operation(path, vec![method.clone()], described);
    }
    register::<Problem>(&mut schemas);
    // The schemas of a generic type do not include that of its argument.
    register::<AuditEntryView>(&mut schemas);
    register::<ListedConversationView>(&mut schemas);
    register::<LeadView>(&mut schemas);
    register::<AgentItem>(&mut schemas);
    register::<TeamItem>(&mut schemas);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchboard admin API",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/", "description": "This installation." }],
        "tags": TAGS.map(|name| json!({ "name": name })),
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The admin token." },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "__Host-switchboard",
                    "description": "The session of a signed-in user.",
                },
            },
        },
    });
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        complete_schemas(schemas);
    }
    document
}

fn register<T: ToSchema>(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let mut all = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut all);
    schemas.extend(all);
}

fn describe(
    operation: &AdminOperation,
    schemas: &mut BTreeMap<String, RefOr<Schema>>,
) -> Operation {
    let mut description = OperationDescription::default();
    description.add_path_parameters(&operation.path);
    (operation.describe)(&mut description);
    schemas.extend(description.schemas);
    let mut described = description.operation;
    let problems = problems::responses(&description.problems, false);
    described.responses.responses.extend(problems);
    described.operation_id = Some(operation.id.clone());
    described.summary = Some(operation.summary.clone());
    described.tags = Some(vec![tag_of(&operation.path)]);
    described
}

/// Returns the group of a path, which is its first segment below an organization.
fn tag_of(path: &str) -> String {
    let Some(below) = path.strip_prefix("/api/admin/") else {
        return "Session".to_owned();
    };
    let segment = below.split('/').nth(2).or_else(|| below.split('/').next());
    let is_segment = |tag: &&&str| segment.is_some_and(|segment| tag.eq_ignore_ascii_case(segment));
    TAGS.iter()
        .find(is_segment)
        .copied()
        .unwrap_or_default()
        .to_owned()
}

/// Expands composed objects and turns those of merge patches into patches.
fn complete_schemas(schemas: &mut SchemaMap) {
    for name in ALWAYS_COMPLETE {
        if let Some(schema) = schemas.get_mut(name) {
            schema["required"] = property_names(schema).collect();
        }
    }
    let composed: Vec<_> = schemas
        .keys()
        .filter_map(|name| Some((name.clone(), merged(schemas, &schemas[name])?)))
        .collect();
    schemas.extend(composed);
    let patches: Vec<_> = schemas
        .iter()
        .filter(|(name, _)| name.ends_with(PATCH_SUFFIX))
        .map(|(name, schema)| (name.clone(), patch_of(schema)))
        .collect();
    schemas.extend(patches);
}

fn property_names(schema: &Value) -> impl Iterator<Item = Value> + use<> {
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    properties.into_iter().map(|(name, _)| name.into())
}

/// Returns a composed object as one object; `None` for other schemas. Optional fields of a request
/// are required where they are combined with an identity, which only responses have.
fn merged(schemas: &SchemaMap, schema: &Value) -> Option<Value> {
    let parts = schema["allOf"].as_array()?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let is_view = parts
        .iter()
        .any(|part| name_of(part) == Some("ResourceIdentity"));
    for part in parts {
        let name = name_of(part);
        let target = name.map_or(Some(part), |name| schemas.get(name))?;
        let target = merged(schemas, target).unwrap_or_else(|| target.clone());
        let mut own = target.get("properties")?.as_object()?.clone();
        let is_shown_whole = is_view && name.is_some_and(|name| name != "ResourceIdentity");
        if is_shown_whole {
            own.retain(|_, property| property.get("writeOnly").is_none());
            required.extend(own.keys().map(|name| Value::from(name.as_str())));
        } else {
            required.extend(target["required"].as_array().into_iter().flatten().cloned());
        }
        properties.extend(own);
    }
    let mut merged = json!({ "type": "object", "properties": properties, "required": required });
    if let Some(description) = schema.get("description") {
        merged["description"] = description.clone();
    }
    Some(merged)
}

fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(REF_PREFIX)
}

/// Returns the schema of a merge patch (RFC 7396): no field is required, and `null` resets a field.
fn patch_of(fields: &Value) -> Value {
    let mut patch = fields.clone();
    if let Some(patch) = patch.as_object_mut() {
        patch.remove("required");
        patch.remove("additionalProperties");
    }
    for property in patch["properties"]
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
        match property.get("type") {
            Some(Value::String(name)) => property["type"] = json!([name, "null"]),
            Some(_) => {}
            None => *property = json!({ "oneOf": [{ "type": "null" }, property] }),
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::World;

    /// The document without its paths, from which the types of the dashboard are generated.
    const CHECKED_IN: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../web/dashboard/admin-openapi.json"
    );

    fn operations(document: &Value) -> Vec<(String, String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap();
            methods
                .iter()
                .map(|(method, operation)| (method.to_uppercase(), path.clone(), operation))
        });
        operations.collect()
    }

    fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(name_of(value).map(str::to_owned));
                fields
                    .values()
                    .for_each(|value| collect_references(value, found));
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| collect_references(item, found)),
            _ => {}
        }
    }

    #[tokio::test]
    async fn every_operation_is_served_and_protected() {
        let (world, document) = (World::new().await, admin_document());
        let operations = operations(&document);
        assert_eq!(
            operations.len(),
            admin_routes().operations.len() + account_operations().len()
        );
        let is_public = |operation: &Value| operation.get("security") == Some(&json!([]));
        for (method, path, operation) in operations {
            if is_public(operation) {
                let own_page = [
                    ("sec-fetch-site", "same-origin"),
                    ("content-type", "application/json"),
                ];
                let answer = world.send_with(&method, &path, &own_page, "{}").await;
                let status = answer.status;
                assert!(
                    [204, 400].contains(&status.as_u16()),
                    "{method} {path}: {status}"
                );
                continue;
            }
            let path = path.replace(['{', '}'], "");
            let answer = world.send_with(&method, &path, &[], "").await;
            assert_eq!(
                answer.problem(),
                (401, "MISSING_API_KEY".into()),
                "{method} {path}"
            );
        }
    }

    #[test]
    fn operation_ids_are_unique_and_references_resolve() {
        let document = admin_document();
        let operations = operations(&document);
        assert!(
            operations
                .iter()
                .all(|(_, _, operation)| operation["tags"][0] != "")
        );
        let ids: BTreeSet<_> = operations
            .iter()
            .map(|(_, _, operation)| operation["operationId"].to_string())
            .collect();
        assert_eq!(ids.len(), operations.len());
        let mut references = BTreeSet::new();
        collect_references(&document, &mut references);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let missing: Vec<_> = references
            .iter()
            .filter(|name| !schemas.contains_key(*name))
            .collect();
        assert_eq!(missing, [] as [&String; 0]);
    }

    #[test]
    fn bodies_of_changes_have_a_version() {
        let document = admin_document();
        let mut changes = 0;
        for (method, path, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let is_change = parameters.into_iter().any(|it| it["name"] == "If-Match");
            let bodies = operation["requestBody"]["content"].as_object();
            for (media_type, body) in bodies.into_iter().flatten().filter(|_| is_change) {
                let Some(name) = name_of(&body["schema"]) else {
                    assert!(path.ends_with("/products"), "{method} {path}: {body}");
                    continue;
                };
                let properties = &document["components"]["schemas"][name]["properties"];
                let version = &properties["version"]["type"];
                assert_eq!(
                    *version,
                    json!(["string", "null"]),
                    "{method} {path} {media_type}: {properties}"
                );
                changes += 1;
            }
        }
        assert!(changes > 0);
    }

    #[tokio::test]
    async fn document_needs_no_token() {
        let answer = World::new().await.send_with("GET", PATH, &[], "").await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (200, admin_document())
        );
    }

    /// `UPDATE_OPENAPI=1` writes the file.
    #[test]
    fn checked_in_document_is_current() {
        let mut document = admin_document();
        document["paths"] = json!({});
        let current = format!("{document:#}\n");
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(CHECKED_IN, &current).unwrap();
        }
        let checked_in = std::fs::read_to_string(CHECKED_IN).unwrap_or_default();
        assert!(
            checked_in == current,
            "UPDATE_OPENAPI=1 cargo test -p switchboard-ingress document"
        );
    }
}
