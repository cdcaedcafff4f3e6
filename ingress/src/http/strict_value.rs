//! Deserialization of JSON values in which only objects are structs. The code that serde derives
//! also takes an array as the fields of a struct in their order.

use serde::{
    Deserializer,
    de::{
        Error as _, IntoDeserializer, Unexpected, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Value};

/// A JSON value whose arrays deserialize to lists only, at any depth.
pub(crate) struct StrictValue(pub(crate) Value);

impl StrictValue {
    fn deserialize_object<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &"an object")),
            _ => self.deserialize_any(visitor),
        }
    }
}

impl IntoDeserializer<'_, Error> for StrictValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for StrictValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Self));
                let list = visitor.visit_seq(&mut items)?;
                items.end().map(|()| list)
            }
            Value::Object(fields) => {
                let mut fields = strict_fields(fields);
                let object = visitor.visit_map(&mut fields)?;
                fields.end().map(|()| object)
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_object(visitor)
    }

    /// Variants with named fields are read by this method.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_object(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(strict_fields(fields)))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

fn strict_fields<'de>(
    fields: Map<String, Value>,
) -> MapDeserializer<'de, impl Iterator<Item = (String, StrictValue)>, Error> {
    let strict = |(name, value)| (name, StrictValue(value));
    MapDeserializer::new(fields.into_iter().map(strict))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Limits {
        tokens: u32,
        words: Option<f64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Unit,
        Named { limits: Limits },
        Single(Limits),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        pair: (i8, String),
        list: Vec<Limits>,
        choice: Option<Choice>,
        free: Value,
    }

    fn body_with(field: &str, value: Value) -> Value {
        let mut body = json!({ "pair": [-1, "a"], "list": [], "choice": null, "free": null });
        body[field] = value;
        body
    }

    #[test]
    fn values_without_arrays_for_structs_deserialize_as_ever() {
        let limits = json!({ "tokens": 7, "words": 1.5 });
        for body in [
            body_with("list", json!([limits, { "tokens": 8 }])),
            body_with("choice", json!("unit")),
            body_with("choice", json!({ "unit": null })),
            body_with("choice", json!({ "named": { "limits": limits } })),
            body_with("choice", json!({ "single": limits })),
            body_with("free", json!([[1], { "a": [true, null, "x", -2, 0.5] }])),
            body_with("pair", json!([1000, "a"])),
            body_with("choice", json!("other")),
            body_with("choice", json!({ "unit": null, "single": limits })),
            body_with("list", json!({})),
            body_with("list", json!([{ "tokens": "7" }])),
            json!({}),
            json!(null),
        ] {
            let strict = Body::deserialize(StrictValue(body.clone()));
            let plain = serde_json::from_value::<Body>(body.clone());
            let text = |error: Error| error.to_string();
            assert_eq!(strict.map_err(text), plain.map_err(text), "{body}");
        }
    }

    #[test]
    fn array_is_no_struct_at_any_depth() {
        for body in [
            json!([[-1, "a"], [], null, null]),
            body_with("list", json!([{ "tokens": 1 }, [7, 9]])),
            body_with("choice", json!({ "named": [{ "tokens": 1 }] })),
            body_with("choice", json!({ "named": { "limits": [7, 9] } })),
            body_with("choice", json!({ "single": [7, 9] })),
        ] {
            let error = Body::deserialize(StrictValue(body.clone())).unwrap_err();
            assert_eq!(
                error.to_string(),
                "invalid type: sequence, expected an object",
                "{body}"
            );
        }
    }
}
