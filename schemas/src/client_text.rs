//! Identifiers that clients choose: any short text without control characters, compared byte for
//! byte.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, schema},
};

/// Maximum length of a client-chosen identifier, in bytes.
pub const CLIENT_TEXT_BYTES_MAX: usize = 256;

/// The same rule for the public API document: no control characters, and at least one character
/// that is not white space.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// The reason why a text is not a valid client-chosen identifier.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClientTextError {
    /// The text is empty or white space.
    #[error("must not be blank")]
    Blank,
    /// The text is longer than [`CLIENT_TEXT_BYTES_MAX`] bytes.
    #[error("must have at most {CLIENT_TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// The text contains a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

fn check(text: &str) -> Result<(), ClientTextError> {
    if text.trim().is_empty() {
        Err(ClientTextError::Blank)
    } else if text.len() > CLIENT_TEXT_BYTES_MAX {
        Err(ClientTextError::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(ClientTextError::ControlCharacter)
    } else {
        Ok(())
    }
}

macro_rules! client_text {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the text as the client sent it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ClientTextError;

            fn from_str(text: &str) -> Result<Self, ClientTextError> {
                check(text).map(|()| Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ClientTextError;

            fn try_from(text: String) -> Result<Self, ClientTextError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0.as_ref().to_owned()
            }
        }

        // Session ids open conversations, so that they are treated as secrets and never printed
        // whole.
        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({} bytes)", stringify!($name), self.0.len())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": CLIENT_TEXT_BYTES_MAX })
            }
        }

        impl ToSchema for $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<schema::Schema> {
                ObjectBuilder::new().schema_type(schema::Type::String)
                    .description(Some("Text of the client's own: 1 to 256 bytes of UTF-8, not blank, no control characters; compared byte for byte."))
                    .min_length(Some(1))
                    .max_length(Some(CLIENT_TEXT_BYTES_MAX))
                    .pattern(Some(PRINTABLE))
                    .into()
            }
        }
    )*};
}

client_text! {
    /// Groups messages into one conversation; chosen by the client.
    SessionId;
    /// A visitor across sessions; chosen by the client.
    VisitorId;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn printable_text_of_any_script_is_accepted_unchanged() {
        for text in ["a", "sess/../1", "سلام", "🦀", "a b"] {
            assert_eq!(text.parse::<SessionId>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn blank_long_and_control_text_is_rejected_with_its_reason() {
        assert_eq!("".parse::<SessionId>(), Err(ClientTextError::Blank));
        assert_eq!(" \u{a0}".parse::<SessionId>(), Err(ClientTextError::Blank));
        assert_eq!(
            "x".repeat(257).parse::<SessionId>(),
            Err(ClientTextError::TooLong)
        );
        assert_eq!(
            "a\nb".parse::<VisitorId>(),
            Err(ClientTextError::ControlCharacter)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_accepted_unchanged_or_rejected(text: String) {
            if let Ok(session) = text.parse::<SessionId>() {
                prop_assert_eq!(session.as_str(), text.as_str());
                prop_assert!(text.len() <= CLIENT_TEXT_BYTES_MAX && !text.contains(char::is_control));
            }
        }
    }
}
