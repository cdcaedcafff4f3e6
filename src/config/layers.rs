//! How the effective configuration is made: the shipped defaults, a file over them, the environment over both.
//!
//! The shipped file is also the list of what exists and of which type it is, so that a misspelt key, a wrong type and a
//! forgotten section are told at once, all together, each with its key.

use std::{collections::BTreeMap, path::Path};

use toml::{Table, Value};

/// What every variable of ours begins with; `__` parts sections from keys.
const ENVIRONMENT_PREFIX: &str = "SWITCHBOARD__";
/// Ending of a variable that names a file with the value, for secrets.
const FILE_SUFFIX: &str = "_FILE";
/// Tables whose keys are the operator's own.
const FREE_TABLES: [&str; 1] = ["bus.properties"];

/// Lays `file` and then `environment` over the shipped `defaults`; mistakes are added to `mistakes`.
pub(super) fn merge(
    mut defaults: Table,
    file: Table,
    environment: &BTreeMap<String, String>,
    mistakes: &mut Vec<String>,
) -> Table {
    lay_over(&mut defaults, file, "", mistakes);
    for (name, text) in environment {
        if let Some(path) = name.strip_prefix(ENVIRONMENT_PREFIX) {
            lay_variable(&mut defaults, name, path, text, mistakes);
        }
    }
    defaults
}

fn lay_over(base: &mut Table, over: Table, prefix: &str, mistakes: &mut Vec<String>) {
    for (key, value) in over {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => lay_over(base, over, &path, mistakes),
            (Some(slot), value) if same_type(slot, &value) => *slot = value,
            (Some(slot), value) => {
                mistakes.push(format!(
                    "{path}: expected {}, found {}",
                    slot.type_str(),
                    value.type_str()
                ));
            }
            (None, value) if FREE_TABLES.contains(&prefix) => {
                base.insert(key, value);
            }
            (None, _) => mistakes.push(format!("{path}: unknown key")),
        }
    }
}

fn same_type(slot: &Value, value: &Value) -> bool {
    slot.same_type(value) || matches!((slot, value), (Value::Float(_), Value::Integer(_)))
}

fn lay_variable(base: &mut Table, name: &str, path: &str, text: &str, mistakes: &mut Vec<String>) {
    let keys: Vec<String> = path.to_lowercase().split("__").map(str::to_owned).collect();
    if let Some(slot) = slot(base, &keys) {
        set(slot, name, text, mistakes);
    } else if let Some(slot) = path
        .strip_suffix(FILE_SUFFIX)
        .map(|path| {
            path.to_lowercase()
                .split("__")
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .and_then(|keys| slot_of(base, keys))
    {
        match std::fs::read_to_string(Path::new(text)) {
            Ok(content) => set(slot, name, content.trim(), mistakes),
            Err(error) => mistakes.push(format!("{name}: cannot read the file it names: {error}")),
        }
    } else {
        mistakes.push(format!("{name}: unknown key"));
    }
}

fn slot_of(base: &mut Table, keys: Vec<String>) -> Option<&mut Value> {
    slot(base, &keys)
}

fn slot<'a>(table: &'a mut Table, keys: &[String]) -> Option<&'a mut Value> {
    match keys {
        [key] => table.get_mut(key).filter(|value| !value.is_table()),
        [key, rest @ ..] => slot(table.get_mut(key)?.as_table_mut()?, rest),
        [] => None,
    }
}

/// A variable is text; the shipped default says what it stands for. Lists are written with commas.
fn set(slot: &mut Value, name: &str, text: &str, mistakes: &mut Vec<String>) {
    let parsed = match slot {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Integer(_) => text.trim().parse().ok().map(Value::Integer),
        Value::Float(_) => text.trim().parse().ok().map(Value::Float),
        Value::Boolean(_) => text.trim().to_lowercase().parse().ok().map(Value::Boolean),
        Value::Array(_) => Some(Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| item.to_owned().into())
                .collect(),
        )),
        Value::Datetime(_) | Value::Table(_) => None,
    };
    match parsed {
        Some(value) => *slot = value,
        None => mistakes.push(format!("{name}: expected {}", slot.type_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    fn merged(file: &str, environment: &[(&str, &str)]) -> (Table, Vec<String>) {
        let defaults = table(
            "demo = true\n[bus]\nbrokers = \"a\"\npartitions = 8\n[bus.properties]\n[ingress]\nproxies = []",
        );
        let environment = environment
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect();
        let mut mistakes = Vec::new();
        let merged = merge(defaults, table(file), &environment, &mut mistakes);
        (merged, mistakes)
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_defaults() {
        let (table, mistakes) = merged(
            "[bus]\nbrokers = \"b\"\npartitions = 9",
            &[("SWITCHBOARD__BUS__BROKERS", "c")],
        );
        assert_eq!(table["bus"]["brokers"].as_str(), Some("c"));
        assert_eq!(table["bus"]["partitions"].as_integer(), Some(9));
        assert!(mistakes.is_empty());
    }

    #[test]
    fn all_mistakes_are_told_together_each_with_its_key() {
        let (_, mistakes) = merged(
            "demmo = true\n[bus]\npartitions = \"many\"\n[ingres]\nx = 1",
            &[
                ("SWITCHBOARD__BUS__PARTITIONS", "few"),
                ("SWITCHBOARD__NO__SUCH", "x"),
            ],
        );
        assert_eq!(
            mistakes,
            [
                "bus.partitions: expected integer, found string",
                "demmo: unknown key",
                "ingres: unknown key",
                "SWITCHBOARD__BUS__PARTITIONS: expected integer",
                "SWITCHBOARD__NO__SUCH: unknown key",
            ]
        );
    }

    #[test]
    fn a_list_is_written_with_commas_and_a_flag_in_any_case() {
        let (table, _) = merged(
            "",
            &[
                ("SWITCHBOARD__INGRESS__PROXIES", "10.0.0.0/8, ::1"),
                ("SWITCHBOARD__DEMO", "FALSE"),
            ],
        );
        assert_eq!(
            table["ingress"]["proxies"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(table["demo"].as_bool(), Some(false));
    }

    #[test]
    fn a_value_can_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from-file\n").unwrap();
        let (table, mistakes) = merged(
            "",
            &[(
                "SWITCHBOARD__BUS__BROKERS_FILE",
                file.path().to_str().unwrap(),
            )],
        );
        assert_eq!(table["bus"]["brokers"].as_str(), Some("from-file"));
        assert!(mistakes.is_empty());
    }

    #[test]
    fn properties_of_the_kafka_client_are_the_operators_own() {
        let (table, mistakes) = merged("[bus.properties]\n\"sasl.mechanism\" = \"PLAIN\"", &[]);
        assert_eq!(
            table["bus"]["properties"]["sasl.mechanism"].as_str(),
            Some("PLAIN")
        );
        assert!(mistakes.is_empty());
    }
}
