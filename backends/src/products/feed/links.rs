//! Web addresses of products. An address is kept whole or left out with a reason.

use url::Url;

const URL_BYTES_MAX: usize = 2048;

/// Returns the address of a product's page.
///
/// # Errors
/// The reason why it is left out.
pub(super) fn page_address(text: &str) -> Result<String, &'static str> {
    web_address(text.trim())
}

/// Returns the first address of a text, which often lists several pictures.
///
/// # Errors
/// The reason why it is left out.
pub(super) fn picture_address(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let is_separator =
        |character: char| character.is_whitespace() || matches!(character, ',' | '|' | ';');
    // A separator ends an address only if another address follows.
    let end = text.char_indices().find(|(index, character)| {
        let rest = text[*index..].trim_start_matches(is_separator);
        is_separator(*character)
            && (rest.is_empty()
                || ["http://", "https://", "//"].iter().any(|beginning| {
                    rest.get(..beginning.len())
                        .is_some_and(|start| start.eq_ignore_ascii_case(beginning))
                }))
    });
    web_address(end.map_or(text, |(index, _)| &text[..index]))
}

/// Any other scheme than http(s) would run or open something on the visitor's machine.
fn web_address(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let whole = if text.starts_with("//") {
        format!("https:{text}")
    } else {
        text.to_owned()
    };
    if whole.len() > URL_BYTES_MAX {
        return Err("is longer than 2048 bytes and was left out");
    }
    let is_clean = !whole
        .chars()
        .any(|character| character.is_control() || "<>\"`\\".contains(character));
    let url = Url::parse(&whole).ok().filter(|url| {
        is_clean
            && matches!(url.scheme(), "http" | "https")
            && whole.contains("://")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    });
    match url {
        None => Err("is no http(s) address and was left out"),
        Some(url) if whole.contains(char::is_whitespace) => Ok(url.into()),
        Some(_) => Ok(whole),
    }
}
