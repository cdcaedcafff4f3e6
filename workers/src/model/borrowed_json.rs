//! JSON that is read in place: texts, names and list elements that borrow from the data.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// A name, or another text without lone surrogates.
#[derive(Deserialize)]
pub(super) struct FieldName<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A JSON string as bytes: the only form in which half a surrogate pair survives.
pub(super) struct TextBytes<'a>(pub(super) Cow<'a, [u8]>);

impl<'a> TextBytes<'a> {
    pub(super) fn parse(json: &'a RawValue) -> Option<Self> {
        serde_json::from_str(json.get()).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextBytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextBytesVisitor;
        impl<'de> Visitor<'de> for TextBytesVisitor {
            type Value = TextBytes<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<TextBytes<'de>, E> {
                Ok(TextBytes(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<TextBytes<'de>, E> {
                Ok(TextBytes(Cow::Owned(bytes.to_vec())))
            }
        }
        deserializer.deserialize_bytes(TextBytesVisitor)
    }
}

/// The first element of a list, or an element without a list; only one choice is ever requested.
pub(super) struct FirstElement<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FirstElement<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstElementVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstElementVisitor<T> {
            type Value = FirstElement<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<FirstElement<T>, A::Error> {
                let first = list.next_element::<Option<T>>()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(FirstElement(first.flatten()))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<FirstElement<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
                    .map(|element| FirstElement(Some(element)))
            }
        }
        deserializer.deserialize_any(FirstElementVisitor(PhantomData))
    }
}

/// Returns the text of a JSON string.
pub(super) fn raw_text(value: &RawValue) -> Option<Cow<'_, str>> {
    let name: FieldName<'_> = serde_json::from_str(value.get()).ok()?;
    Some(name.0)
}

/// Returns the text of a text event of the Responses API.
pub(super) fn parse_text_delta(data: &[u8]) -> Option<Cow<'_, [u8]>> {
    #[derive(Deserialize)]
    struct TextDelta<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        delta: &'a RawValue,
    }
    let event: TextDelta<'_> = serde_json::from_slice(data).ok()?;
    let is_text = matches!(
        &*event.kind,
        "response.output_text.delta" | "response.refusal.delta"
    );
    is_text
        .then(|| TextBytes::parse(event.delta))?
        .map(|text| text.0)
}
