//! Arguments of a tool call: parsed, converted to the types of the schema where that is certain,
//! and validated. Pure.

use serde_json::{Map, Value};

use super::ToolFailure;

/// Longest validation error that is sent to a model.
const ERROR_CHARS_MAX: usize = 300;

/// Parses and validates arguments; empty text is an empty object.
pub(crate) fn parse_arguments(
    text: &str,
    schema: &Value,
) -> Result<Map<String, Value>, ToolFailure> {
    let mut arguments =
        parse_object(text).ok_or_else(|| invalid_arguments("they are not a JSON object"))?;
    coerce_types(&mut arguments, schema);
    check_schema(&arguments, schema)?;
    Ok(arguments)
}

/// Parses the object in a text; some models encode it twice.
pub(crate) fn parse_object(text: &str) -> Option<Map<String, Value>> {
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

/// Converts what models often write: removes nulls, numbers as text and text as numbers.
fn coerce_types(arguments: &mut Map<String, Value>, schema: &Value) {
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in arguments {
        let wanted = schema["properties"][name.as_str()]["type"].as_str();
        let coerced = match (wanted, &*value) {
            (Some("number" | "integer"), Value::String(text)) => parse_number(text),
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

/// Parses `"50"`, `"$50"` and `"49.90"`.
fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim().trim_start_matches(['$', '€', '£']).trim();
    let number: f64 = text.parse().ok()?;
    // Whole numbers stay integers, for schemas that require one.
    text.parse::<i64>()
        .map(Value::from)
        .ok()
        .or_else(|| serde_json::Number::from_f64(number).map(Value::Number))
}

fn check_schema(arguments: &Map<String, Value>, schema: &Value) -> Result<(), ToolFailure> {
    // An invalid schema is a mistake of the tool's author and must not be ignored.
    let validator = jsonschema::validator_for(schema)
        .map_err(|_| invalid_arguments("the tool's own schema is invalid"))?;
    let arguments = Value::Object(arguments.clone());
    validator
        .validate(&arguments)
        .map_err(|error| match error.instance_path().to_string() {
            // An empty path is the object itself; the error names the argument.
            place if place.is_empty() => invalid_arguments(&error.to_string()),
            place => invalid_arguments(&format!("{error} at {place}")),
        })
}

fn invalid_arguments(reason: &str) -> ToolFailure {
    ToolFailure::Arguments(reason.chars().take(ERROR_CHARS_MAX).collect())
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
    fn equivalent_arguments_are_accepted() {
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
            let read = parse_arguments(text, &schema()).unwrap();
            assert_eq!(
                (&read["query"], &read["price_max"]),
                (&json!("lamp"), &price),
                "{text}"
            );
        }
        assert_eq!(
            parse_arguments(r#"{"query":7}"#, &schema()).unwrap()["query"],
            "7"
        );
        assert_eq!(
            parse_arguments("", &json!({"type": "object"})),
            Ok(Map::new())
        );
    }

    #[test]
    fn invalid_argument_is_rejected_with_a_reason() {
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
                matches!(parse_arguments(text, &schema()), Err(ToolFailure::Arguments(why)) if !why.is_empty()),
                "{text}"
            );
        }
    }

    #[test]
    fn unknown_argument_is_named() {
        let Err(ToolFailure::Arguments(why)) =
            parse_arguments(r#"{"query":"shirt","color":"red"}"#, &schema())
        else {
            panic!("the unknown argument was accepted")
        };
        assert!(why.contains("color") && !why.ends_with("at "), "{why}");
    }

    proptest! {
        #[test]
        fn arbitrary_text_parses_or_gives_a_short_error(text in "\\PC{0,60}|\\{\"query\":\"\\PC{0,900}\"\\}") {
            match parse_arguments(&text, &schema()) {
                Ok(arguments) => prop_assert!(arguments["query"].is_string()),
                Err(ToolFailure::Arguments(why)) => prop_assert!(why.chars().count() <= ERROR_CHARS_MAX),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
