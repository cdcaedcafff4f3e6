//! Validation of fields that several request bodies share.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use switchboard_schemas::{
    client_text::ClientTextError, conversation::RESERVED_KEYS, email::is_email,
};

use super::{ApiError, ApiResult};

/// Maximum number of keys in a client's `metadata`.
pub(crate) const METADATA_KEYS_MAX: usize = 50;
/// Maximum size of a client's `metadata` as JSON, in bytes.
pub(crate) const METADATA_BYTES_MAX: usize = 16 << 10;
/// Metadata keys with their own validation, which a free-form object would bypass.
const RULED_KEYS: [&str; 2] = ["rating", "feedback"];

/// Returns an optional text field; `null` counts as absent.
pub(crate) fn optional_text<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> ApiResult<Option<&'a str>> {
    fields
        .get(name)
        .map_or(Ok(None), |value| text_value(name, value))
}

/// Returns the text of a field, or `None` if its value is `null`.
pub(crate) fn text_value<'a>(name: &str, value: &'a Value) -> ApiResult<Option<&'a str>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(ApiError::field(name, "must be a string")),
    }
}

/// Returns a text field that must not be blank.
pub(crate) fn required_text<'a>(fields: &'a Map<String, Value>, name: &str) -> ApiResult<&'a str> {
    required_text_value(name, fields.get(name).unwrap_or(&Value::Null))
}

/// Returns the text of a field, which must not be missing, `null` or blank.
pub(crate) fn required_text_value<'a>(name: &str, value: &'a Value) -> ApiResult<&'a str> {
    let text = text_value(name, value)?.ok_or_else(|| ApiError::field(name, "is required"))?;
    if text.trim().is_empty() {
        Err(ApiError::field(name, "must not be blank"))
    } else {
        Ok(text)
    }
}

/// Parses a client-chosen identifier, such as a session id.
pub(crate) fn client_text<T: FromStr<Err = ClientTextError>>(
    name: &str,
    text: &str,
) -> ApiResult<T> {
    text.parse()
        .map_err(|error: ClientTextError| ApiError::field(name, error.to_string()))
}

/// Validates an e-mail address.
pub(crate) fn parse_email(name: &str, text: &str) -> ApiResult<String> {
    if is_email(text) {
        Ok(text.to_owned())
    } else {
        Err(ApiError::field(name, "is not an e-mail address"))
    }
}

/// Validates a client's `metadata` and removes reserved keys.
pub(crate) fn parse_metadata(value: &Value) -> ApiResult<Option<Map<String, Value>>> {
    let metadata = match value {
        Value::Null => return Ok(None),
        Value::Object(metadata) => metadata,
        _ => return Err(ApiError::field("metadata", "must be an object")),
    };
    check_size(metadata)?;
    Ok(Some(
        metadata
            .iter()
            .filter(|(key, _)| is_free(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    ))
}

/// Rejects `changes` that would make the merged metadata exceed the limits of one request, because
/// a conversation is read as a whole.
pub(crate) fn check_merged(
    kept: &Map<String, Value>,
    changes: &Map<String, Value>,
) -> ApiResult<()> {
    let mut merged = kept.clone();
    merged.extend(
        changes
            .iter()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    merged.retain(|key, value| is_free(key) && !value.is_null());
    check_size(&merged)
}

/// Fails if `text` has more than `bytes_max` bytes.
pub(crate) fn check_bytes(name: &'static str, text: &str, bytes_max: usize) -> ApiResult<()> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    let fault = format!("is longer than {bytes_max} bytes");
    Err(ApiError::field(name, fault).details(json!({ "max": bytes_max, "actual": text.len() })))
}

fn check_size(metadata: &Map<String, Value>) -> ApiResult<()> {
    let too_much = |fault: String, max: usize| {
        Err(ApiError::field("metadata", fault).details(json!({ "max": max })))
    };
    if metadata.len() > METADATA_KEYS_MAX {
        return too_much(
            format!("has more than {METADATA_KEYS_MAX} keys"),
            METADATA_KEYS_MAX,
        );
    }
    if serde_json::to_vec(metadata).map_or(usize::MAX, |text| text.len()) > METADATA_BYTES_MAX {
        return too_much(
            format!("is larger than {METADATA_BYTES_MAX} bytes"),
            METADATA_BYTES_MAX,
        );
    }
    Ok(())
}

/// Returns true if clients may set this metadata key.
fn is_free(key: &str) -> bool {
    !RESERVED_KEYS.contains(&key) && !RULED_KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn merged_metadata_stays_within_the_request_limits() {
        let kept: Map<String, Value> = (0..40).map(|key| (format!("k{key}"), json!(1))).collect();
        let more =
            |keys: std::ops::Range<u32>| (keys.map(|key| (format!("k{key}"), json!(2)))).collect();
        assert!(
            check_merged(&kept, &more(0..50)).is_ok(),
            "the same keys again, and ten more"
        );
        assert!(check_merged(&kept, &more(40..51)).is_err());
        let mut exchanged: Map<String, Value> = more(40..51);
        exchanged.insert("k0".into(), Value::Null);
        assert!(
            check_merged(&kept, &exchanged).is_ok(),
            "what goes makes room"
        );
        let long = fields(json!({ "long": "x".repeat(METADATA_BYTES_MAX) }));
        assert!(check_merged(&kept, &long).is_err());
        let own = fields(json!({ "feedback": "x".repeat(METADATA_BYTES_MAX) }));
        assert!(
            check_merged(&own, &more(0..50)).is_ok(),
            "feedback has a bound of its own"
        );
    }

    #[test]
    fn metadata_cannot_set_validated_keys() {
        let given = json!({
            "visitorId": "x", "visitorEmail": "x", "visitorName": "x", "source": "x", "ipAddress": "x",
            "rating": 9, "feedback": 1, "__proto__": 1, "plan": "pro",
        });
        assert_eq!(
            Value::Object(parse_metadata(&given).unwrap().unwrap()),
            json!({ "__proto__": 1, "plan": "pro" })
        );
    }

    #[test]
    fn metadata_is_bounded_in_keys_and_bytes() {
        let many = |count: usize| {
            let keys: Map<String, Value> = (0..count)
                .map(|number| (number.to_string(), json!(1)))
                .collect();
            Value::Object(keys)
        };
        assert!(parse_metadata(&many(METADATA_KEYS_MAX)).is_ok());
        let sized = |bytes: usize| json!({ "k": "x".repeat(bytes - r#"{"k":""}"#.len()) });
        assert!(parse_metadata(&sized(METADATA_BYTES_MAX)).is_ok());
        for (given, fault) in [
            (
                many(METADATA_KEYS_MAX + 1),
                "metadata has more than 50 keys",
            ),
            (
                sized(METADATA_BYTES_MAX + 1),
                "metadata is larger than 16384 bytes",
            ),
        ] {
            let error = parse_metadata(&given).unwrap_err().into_parts();
            assert_eq!(error.detail, fault);
        }
    }

    #[test]
    fn field_of_another_type_is_named() {
        let error = optional_text(&fields(json!({ "visitorName": 1 })), "visitorName")
            .unwrap_err()
            .into_parts();
        assert_eq!(error.param.as_deref(), Some("visitorName"));
        assert!(
            optional_text(&fields(json!({ "visitorName": null })), "visitorName")
                .unwrap()
                .is_none()
        );
    }
}
