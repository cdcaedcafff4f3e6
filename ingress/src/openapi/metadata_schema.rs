//! Schema of the free-form `metadata` field that several request bodies share.

use utoipa::openapi::{
    Object, ObjectBuilder,
    schema::{SchemaType, Type},
};

use crate::http::fields::METADATA_KEYS_MAX;

/// Returns the schema of `metadata`: an object with any values, or `null`.
pub(crate) fn metadata_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::Object, Type::Null]))
        .max_properties(Some(METADATA_KEYS_MAX))
        .description(Some(
            "Any other data of the conversation, merged key by key: at most 50 keys and 16 KiB. The reserved keys `visitorId`, \
             `visitorEmail`, `visitorName`, `source`, `ipAddress`, `rating` and `feedback` are ignored.",
        ))
        .build()
}
