//! The OpenAPI 3.1 document of the public API. Each handler describes its own path, parameters and
//! responses, so that the routes and the document cannot differ; this room adds the parts that
//! operations share.

pub(crate) mod event_stream;
mod examples;
mod headers;
mod links;
pub(crate) mod metadata_schema;
pub(crate) mod problems;
#[cfg(test)]
mod tests;

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::{
    ToSchema,
    openapi::{
        Components, InfoBuilder, LicenseBuilder, OpenApi, RefOr, Schema, SecurityRequirement,
        content::Content,
        example::ExampleBuilder,
        path::Operation,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
        server::ServerBuilder,
        tag::TagBuilder,
    },
};

use crate::http::{compression::CompressedText, problem::Problem};

const DESCRIPTION: &str = include_str!("description.md");
const TAGS: [(&str, &str); 7] = [
    ("Chat", "Send a message and read the reply."),
    ("Messages", "Read, stream or cancel one reply."),
    (
        "Conversations",
        "Read the history and change the visitor's data.",
    ),
    ("Files", "Upload files for messages and download them."),
    ("Agents", "Read the public configuration of an agent."),
    ("Widget", "Configure a widget and create visitor tokens."),
    ("Document", "Read this document."),
];
/// Schemas whose fields are optional in requests and always present in responses.
const ALWAYS_COMPLETE: [&str; 5] = [
    "Theme",
    "Features",
    "AgentLimits",
    "Product",
    "FileSettings",
];
/// The length of the entity tag, in characters; long enough that two versions never share one.
const ETAG_CHARS: usize = 32;

/// The document as it is served.
pub(crate) struct PublishedDocument {
    /// The document as JSON.
    pub(crate) body: CompressedText,
    /// The entity tag of this version.
    pub(crate) etag: String,
}

impl PublishedDocument {
    /// Serializes a document and derives its entity tag.
    pub(crate) fn new(document: &impl Serialize) -> Self {
        let body = CompressedText::new(serde_json::to_vec(document).unwrap_or_default());
        let mut hash = HEXLOWER.encode(&Sha256::digest(body.plain()));
        hash.truncate(ETAG_CHARS);
        // Weak, because it stands for the plain and the compressed bytes.
        Self {
            body,
            etag: format!("W/\"{hash}\""),
        }
    }
}

/// Returns the document of `routes` with all parts that operations share.
pub(crate) fn document(routes: OpenApi) -> OpenApi {
    let mut document = routes;
    describe_api(&mut document);
    add_schemas(document.components.get_or_insert_with(Components::new));
    headers::add(&mut document);
    for operation in document
        .paths
        .paths
        .values_mut()
        .flat_map(headers::operations)
    {
        describe_parts(operation);
        add_examples(operation);
        links::add(operation);
    }
    document
}

/// Gives a part of a response the media types of the whole one.
fn describe_parts(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let Some(RefOr::T(whole)) = responses.get("200").cloned() else {
        return;
    };
    if let Some(RefOr::T(part)) = responses.get_mut("206") {
        part.content = whole.content;
    }
}

fn describe_api(document: &mut OpenApi) {
    document.info = InfoBuilder::new()
        .title("Switchboard public API")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ))
        .build();
    // Relative, because the service does not know its public address.
    document.servers = Some(vec![
        ServerBuilder::new()
            .url("/")
            .description(Some("This installation."))
            .build(),
    ]);
    let tags = TAGS.map(|(name, description)| {
        TagBuilder::new()
            .name(name)
            .description(Some(description))
            .build()
    });
    document.tags = Some(tags.into());

    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("svc_live_…");
    let bearer = bearer
        .description(Some("The API key or a visitor token."))
        .build();
    let header = ApiKeyValue::with_description("X-API-Key", "The API key in its own header.");
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("apiKey", SecurityScheme::ApiKey(ApiKey::Header(header)));
    let schemes =
        ["bearer", "apiKey"].map(|scheme| SecurityRequirement::new(scheme, Vec::<String>::new()));
    document.security = Some(schemes.into());
}

fn add_schemas(components: &mut Components) {
    register::<Problem>(components);
    register::<event_stream::StartEvent>(components);
    register::<event_stream::DeltaEvent>(components);
    register::<event_stream::UiSpec>(components);
    register::<event_stream::ToolEvent>(components);
    register::<event_stream::DoneEvent>(components);
    for name in ALWAYS_COMPLETE {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(name) {
            object.required = object.properties.keys().cloned().collect();
        }
    }
}

fn register<T: ToSchema>(components: &mut Components) {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    components.schemas.extend(schemas);
}

fn add_examples(operation: &mut Operation) {
    let id = operation.operation_id.clone().unwrap_or_default();
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut().filter_map(owned) {
            content
                .examples
                .extend(examples::requests(&id).into_iter().map(|(name, value)| {
                    let example = ExampleBuilder::new().value(Some(value)).build();
                    (name.to_owned(), RefOr::T(example))
                }));
        }
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        for (media_type, content) in &mut response.content {
            if let Some(content) = owned(content) {
                content.example = examples::response(&id, status, media_type);
            }
        }
    }
}

fn owned(content: &mut RefOr<Content>) -> Option<&mut Content> {
    match content {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}
