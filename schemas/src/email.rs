//! E-mail addresses of accounts, and the rule that validates all others.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, schema},
};

/// Maximum length of an address, in bytes (RFC 5321, section 4.5.3.1.3).
pub const EMAIL_BYTES_MAX: usize = 254;

/// The e-mail address of an account, in lower case because mail systems treat all spellings of one
/// address alike.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EmailAddress(String);

/// The error for a text that is not an e-mail address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an e-mail address")]
pub struct InvalidEmailAddress;

impl EmailAddress {
    /// Returns the normalized address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EmailAddress {
    type Err = InvalidEmailAddress;

    fn from_str(text: &str) -> Result<Self, InvalidEmailAddress> {
        let text = text.trim();
        if is_email(text) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(InvalidEmailAddress)
        }
    }
}

impl ToSchema for EmailAddress {}

impl PartialSchema for EmailAddress {
    fn schema() -> RefOr<schema::Schema> {
        ObjectBuilder::new()
            .schema_type(schema::Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Email)))
            .max_length(Some(EMAIL_BYTES_MAX))
            .examples(["ada@example.org"])
            .into()
    }
}

impl TryFrom<String> for EmailAddress {
    type Error = InvalidEmailAddress;

    fn try_from(text: String) -> Result<Self, InvalidEmailAddress> {
        text.parse()
    }
}

impl From<EmailAddress> for String {
    fn from(address: EmailAddress) -> Self {
        address.0
    }
}

/// Hides the address: it is personal data, and debug output ends up in logs.
impl fmt::Debug for EmailAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EmailAddress(…)")
    }
}

/// Returns `true` if `text` is an e-mail address by the rule of HTML's e-mail input, with a dot in
/// the domain.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    text.len() <= EMAIL_BYTES_MAX
        && (1..=64).contains(&local.len())
        && local
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte))
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_email;

    #[test]
    fn usual_addresses_are_accepted() {
        for text in [
            "a@b.co",
            "first.last+tag@mail.example.org",
            "o'neil@x-y.example",
        ] {
            assert!(is_email(text), "{text}");
        }
    }

    #[test]
    fn malformed_addresses_are_rejected() {
        let long = format!("{}@example.org", "a".repeat(300));
        for text in [
            "",
            "a",
            "@b.co",
            "a@",
            "a@b",
            "a b@c.de",
            "a@b..c",
            "a@-b.co",
            "a@b.co\r\nBcc: x@y.z",
            "a@b@c.de",
            &long,
        ] {
            assert!(!is_email(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn accepted_address_is_safe_in_a_mail_header(text in "[ -~\r\n\t]{0,20}@[ -~\r\n]{0,20}|\\PC{0,40}") {
            if is_email(&text) {
                prop_assert!(text.is_ascii() && !text.contains([' ', '\r', '\n', '<', '>', ',', ';', '"']));
                prop_assert_eq!(text.matches('@').count(), 1);
            }
        }
    }
}
