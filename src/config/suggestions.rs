//! Suggestions for names of settings that do not exist.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// Beginning of all variables that look like settings.
const PREFIX: &str = "SWITCHBOARD_";
/// Variables that the command line reads.
const COMMAND_LINE: [&str; 2] = ["SWITCHBOARD_CONFIG", "SWITCHBOARD_ROLE"];
/// Variables that Kubernetes sets in every container for a service named `switchboard`.
const KUBERNETES: [&str; 2] = ["SWITCHBOARD_SERVICE_", "SWITCHBOARD_PORT"];

/// Returns the paths of all settings of a table, separated by dots.
pub(super) fn setting_paths(table: &Table) -> Vec<String> {
    let paths = table.iter().flat_map(|(key, value)| match value {
        Value::Table(table) => {
            let inner = setting_paths(table).into_iter();
            inner.map(|path| format!("{key}.{path}")).collect()
        }
        _ => vec![key.clone()],
    });
    paths.collect()
}

/// Returns the variable that sets a setting.
pub(super) fn variable_of(path: &str) -> String {
    format!("{PREFIX}_{}", path.replace('.', "__").to_uppercase())
}

/// Returns `; did you mean …?` with the known name that is most like `given`, or nothing.
pub(super) fn did_you_mean(given: &str, known: &[String]) -> String {
    let distance_max = (given.len() / 5).max(2);
    let given = plain(given);
    let setting = given.trim_start_matches("switchboard_");
    let distance = |name: &String| {
        let name = plain(name);
        let whole = strsim::damerau_levenshtein(&given, &name);
        // The section is often forgotten.
        let end = name.len().saturating_sub(setting.len() + 1);
        match name.get(end..).and_then(|rest| rest.strip_prefix('_')) {
            Some(rest) if rest == setting => whole.min(1),
            _ => whole,
        }
    };
    let nearest = known.iter().min_by_key(|name| distance(name));
    nearest
        .filter(|name| distance(name) <= distance_max)
        .map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Returns a warning for each variable that looks like a setting and is none. Those with the
/// whole prefix are errors instead.
pub(super) fn unknown_variables(
    environment: &BTreeMap<String, String>,
    settings: &[String],
) -> Vec<String> {
    let variables: Vec<_> = settings.iter().map(|path| variable_of(path)).collect();
    let is_suspect = |name: &str| {
        name.starts_with(PREFIX)
            && !name.starts_with("SWITCHBOARD__")
            && !COMMAND_LINE.contains(&name)
            && !KUBERNETES.iter().any(|prefix| name.starts_with(prefix))
    };
    let suspects = environment.keys().filter(|name| is_suspect(name));
    suspects
        .map(|name| {
            let hint = did_you_mean(name, &variables);
            format!("{name} is not a setting and has no effect{hint}")
        })
        .collect()
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace("__", "_").replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Vec<String> {
        let table = "data_dir = ''\nsecret = ''\n[workers]\nprovider_private_networks = []\n[ops]\nlisten = ''";
        setting_paths(&table.parse().unwrap())
    }

    #[test]
    fn unknown_variable_is_warned_about_with_the_nearest_name() {
        let environment = [
            "SWITCHBOARD_DATA_DIR",
            "SWITCHBOARD_PROVIDER_PRIVATE_NETWORKS",
            "SWITCHBOARD_FAVORITE_COLOR",
            "SWITCHBOARD__OPS__LISTEN",
            "SWITCHBOARD_CONFIG",
            "SWITCHBOARD_SERVICE_HOST",
            "SWITCHBOARD_PORT_8080_TCP",
            "PATH",
        ];
        let environment = environment.map(|name| (name.to_owned(), String::new()));
        assert_eq!(
            unknown_variables(&environment.into(), &settings()),
            [
                "SWITCHBOARD_DATA_DIR is not a setting and has no effect; did you mean SWITCHBOARD__DATA_DIR?",
                "SWITCHBOARD_FAVORITE_COLOR is not a setting and has no effect",
                "SWITCHBOARD_PROVIDER_PRIVATE_NETWORKS is not a setting and has no effect; did you mean \
                 SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS?",
            ]
        );
    }

    #[test]
    fn suggestion_is_near_or_lacks_only_the_section() {
        for (given, suggestion) in [
            ("data_dri", "; did you mean data_dir?"),
            (
                "worker.provider_private_networks",
                "; did you mean workers.provider_private_networks?",
            ),
            ("listen", "; did you mean ops.listen?"),
            ("colour", ""),
        ] {
            assert_eq!(did_you_mean(given, &settings()), suggestion, "{given}");
        }
    }
}
