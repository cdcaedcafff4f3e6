//! Detection of unknown fields in values whose type accepts them, because it also reads older
//! stored rows.

use serde_json::Value;

/// Returns the path of the first field of `given` that is not in `known`, the parsed value
/// serialized again.
pub(super) fn unknown_field(given: &Value, known: &Value) -> Option<String> {
    let mut fields = given.as_object()?.iter();
    fields.find_map(|(name, value)| match known.get(name) {
        Some(known) => unknown_inside(value, known).map(|inner| format!("{name}{inner}")),
        None => Some(name.clone()),
    })
}

fn unknown_inside(given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(_), Value::Object(_)) => {
            unknown_field(given, known).map(|inner| format!(".{inner}"))
        }
        (Value::Array(given), Value::Array(known)) => {
            let mut pairs = given.iter().zip(known).enumerate();
            pairs.find_map(|(index, (given, known))| {
                unknown_inside(given, known).map(|inner| format!("[{index}]{inner}"))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_found_at_any_depth() {
        let known = json!({ "a": 1, "b": { "c": [ { "d": 1 } ] } });
        assert_eq!(
            unknown_field(&json!({ "a": 2, "b": { "c": [{ "d": 2 }] } }), &known),
            None
        );
        assert_eq!(
            unknown_field(&json!({ "x": 1 }), &known).as_deref(),
            Some("x")
        );
        assert_eq!(
            unknown_field(&json!({ "b": { "c": [{ "e": 1 }] } }), &known).as_deref(),
            Some("b.c[0].e")
        );
    }
}
