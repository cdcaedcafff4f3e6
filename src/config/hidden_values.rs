//! Hides secrets in the configuration before it is printed.

use toml::{Table, Value};

/// Keys whose values are never printed.
const SECRET_KEYS: [&str; 6] = [
    "secret",
    "admin.token",
    "redis.url",
    "scylla.password",
    "files.secret_access_key",
    "model.api_key",
];
/// Words that mark librdkafka properties whose values are never printed.
const SECRET_PROPERTY_WORDS: [&str; 4] = ["password", "secret", "pem", "oauthbearer.config"];
pub(super) const HIDDEN: &str = "(hidden)";

/// Replaces all secrets of the configuration.
pub(super) fn hide_secrets(table: &mut Table) {
    for path in SECRET_KEYS {
        hide_value(table, path);
    }
    hide_properties(table);
    hide_all_credentials(table);
}

/// Hides secret properties of the Kafka client. They are recognized by name, because any property
/// is accepted.
fn hide_properties(table: &mut Table) {
    let bus = table.get_mut("bus").and_then(Value::as_table_mut);
    let Some(Value::Table(properties)) = bus.and_then(|bus| bus.get_mut("properties")) else {
        return;
    };
    for (name, value) in properties.iter_mut() {
        if SECRET_PROPERTY_WORDS.iter().any(|word| name.contains(word)) {
            *value = HIDDEN.into();
        }
    }
}

fn hide_all_credentials(table: &mut Table) {
    table
        .iter_mut()
        .for_each(|(_, value)| hide_credentials(value));
}

/// Hides credentials in all URLs, so that no key can be forgotten.
fn hide_credentials(value: &mut Value) {
    match value {
        Value::Table(table) => hide_all_credentials(table),
        Value::Array(values) => values.iter_mut().for_each(hide_credentials),
        Value::String(text) => *text = without_credentials(text),
        _ => {}
    }
}

/// Replaces user, password and query of a URL. Text that is no valid URL is treated alike and may
/// lose more, because what cannot be parsed may contain a password too.
pub(super) fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("//") {
        Some((scheme, rest)) => (format!("{scheme}//"), rest),
        None if text.contains('@') => (String::new(), text),
        None => return text.to_owned(),
    };
    let (place, query) = match rest.split_once(['?', '#']) {
        // The password could contain the character.
        Some((_, query)) if query.contains('@') => return format!("{scheme}{HIDDEN}"),
        Some((place, _)) => (place, format!("?{HIDDEN}")),
        None => (rest, String::new()),
    };
    match place.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}{HIDDEN}@{place}{query}"),
        None => format!("{scheme}{place}{query}"),
    }
}

fn hide_value(table: &mut Table, path: &str) {
    let mut keys = path.split('.');
    let (Some(first), second) = (keys.next(), keys.next()) else {
        return;
    };
    let slot = match (table.get_mut(first), second) {
        (Some(Value::Table(table)), Some(second)) => table.get_mut(second),
        (slot, _) => slot,
    };
    if let Some(slot) = slot
        && slot.as_str().is_some_and(|text| !text.is_empty())
    {
        *slot = HIDDEN.into();
    }
}
