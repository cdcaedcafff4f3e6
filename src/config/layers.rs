//! Layers of the configuration: environment variables override a file, which overrides the shipped
//! defaults.
//!
//! The shipped file also defines which keys exist and their types. Unknown keys and wrong types are
//! reported together, each with its key.

use std::{collections::BTreeMap, path::Path};

use toml::{Table, Value};

use super::suggestions::{did_you_mean, setting_paths, variable_of};

/// Prefix of all environment variables of the service; `__` separates sections from keys.
const ENVIRONMENT_PREFIX: &str = "SWITCHBOARD__";
/// Suffix of a variable that names a file containing the value, for mounted secrets.
const FILE_SUFFIX: &str = "_FILE";
/// End of the error for a setting that does not exist.
const UNKNOWN_KEY: &str = ": unknown key";
/// Tables that accept any key, because another program defines them.
const FREE_TABLES: [&str; 2] = ["bus.properties", "workers.weights"];

/// Merges `file` and then `environment` into the shipped `defaults`, and appends what is invalid to
/// `errors`.
pub(super) fn merge_layers(
    mut defaults: Table,
    file: Table,
    environment: &BTreeMap<String, String>,
    errors: &mut Vec<String>,
) -> Table {
    let known = setting_paths(&defaults);
    merge_table(&mut defaults, file, "", &known, errors);
    for (name, text) in environment {
        if let Some(path) = name.strip_prefix(ENVIRONMENT_PREFIX) {
            let before = errors.len();
            apply_variable(&mut defaults, name, path, text, errors);
            if let Some(error) = errors
                .get_mut(before)
                .filter(|error| error.ends_with(UNKNOWN_KEY))
            {
                let variables: Vec<_> = known.iter().map(|path| variable_of(path)).collect();
                error.push_str(&did_you_mean(name, &variables));
            }
        }
    }
    defaults
}

fn merge_table(
    base: &mut Table,
    over: Table,
    prefix: &str,
    known: &[String],
    errors: &mut Vec<String>,
) {
    for (key, value) in over {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => {
                merge_table(base, over, &path, known, errors);
            }
            (Some(slot), value) if has_same_type(slot, &value) => *slot = value,
            (Some(slot), value) => {
                errors.push(format!(
                    "{path}: expected {}, found {}",
                    slot.type_str(),
                    value.type_str()
                ));
            }
            (None, value) if FREE_TABLES.contains(&prefix) => {
                base.insert(key, value);
            }
            (None, _) => errors.push(format!("{path}{UNKNOWN_KEY}{}", did_you_mean(&path, known))),
        }
    }
}

fn has_same_type(slot: &Value, value: &Value) -> bool {
    slot.same_type(value) || matches!((slot, value), (Value::Float(_), Value::Integer(_)))
}

fn apply_variable(base: &mut Table, name: &str, path: &str, text: &str, errors: &mut Vec<String>) {
    if let Some(slot) = find_value(base, &split_path(path)) {
        set_from_text(slot, name, text, errors);
    } else if let Some(slot) = path
        .strip_suffix(FILE_SUFFIX)
        .and_then(|path| find_value(base, &split_path(path)))
    {
        match std::fs::read_to_string(Path::new(text)) {
            Ok(content) => set_from_text(slot, name, content.trim(), errors),
            Err(error) => errors.push(format!("{name}: cannot read the file it names: {error}")),
        }
    } else {
        errors.push(format!("{name}{UNKNOWN_KEY}"));
    }
}

fn split_path(path: &str) -> Vec<String> {
    path.to_lowercase().split("__").map(str::to_owned).collect()
}

fn find_value<'a>(table: &'a mut Table, keys: &[String]) -> Option<&'a mut Value> {
    match keys {
        [key] => table.get_mut(key).filter(|value| !value.is_table()),
        [key, rest @ ..] => find_value(table.get_mut(key)?.as_table_mut()?, rest),
        [] => None,
    }
}

/// Parses `text` as the type of the shipped default; lists are comma-separated.
fn set_from_text(slot: &mut Value, name: &str, text: &str, errors: &mut Vec<String>) {
    // Values of lists are addresses and networks, which contain none of these.
    if slot.is_array() && text.contains(['[', ']', '"', '\'']) {
        errors.push(format!(
            "{name}: {text} is not a comma-separated list such as 10.0.0.0/8,::1 (without brackets and quotes)"
        ));
        return;
    }
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
        None => errors.push(format!("{name}: expected {}", slot.type_str())),
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
        let mut errors = Vec::new();
        let merged = merge_layers(defaults, table(file), &environment, &mut errors);
        (merged, errors)
    }

    #[test]
    fn environment_overrides_file_and_file_overrides_defaults() {
        let (table, errors) = merged(
            "[bus]\nbrokers = \"b\"\npartitions = 9",
            &[("SWITCHBOARD__BUS__BROKERS", "c")],
        );
        assert_eq!(table["bus"]["brokers"].as_str(), Some("c"));
        assert_eq!(table["bus"]["partitions"].as_integer(), Some(9));
        assert!(errors.is_empty());
    }

    #[test]
    fn all_errors_are_reported_with_their_keys() {
        let (_, errors) = merged(
            "demmo = true\n[bus]\npartitions = \"many\"\n[ingres]\nx = 1",
            &[
                ("SWITCHBOARD__BUS__PARTITIONS", "few"),
                ("SWITCHBOARD__NO__SUCH", "x"),
            ],
        );
        assert_eq!(
            errors,
            [
                "bus.partitions: expected integer, found string",
                "demmo: unknown key; did you mean demo?",
                "ingres: unknown key",
                "SWITCHBOARD__BUS__PARTITIONS: expected integer",
                "SWITCHBOARD__NO__SUCH: unknown key",
            ]
        );
    }

    #[test]
    fn lists_use_commas_and_flags_ignore_case() {
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
    fn list_in_brackets_is_refused_with_its_value() {
        let list = r#"["127.0.0.0/8"]"#;
        let (_, errors) = merged("", &[("SWITCHBOARD__INGRESS__PROXIES", list)]);
        assert!(
            errors[0].contains(list) && errors[0].contains("comma-separated"),
            "{errors:?}"
        );
    }

    #[test]
    fn value_is_read_from_a_named_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from-file\n").unwrap();
        let (table, errors) = merged(
            "",
            &[(
                "SWITCHBOARD__BUS__BROKERS_FILE",
                file.path().to_str().unwrap(),
            )],
        );
        assert_eq!(table["bus"]["brokers"].as_str(), Some("from-file"));
        assert!(errors.is_empty());
    }

    #[test]
    fn kafka_client_properties_accept_any_key() {
        let (table, errors) = merged("[bus.properties]\n\"sasl.mechanism\" = \"PLAIN\"", &[]);
        assert_eq!(
            table["bus"]["properties"]["sasl.mechanism"].as_str(),
            Some("PLAIN")
        );
        assert!(errors.is_empty());
    }
}
