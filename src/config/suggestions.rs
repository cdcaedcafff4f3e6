//! Suggestions for names of settings that do not exist.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// Beginning of all variables that look like settings.
const PREFIX: &str = "SWITCHBOARD_";
/// Variables that the command line reads.
const COMMAND_LINE: [&str; 2] = ["SWITCHBOARD_CONFIG", "SWITCHBOARD_ROLE"];
/// Common names of what a setting of another name does.
const OTHER_NAMES: [(&str, &str); 3] = [
    ("SWITCHBOARD_PORT", "SWITCHBOARD__INGRESS__LISTEN"),
    ("SWITCHBOARD_HOST", "SWITCHBOARD__INGRESS__LISTEN"),
    ("SWITCHBOARD_URL", "SWITCHBOARD__PUBLIC_URL"),
];

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
    let variables = settings.iter().map(|path| variable_of(path));
    let variables: Vec<_> = variables.chain(COMMAND_LINE.map(str::to_owned)).collect();
    let is_suspect = |name: &str, value: &str| {
        name.starts_with(PREFIX)
            && !name.starts_with("SWITCHBOARD__")
            && !COMMAND_LINE.contains(&name)
            && !is_of_kubernetes(name, value)
    };
    let suspects = environment
        .iter()
        .filter(|(name, value)| is_suspect(name, value));
    suspects
        .map(|(name, _)| {
            let other = OTHER_NAMES.iter().find(|(other, _)| other == name);
            let hint = match other {
                Some((_, setting)) => format!("; did you mean {setting}?"),
                None => did_you_mean(name, &variables),
            };
            format!("{name} is not a setting and has no effect{hint}")
        })
        .collect()
}

/// Returns whether Kubernetes sets this variable in every container for a service named
/// `switchboard`.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    name.starts_with("SWITCHBOARD_SERVICE_")
        || name.starts_with("SWITCHBOARD_PORT_")
        || (name == "SWITCHBOARD_PORT" && value.contains("://"))
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
            "SWITCHBOARD_PORT",
            "SWITCHBOARD_ROLES",
            "SWITCHBOARD_SERVICE_HOST",
            "SWITCHBOARD_PORT_8080_TCP",
            "PATH",
        ];
        let environment = environment.map(|name| (name.to_owned(), "8080".to_owned()));
        assert_eq!(
            unknown_variables(&environment.into(), &settings()),
            [
                "SWITCHBOARD_DATA_DIR is not a setting and has no effect; did you mean SWITCHBOARD__DATA_DIR?",
                "SWITCHBOARD_FAVORITE_COLOR is not a setting and has no effect",
                "SWITCHBOARD_PORT is not a setting and has no effect; did you mean SWITCHBOARD__INGRESS__LISTEN?",
                "SWITCHBOARD_PROVIDER_PRIVATE_NETWORKS is not a setting and has no effect; did you mean \
                 SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS?",
                "SWITCHBOARD_ROLES is not a setting and has no effect; did you mean SWITCHBOARD_ROLE?",
            ]
        );
        let of_kubernetes = (
            "SWITCHBOARD_PORT".to_owned(),
            "tcp://10.0.0.7:80".to_owned(),
        );
        assert!(unknown_variables(&[of_kubernetes].into(), &settings()).is_empty());
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
