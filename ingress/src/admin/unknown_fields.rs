//! Detection of unknown fields in values whose type cannot refuse them, because it also reads older stored rows.

use serde_json::Value;

/// Returns the path of the first field of `given` that none of `known`, the serialized readers, has.
pub(super) fn unknown_field(given: &Value, known: &[Value]) -> Option<String> {
    let fields = given.as_object()?;
    for (name, value) in fields {
        let readers: Vec<&Value> = known.iter().filter_map(|reader| reader.get(name)).collect();
        let Some(reader) = readers.first() else {
            return Some(name.clone());
        };
        if let Some(inner) = unknown_inside(value, reader) {
            return Some(format!("{name}{inner}"));
        }
    }
    None
}

fn unknown_inside(given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(_), Value::Object(_)) => {
            unknown_field(given, std::slice::from_ref(known)).map(|inner| format!(".{inner}"))
        }
        (Value::Array(given), Value::Array(known)) => {
            given
                .iter()
                .zip(known)
                .enumerate()
                .find_map(|(index, (given, known))| {
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
        let known = [json!({ "a": 1 }), json!({ "b": { "c": [ { "d": 1 } ] } })];
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
