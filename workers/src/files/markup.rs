//! Markup of Office documents as events. Entities that a document declares are not expanded.

use quick_xml::{
    Reader,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

use super::ReadFailure;

/// A piece of markup. Names have no prefix.
pub(super) enum MarkupEvent<'a> {
    /// The beginning of an element, or a whole element without content.
    Start {
        element: BytesStart<'a>,
        is_empty: bool,
    },
    /// The end of an element.
    End(&'a str),
    /// Text between elements.
    Text(&'a str),
}

/// Calls `take` with each piece of a part. Fails if the part declares a document type.
pub(super) fn read_events(
    part: &str,
    mut take: impl FnMut(MarkupEvent<'_>) -> Result<(), ReadFailure>,
) -> Result<(), ReadFailure> {
    let mut reader = Reader::from_str(part);
    loop {
        let event = reader.read_event().map_err(|_| ReadFailure::Damaged)?;
        match event {
            Event::Start(element) => take(MarkupEvent::Start {
                element,
                is_empty: false,
            })?,
            Event::Empty(element) => take(MarkupEvent::Start {
                element,
                is_empty: true,
            })?,
            Event::End(element) => take(MarkupEvent::End(element.local_name().as_ref()))?,
            Event::Text(text) => {
                take(MarkupEvent::Text(&text))?;
            }
            Event::CData(text) => {
                take(MarkupEvent::Text(&text))?;
            }
            Event::GeneralRef(reference) => {
                let character = reference
                    .resolve_char_ref()
                    .map_err(|_| ReadFailure::Damaged)?;
                let mut utf_8 = [0; 4];
                let text = match character {
                    Some(character) => character.encode_utf8(&mut utf_8),
                    None => resolve_predefined_entity(&reference).ok_or(ReadFailure::Damaged)?,
                };
                take(MarkupEvent::Text(text))?;
            }
            // Office writes none, and a declared entity is an attack.
            Event::DocType(_) => return Err(ReadFailure::Damaged),
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// Returns the value of an attribute, with or without a prefix.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let mut named = attributes.with_checks(false).flatten();
    let found = named.find(|found| found.key.local_name().as_ref() == name)?;
    Some(found.value.into_owned())
}
