//! Conversion of markup to text: removes tags, decodes common entities and collapses white space.

/// Maximum length of an entity's name, in characters.
const ENTITY_CHARS_MAX: usize = 10;

/// Returns `text` without tags, control characters and repeated white space.
pub(super) fn plain_text(text: &str) -> String {
    let decoded = if text.contains('&') {
        decode_entities(text)
    } else {
        text.to_owned()
    };
    let untagged = if decoded.contains('<') {
        without_tags(&decoded)
    } else {
        decoded
    };
    let mut plain = String::with_capacity(untagged.len());
    for word in
        untagged.split(|character: char| character.is_whitespace() || character.is_control())
    {
        if !word.is_empty() {
            if !plain.is_empty() {
                plain.push(' ');
            }
            plain.push_str(word);
        }
    }
    plain
}

/// Returns at most the first `chars_max` characters.
pub(super) fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => text[..end].trim_end().to_owned(),
        None => text.to_owned(),
    }
}

fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('<') {
        let behind = &rest[begin + 1..];
        let is_tag = behind.starts_with(|character: char| {
            character.is_ascii_alphabetic() || "/!?".contains(character)
        });
        kept.push_str(&rest[..begin]);
        match behind.find('>') {
            Some(end) if is_tag => {
                // Words on both sides of a tag are separate words.
                kept.push(' ');
                rest = &behind[end + 1..];
            }
            None if is_tag => return kept,
            _ => {
                kept.push('<');
                rest = behind;
            }
        }
    }
    kept.push_str(rest);
    kept
}

fn decode_entities(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('&') {
        decoded.push_str(&rest[..begin]);
        let behind = &rest[begin + 1..];
        let end = behind
            .char_indices()
            .take(ENTITY_CHARS_MAX)
            .find(|(_, character)| *character == ';');
        match end.and_then(|(end, _)| Some((end, decode_entity(&behind[..end])?))) {
            Some((end, character)) => {
                decoded.push(character);
                rest = &behind[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = behind;
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn decode_entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "euro" => '€',
        "pound" => '£',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "ndash" => '–',
        "mdash" => '—',
        _ => return None,
    })
}
