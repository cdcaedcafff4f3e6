//! Arguments of a call as a model wrote them: read, brought to the types that the schema names where that is certain,
//! and checked against it. Pure.

use serde_json::{Map, Value};

use super::ToolFailure;

/// Longest complaint that a model is told of its own arguments.
const COMPLAINT_CHARS_MAX: usize = 300;

/// Reads arguments; nothing at all is an empty object.
pub(crate) fn read(text: &str, schema: &Value) -> Result<Map<String, Value>, ToolFailure> {
    let mut arguments = object(text).ok_or_else(|| refused("they are no JSON object"))?;
    coerce(&mut arguments, schema);
    check(&arguments, schema)?;
    Ok(arguments)
}

/// The object that a text is; some models encode it twice.
pub(crate) fn object(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    match serde_json::from_str(text).ok()? {
        Value::Object(arguments) => Some(arguments),
        Value::Null => Some(Map::new()),
        Value::String(inner) => serde_json::from_str(&inner).ok(),
        _ => None,
    }
}

/// Brings what models often write to what is meant: null for nothing, numbers as text and text as numbers.
fn coerce(arguments: &mut Map<String, Value>, schema: &Value) {
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in arguments {
        let wanted = schema["properties"][name.as_str()]["type"].as_str();
        let coerced = match (wanted, &*value) {
            (Some("number" | "integer"), Value::String(text)) => number(text),
            (Some("string"), Value::Number(number)) => Some(number.to_string().into()),
            (Some("string"), Value::Bool(flag)) => Some(flag.to_string().into()),
            (Some("boolean"), Value::String(text)) => text
                .trim()
                .to_ascii_lowercase()
                .parse::<bool>()
                .ok()
                .map(Value::from),
            _ => None,
        };
        if let Some(coerced) = coerced {
            *value = coerced;
        }
    }
}

/// `"50"`, `"$50"` and `"49.90"` are numbers.
fn number(text: &str) -> Option<Value> {
    let text = text.trim().trim_start_matches(['$', '€', '£']).trim();
    let number: f64 = text.parse().ok()?;
    // A whole number stays one, for schemas that want an integer.
    text.parse::<i64>()
        .map(Value::from)
        .ok()
        .or_else(|| serde_json::Number::from_f64(number).map(Value::Number))
}

fn check(arguments: &Map<String, Value>, schema: &Value) -> Result<(), ToolFailure> {
    // A schema that is none is its author's mistake, and must not be run around.
    let validator = jsonschema::validator_for(schema)
        .map_err(|_| refused("the tool's own schema is invalid"))?;
    let arguments = Value::Object(arguments.clone());
    validator
        .validate(&arguments)
        .map_err(|error| match error.instance_path().to_string() {
            // The object itself: the complaint names the argument.
            place if place.is_empty() => refused(&error.to_string()),
            place => refused(&format!("{error} at {place}")),
        })
}

fn refused(complaint: &str) -> ToolFailure {
    ToolFailure::Arguments(complaint.chars().take(COMPLAINT_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object", "additionalProperties": false, "required": ["query"],
            "properties": {"query": {"type": "string"}, "price_max": {"type": "number"}, "limit": {"type": "integer"}}
        })
    }

    #[test]
    fn what_is_meant_is_understood() {
        for (text, price) in [
            (r#"{"query":"lamp","price_max":50}"#, json!(50)),
            (
                r#"{"query":"lamp","price_max":"$50","limit":null}"#,
                json!(50),
            ),
            (
                r#""{\"query\":\"lamp\",\"price_max\":\"49.5\"}""#,
                json!(49.5),
            ),
        ] {
            let read = read(text, &schema()).unwrap();
            assert_eq!(
                (&read["query"], &read["price_max"]),
                (&json!("lamp"), &price),
                "{text}"
            );
        }
        assert_eq!(read(r#"{"query":7}"#, &schema()).unwrap()["query"], "7");
        assert_eq!(read("", &json!({"type": "object"})), Ok(Map::new()));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_reason() {
        for text in [
            "",
            "{",
            "[]",
            "7",
            r#"{"query":["a"]}"#,
            r#"{"query":"a","limit":1.5}"#,
            r#"{"query":"a","sql":"x"}"#,
            r#"{"query":"a"}{"query":"a"}"#,
        ] {
            assert!(
                matches!(read(text, &schema()), Err(ToolFailure::Arguments(why)) if !why.is_empty()),
                "{text}"
            );
        }
    }

    #[test]
    fn an_argument_that_is_unknown_is_named() {
        let Err(ToolFailure::Arguments(why)) =
            read(r#"{"query":"shirt","color":"red"}"#, &schema())
        else {
            panic!("it was passed over")
        };
        assert!(why.contains("color") && !why.ends_with("at "), "{why}");
    }

    proptest! {
        #[test]
        fn any_text_is_arguments_or_a_short_complaint(text in "\\PC{0,60}|\\{\"query\":\"\\PC{0,900}\"\\}") {
            match read(&text, &schema()) {
                Ok(arguments) => prop_assert!(arguments["query"].is_string()),
                Err(ToolFailure::Arguments(why)) => prop_assert!(why.chars().count() <= COMPLAINT_CHARS_MAX),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
