//! Fonts of a PDF document: the characters and widths of their codes.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::unicode_map::UnicodeMap;

/// Largest unpacked size of a map of characters, in bytes.
const MAP_BYTES_MAX: usize = 2 << 20;
/// Most codes of a font with a width of their own.
const WIDTHS_MAX: i64 = 70_000;

/// A font.
pub(super) struct DocumentFont<'a> {
    map: Option<UnicodeMap>,
    encoding: Option<Encoding<'a>>,
    /// Length of codes, in bytes.
    code_bytes: usize,
    /// Widths by code, in heights of the font.
    widths: HashMap<u32, f32>,
    /// Width of other codes; none: it depends on the character.
    default_width: Option<f32>,
}

/// A code of a text with its character.
pub(super) struct FontCode {
    pub(super) text: String,
    /// Width in heights of the font.
    pub(super) width: f32,
    /// The code is the space of a simple font, which word spacing applies to.
    pub(super) is_space: bool,
}

impl<'a> DocumentFont<'a> {
    /// Reads a font. Parts that are damaged are missing.
    pub(super) fn read(document: &'a Document, font: &'a Dictionary) -> Self {
        let map = font
            .get_deref(b"ToUnicode", document)
            .and_then(Object::as_stream)
            .and_then(|stream| stream.get_plain_content_with_limit(MAP_BYTES_MAX))
            .map(|stream| UnicodeMap::parse(&stream))
            .ok();
        let descendant = font
            .get_deref(b"DescendantFonts", document)
            .and_then(Object::as_array)
            .ok()
            .and_then(|fonts| document.dereference(fonts.first()?).ok()?.1.as_dict().ok());
        let is_composite = descendant.is_some();
        // The encoding of a composite font is read from the same map.
        let encoding = if is_composite && map.is_some() {
            None
        } else {
            font.get_font_encoding_with_limit(document, MAP_BYTES_MAX)
                .ok()
        };
        let listed = map.as_ref().and_then(|map| map.code_bytes);
        let code_bytes = match listed {
            Some(length @ 1..=4) if is_composite => length,
            _ => 1 + usize::from(is_composite),
        };
        let (widths, default_width) = match descendant {
            Some(descendant) => composite_widths(document, descendant),
            None => simple_widths(document, font),
        };
        Self {
            map,
            encoding,
            code_bytes,
            widths,
            default_width,
        }
    }

    /// Calls `take` with each code of a text.
    pub(super) fn decode(&self, text: &[u8], mut take: impl FnMut(FontCode)) {
        for bytes in text.chunks(self.code_bytes) {
            let code = bytes
                .iter()
                .fold(0, |code, byte| code << 8 | u32::from(*byte));
            let mapped = self.map.as_ref().and_then(|map| map.get(code));
            let text = mapped.or_else(|| self.encoding.as_ref()?.bytes_to_string(bytes).ok());
            let text = text.unwrap_or_default();
            let width = self.widths.get(&code).copied().or(self.default_width);
            take(FontCode {
                width: width.unwrap_or_else(|| text.chars().map(typical_width).sum()),
                text,
                is_space: bytes == b" ",
            });
        }
    }
}

/// Returns the widths of a font with codes of one byte.
fn simple_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, Option<f32>) {
    let number = |object: &Object| document.dereference(object).ok()?.1.as_float().ok();
    let scale = match font
        .get_deref(b"FontMatrix", document)
        .and_then(Object::as_array)
    {
        Ok(matrix) => matrix.first().and_then(number).unwrap_or(0.001).abs(),
        Err(_) => 0.001,
    };
    let first = font
        .get_deref(b"FirstChar", document)
        .and_then(Object::as_i64)
        .ok()
        .and_then(|first| u32::try_from(first).ok());
    let widths = font
        .get_deref(b"Widths", document)
        .and_then(Object::as_array);
    let (Some(first), Ok(widths)) = (first, widths) else {
        return (HashMap::new(), None);
    };
    let widths = (first..=u32::from(u8::MAX)).zip(widths);
    let widths = widths.filter_map(|(code, width)| Some((code, number(width)? * scale)));
    (widths.collect(), None)
}

/// Returns the widths of a font with longer codes.
fn composite_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, Option<f32>) {
    let number = |object: &Object| document.dereference(object).ok()?.1.as_float().ok();
    let default = font.get(b"DW").ok().and_then(number).unwrap_or(1000.0) / 1000.0;
    let mut widths = HashMap::new();
    let Ok(listed) = font.get_deref(b"W", document).and_then(Object::as_array) else {
        return (widths, Some(default));
    };
    let code = |object: &Object| document.dereference(object).ok()?.1.as_i64().ok();
    let mut rest = listed.iter();
    // Either a first code with the widths from there on, or a first and last code with one width.
    while let (Some(first), Some(next)) = (rest.next().and_then(code), rest.next()) {
        let next = document
            .dereference(next)
            .map_or(next, |(_, object)| object);
        if let Object::Array(array) = next {
            for (code, width) in (first..=WIDTHS_MAX).zip(array) {
                if let (Ok(code), Some(width)) = (u32::try_from(code), number(width)) {
                    widths.insert(code, width / 1000.0);
                }
            }
        } else if let (Ok(last), Some(width)) = (next.as_i64(), rest.next().and_then(number)) {
            for code in first..=last.min(WIDTHS_MAX) {
                if let Ok(code) = u32::try_from(code) {
                    widths.insert(code, width / 1000.0);
                }
            }
        } else {
            break;
        }
    }
    (widths, Some(default))
}

/// Returns the width of a character in most fonts.
const fn typical_width(character: char) -> f32 {
    match character {
        ' ' | '!' | '\'' | '(' | ')' | ',' | '.' | '/' | ':' | ';' | 'I' | '[' | ']' | 'f'
        | 'i' | 'j' | 'l' | 'r' | 't' | '|' => 0.29,
        '%' | '@' | 'M' | 'W' | 'm' | 'w' => 0.85,
        'A'..='Z' => 0.67,
        _ => 0.54,
    }
}
