//! The keyspace of a namespace, and its insertion into CQL, which cannot bind names as values.

/// Keyspace of an installation without a namespace, and the name used in the CQL files.
const DEFAULT_KEYSPACE: &str = "switchboard";
/// Maximum length of a name in both databases.
const KEYSPACE_CHARS_MAX: usize = 48;

/// A keyspace name of lower-case letters, digits and underscores that starts with a letter and
/// needs no quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyspaceName(String);

impl KeyspaceName {
    /// Returns the keyspace of a namespace. Invalid characters become underscores.
    pub(super) fn of_namespace(namespace: &str) -> Self {
        let name: String = namespace
            .trim_end_matches(['.', '-', '_'])
            .chars()
            .map(keyspace_char)
            .collect();
        let name = match name.chars().next() {
            None => DEFAULT_KEYSPACE.to_owned(),
            Some(first) if first.is_ascii_lowercase() => name,
            Some(_) => format!("{DEFAULT_KEYSPACE}_{name}"),
        };
        Self(name.chars().take(KEYSPACE_CHARS_MAX).collect())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the statement with its tables in this keyspace.
    pub(super) fn qualify(&self, cql: &str) -> String {
        cql.replace("switchboard.", &format!("{}.", self.0))
    }
}

fn keyspace_char(character: char) -> char {
    let lower = character.to_ascii_lowercase();
    if lower.is_ascii_lowercase() || lower.is_ascii_digit() {
        lower
    } else {
        '_'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspace_of_any_namespace_needs_no_quotes() {
        let cases = [
            ("", "switchboard"),
            ("prod.", "prod"),
            ("Team-A.eu", "team_a_eu"),
            ("7up", "switchboard_7up"),
            ("é; DROP", "switchboard____drop"),
        ];
        for (namespace, keyspace) in cases {
            assert_eq!(KeyspaceName::of_namespace(namespace).as_str(), keyspace);
        }
        assert_eq!(
            KeyspaceName::of_namespace(&"n".repeat(100)).as_str().len(),
            KEYSPACE_CHARS_MAX
        );
    }

    #[test]
    fn statements_name_tables_of_the_keyspace() {
        let cql = KeyspaceName::of_namespace("a").qualify("SELECT body FROM switchboard.replies");
        assert_eq!(cql, "SELECT body FROM a.replies");
    }
}
