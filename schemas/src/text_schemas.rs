//! Schemas of texts in lists, whose length the OpenAPI documents show. They are parsed as plain
//! texts.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

/// Maximum length of an entry of `allowedDomains`; host names have at most 253 characters.
pub const ALLOWED_DOMAIN_CHARS_MAX: usize = 300;
/// Maximum length of an option of a lead form.
pub const LEAD_OPTION_CHARS_MAX: usize = 200;

/// Schema of an entry of `allowedDomains`.
#[derive(Debug)]
pub struct AllowedDomain;

/// Schema of an option of a lead form.
#[derive(Debug)]
pub struct LeadOption;

fn text(chars_max: usize) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.max_length(Some(chars_max)).into()
}

impl ToSchema for AllowedDomain {}

impl PartialSchema for AllowedDomain {
    fn schema() -> RefOr<Schema> {
        text(ALLOWED_DOMAIN_CHARS_MAX)
    }
}

impl ToSchema for LeadOption {}

impl PartialSchema for LeadOption {
    fn schema() -> RefOr<Schema> {
        text(LEAD_OPTION_CHARS_MAX)
    }
}
