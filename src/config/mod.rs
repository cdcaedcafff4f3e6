//! The configuration of a process: read once at start, checked whole, passed down in parts.

mod checks;
mod layers;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde::Deserialize;
use switchboard_backends::{
    config::{BackendProfile, BackendsConfig, BusConfig, RedisConfig, ScyllaConfig},
    products::config::ProductsConfig,
};
use switchboard_ingress::config::IngressConfig;
use switchboard_workers::config::WorkersConfig;
use toml::{Table, Value};

/// Every key with its meaning and default; compiled in, so that the documentation cannot drift from the behaviour.
pub(crate) const DEFAULTS: &str = include_str!("../config.default.toml");
/// Keys whose values are never printed.
const SECRET_KEYS: [&str; 5] = [
    "secret",
    "admin.token",
    "redis.url",
    "scylla.password",
    "model.api_key",
];
/// Words in the names of librdkafka properties whose values are never printed.
const SECRET_PROPERTY_WORDS: [&str; 4] = ["password", "secret", "pem", "oauthbearer.config"];
const HIDDEN: &str = "(hidden)";
/// Where a model lives that is named without a base URL.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// Which twins, and where they are.
    pub(crate) backends: BackendsConfig,
    public_url: String,
    /// Whether a first start makes the demo organization.
    pub(crate) demo: bool,
    /// The installation secret as the operator wrote it.
    pub(crate) secret: Option<SecretString>,
    /// HTTP in.
    pub(crate) ingress: IngressConfig,
    /// The private port.
    pub(crate) ops: OpsConfig,
    /// The admin API.
    pub(crate) admin: AdminConfig,
    /// The model of agents that name no provider.
    pub(crate) model: ModelConfig,
    /// Jobs in.
    pub(crate) workers: WorkersConfig,
    /// Logs and traces.
    pub(crate) telemetry: TelemetryConfig,
    table: Table,
}

/// The private port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpsConfig {
    /// `/healthz`, `/readyz`, `/metrics`.
    pub(crate) listen: SocketAddr,
}

/// The admin API.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdminConfig {
    /// A port of its own for `/api/admin`; none: the public port.
    #[serde(deserialize_with = "optional_address")]
    pub(crate) listen: Option<SocketAddr>,
    /// Bearer token for all organizations; empty: none.
    #[serde(deserialize_with = "optional_secret")]
    pub(crate) token: Option<SecretString>,
}

/// The model of agents that name no provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelConfig {
    /// Base of an OpenAI-compatible API; empty: the built-in demo model.
    pub(crate) base_url: String,
    /// Its key.
    #[serde(deserialize_with = "optional_secret")]
    pub(crate) api_key: Option<SecretString>,
    /// Model.
    pub(crate) name: String,
    /// Whether it continues an unfinished assistant message.
    pub(crate) continues_prefix: bool,
}

impl ModelConfig {
    /// Whether somebody brought a key and forgot to name the model.
    pub(crate) const fn has_key_alone(&self) -> bool {
        self.api_key.is_some() && self.name.is_empty() && self.base_url.is_empty()
    }
}

/// Logs and traces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryConfig {
    /// Filter of log lines, in the syntax of `RUST_LOG`.
    pub(crate) log: String,
    /// `auto`, `text` or `json`.
    pub(crate) log_format: LogFormat,
    /// Base URL of an OTLP/HTTP collector; empty: traces are not exported.
    pub(crate) otlp_endpoint: String,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// All mistakes of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("mistakes in the configuration:\n  {}", .0.join("\n  "))]
pub(crate) struct ConfigMistakes(Vec<String>);

impl Config {
    /// Reads defaults, `file` and this process's environment.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, ConfigMistakes> {
        Self::from_layers(file, &std::env::vars().collect())
    }

    fn from_layers(
        file: Option<&Path>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigMistakes> {
        let mut mistakes = Vec::new();
        let file = file
            .map(|path| read_file(path, &mut mistakes))
            .unwrap_or_default();
        let defaults = DEFAULTS
            .parse()
            .map_err(|error| ConfigMistakes(vec![format!("shipped defaults: {error}")]))?;
        let mut table = layers::merge(defaults, file, environment, &mut mistakes);
        adopt_openai_variables(&mut table, environment);
        let config = Self::from_table(table, &mut mistakes);
        match config {
            Some(config) if mistakes.is_empty() => Ok(config),
            _ => Err(ConfigMistakes(mistakes)),
        }
    }

    fn from_table(table: Table, mistakes: &mut Vec<String>) -> Option<Self> {
        // Each section is read before the first `?`, so that one call tells the mistakes of all of them.
        let top = section::<TopLevel>(&without_sections(&table), "", mistakes);
        let ingress = named_section::<IngressConfig>(&table, "ingress", mistakes);
        let ops = named_section::<OpsConfig>(&table, "ops", mistakes);
        let admin = named_section::<AdminConfig>(&table, "admin", mistakes);
        let bus = named_section::<BusConfig>(&table, "bus", mistakes);
        let redis = named_section::<RedisConfig>(&table, "redis", mistakes);
        let scylla = named_section::<ScyllaConfig>(&table, "scylla", mistakes);
        let model = named_section::<ModelConfig>(&table, "model", mistakes);
        let workers = named_section::<WorkersConfig>(&table, "workers", mistakes);
        let products = named_section::<ProductsConfig>(&table, "products", mistakes);
        let telemetry = named_section(&table, "telemetry", mistakes);
        checks::bus(bus.as_ref(), mistakes);
        checks::admin(admin.as_ref(), ingress.as_ref(), ops.as_ref(), mistakes);
        checks::figures(ingress.as_ref(), workers.as_ref(), mistakes);
        mistakes.extend(
            products
                .as_ref()
                .map(ProductsConfig::mistakes)
                .unwrap_or_default(),
        );
        let (top, products) = (top?, products?);
        checks::top_level(&top, mistakes);
        checks::model(model.as_ref(), mistakes);
        if top.profile == BackendProfile::Cluster {
            checks::addresses(bus.as_ref(), redis.as_ref(), scylla.as_ref(), mistakes);
        }
        Some(Self {
            backends: BackendsConfig {
                profile: top.profile,
                data_dir: top.data_dir,
                namespace: top.namespace,
                bus: bus?,
                redis: redis?,
                scylla: scylla?,
            },
            public_url: top.public_url,
            demo: top.demo,
            secret: top.secret,
            ingress: IngressConfig {
                products: products.clone(),
                ..ingress?
            },
            ops: ops?,
            admin: admin?,
            model: model?,
            workers: WorkersConfig {
                products,
                ..workers?
            },
            telemetry: telemetry?,
            table,
        })
    }

    /// Where clients reach the service.
    pub(crate) fn public_url(&self) -> String {
        if self.public_url.is_empty() {
            local_url(self.ingress.listen)
        } else {
            self.public_url.trim_end_matches('/').to_owned()
        }
    }

    /// Where administrators reach this process, from its own machine.
    pub(crate) fn admin_url(&self) -> String {
        local_url(self.admin.listen.unwrap_or(self.ingress.listen))
    }

    /// Where a browser reaches the dashboard.
    pub(crate) fn dashboard_url(&self) -> String {
        if self.admin.listen.is_some() {
            self.admin_url()
        } else {
            self.public_url()
        }
    }

    /// What is in force, as a file; secrets hidden.
    pub(crate) fn to_toml(&self) -> String {
        let mut table = self.table.clone();
        for path in SECRET_KEYS {
            hide(&mut table, path);
        }
        hide_properties(&mut table);
        toml::to_string_pretty(&table).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopLevel {
    profile: BackendProfile,
    data_dir: PathBuf,
    namespace: String,
    public_url: String,
    demo: bool,
    #[serde(deserialize_with = "optional_secret")]
    secret: Option<SecretString>,
}

fn local_url(listen: SocketAddr) -> String {
    if listen.ip().is_unspecified() {
        // "Every address" is none that a browser or a pasted line could go to.
        format!("http://localhost:{}", listen.port())
    } else {
        format!("http://{listen}")
    }
}

fn read_file(path: &Path, mistakes: &mut Vec<String>) -> Table {
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    match read.and_then(|text| text.parse::<Table>().map_err(|error| error.to_string())) {
        Ok(table) => table,
        Err(error) => {
            mistakes.push(format!("{}: {error}", path.display()));
            Table::new()
        }
    }
}

/// The names that every OpenAI client reads; our own keys win.
fn adopt_openai_variables(table: &mut Table, environment: &BTreeMap<String, String>) {
    let Some(model) = table.get_mut("model").and_then(Value::as_table_mut) else {
        return;
    };
    for (variable, key) in [
        ("OPENAI_BASE_URL", "base_url"),
        ("OPENAI_API_KEY", "api_key"),
        ("OPENAI_MODEL", "name"),
    ] {
        let unset = model
            .get(key)
            .and_then(Value::as_str)
            .is_none_or(str::is_empty);
        if let Some(text) = environment
            .get(variable)
            .filter(|text| unset && !text.is_empty())
        {
            model.insert(key.into(), text.clone().into());
        }
    }
    // As with every OpenAI client. A key alone asks for nothing: many shells have one, and a model costs money.
    let is_empty = |key: &str| {
        model
            .get(key)
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
    };
    if is_empty("base_url") && !is_empty("name") {
        model.insert("base_url".into(), OPENAI_BASE_URL.into());
    }
}

fn without_sections(table: &Table) -> Table {
    table
        .iter()
        .filter(|(_, value)| !value.is_table())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn named_section<T: for<'de> Deserialize<'de>>(
    table: &Table,
    name: &str,
    mistakes: &mut Vec<String>,
) -> Option<T> {
    match table.get(name) {
        Some(Value::Table(table)) => section(table, name, mistakes),
        _ => {
            mistakes.push(format!("{name}: section is missing"));
            None
        }
    }
}

fn section<T: for<'de> Deserialize<'de>>(
    table: &Table,
    name: &str,
    mistakes: &mut Vec<String>,
) -> Option<T> {
    match T::deserialize(table.clone()) {
        Ok(section) => Some(section),
        Err(error) => {
            // The standard library's words for it show nobody how to write one.
            let error = error.to_string().replace(
                "invalid socket address syntax",
                "not an address such as 127.0.0.1:8080",
            );
            let reason: Vec<String> = error.lines().map(|line| line.trim().to_owned()).collect();
            // Keys outside all sections have no name before them.
            let at = if name.is_empty() {
                String::new()
            } else {
                format!("{name}: ")
            };
            mistakes.push(format!("{at}{}", reason.join(" ").trim()));
            None
        }
    }
}

fn optional_secret<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(if text.is_empty() {
        None
    } else {
        Some(text.into())
    })
}

fn optional_address<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| serde::de::Error::custom("listen: not an address such as 127.0.0.1:8081"))
}

/// Properties of the Kafka client are the operator's own, so that only their names tell which are secret.
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

fn hide(table: &mut Table, path: &str) {
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

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    fn loaded(environment: &[(&str, &str)]) -> Result<Config, ConfigMistakes> {
        let environment = environment
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect();
        Config::from_layers(None, &environment)
    }

    fn shipped(section: &str) -> serde_json::Value {
        let table: Table = DEFAULTS.parse().unwrap();
        serde_json::to_value(&table[section]).unwrap()
    }

    fn json(defaults: impl Serialize) -> serde_json::Value {
        serde_json::to_value(defaults).unwrap()
    }

    #[test]
    fn the_shipped_file_names_every_key_with_the_default_of_the_code() {
        assert_eq!(shipped("ingress"), json(IngressConfig::default()));
        assert_eq!(shipped("workers"), json(WorkersConfig::default()));
        assert_eq!(shipped("products"), json(ProductsConfig::default()));
        assert!(loaded(&[]).is_ok());
    }

    #[test]
    fn the_cluster_profile_refuses_to_start_without_the_installation_secret() {
        let mistakes = loaded(&[("SWITCHBOARD__PROFILE", "cluster")])
            .unwrap_err()
            .to_string();
        assert!(mistakes.contains("SWITCHBOARD__SECRET"), "{mistakes}");
    }

    #[test]
    fn mistakes_of_all_sections_are_told_together() {
        let mistakes = loaded(&[
            ("SWITCHBOARD__INGRESS__LISTEN", "nowhere"),
            ("SWITCHBOARD__TELEMETRY__LOG_FORMAT", "loud"),
            ("SWITCHBOARD__NAMESPACE", "a b"),
            ("SWITCHBOARD__INGRESS__LOG_POLL_MS", "0"),
            ("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "0"),
        ]);
        let mistakes = mistakes.unwrap_err().to_string();
        for key in ["listen", "log_format", "namespace"] {
            assert!(mistakes.contains(key), "{key} is missing in {mistakes}");
        }
    }

    #[test]
    fn figures_that_cannot_work_are_refused_with_their_keys() {
        let mistakes = loaded(&[
            ("SWITCHBOARD__INGRESS__LOG_POLL_MS", "0"),
            ("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "0"),
            ("SWITCHBOARD__BUS__PARTITIONS", "0"),
            ("OPENAI_BASE_URL", "notaurl"),
            ("OPENAI_MODEL", "m"),
        ]);
        let mistakes = mistakes.unwrap_err().to_string();
        for key in [
            "ingress.log_poll_ms",
            "workers.in_flight_max",
            "bus.partitions",
            "model.base_url",
        ] {
            assert!(mistakes.contains(key), "{key} is missing in {mistakes}");
        }
    }

    #[test]
    fn addresses_and_secrets_that_cannot_work_are_refused_before_anything_starts() {
        let mistakes = loaded(&[
            ("SWITCHBOARD__PROFILE", "cluster"),
            ("SWITCHBOARD__SECRET", "short"),
            ("SWITCHBOARD__ADMIN__TOKEN", "x"),
            ("SWITCHBOARD__BUS__BROKERS", ""),
            ("SWITCHBOARD__SCYLLA__NODES", "node-without-port"),
            ("SWITCHBOARD__REDIS__URL", "http://:canary@127.0.0.1:6379"),
        ]);
        let mistakes = mistakes.unwrap_err().to_string();
        for key in [
            "secret:",
            "admin.token:",
            "bus.brokers:",
            "scylla.nodes:",
            "redis.url:",
        ] {
            assert!(mistakes.contains(key), "{key} is missing in {mistakes}");
        }
        assert!(!mistakes.contains("canary"), "{mistakes}");
        let usual = [
            ("SWITCHBOARD__PROFILE", "cluster"),
            ("SWITCHBOARD__SECRET", "an-installation-secret"),
        ];
        assert!(loaded(&usual).is_ok());
    }

    #[test]
    fn administrators_have_the_public_port_unless_they_are_given_one_that_nothing_else_has() {
        assert_eq!(loaded(&[]).unwrap().admin_url(), "http://127.0.0.1:8080");
        let own = loaded(&[("SWITCHBOARD__ADMIN__LISTEN", "127.0.0.1:8081")]).unwrap();
        assert_eq!(
            (own.admin_url().as_str(), own.public_url().as_str()),
            ("http://127.0.0.1:8081", "http://127.0.0.1:8080")
        );
        for address in ["127.0.0.1:8080", "127.0.0.1:9090", "8081"] {
            let mistakes = loaded(&[("SWITCHBOARD__ADMIN__LISTEN", address)])
                .unwrap_err()
                .to_string();
            assert!(
                mistakes.contains("admin") && mistakes.contains("listen"),
                "{mistakes}"
            );
        }
    }

    #[test]
    fn the_usual_openai_variables_set_the_model_and_our_own_win() {
        let usual = [("OPENAI_BASE_URL", "http://a/v1"), ("OPENAI_MODEL", "m")];
        let config = loaded(&usual).unwrap();
        assert_eq!(
            (config.model.base_url.as_str(), config.model.name.as_str()),
            ("http://a/v1", "m")
        );
        let ours = loaded(&[usual[0], usual[1], ("SWITCHBOARD__MODEL__NAME", "n")]).unwrap();
        assert_eq!(ours.model.name, "n");
    }

    #[test]
    fn a_model_without_a_base_url_is_one_of_openai_and_a_key_alone_asks_for_nothing() {
        let named = loaded(&[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m")]).unwrap();
        assert_eq!(named.model.base_url, OPENAI_BASE_URL);
        let alone = loaded(&[("OPENAI_API_KEY", "k")]).unwrap().model;
        assert!(alone.base_url.is_empty() && alone.has_key_alone() && !named.model.has_key_alone());
    }

    #[test]
    fn secrets_are_hidden_where_the_configuration_is_printed() {
        let config = loaded(&[
            ("SWITCHBOARD__SECRET", "canary-installation-secret"),
            ("SWITCHBOARD__ADMIN__TOKEN", "canary-admin-token"),
            ("SWITCHBOARD__REDIS__URL", "redis://:canary-redis@127.0.0.1"),
            ("SWITCHBOARD__SCYLLA__PASSWORD", "canary-scylla"),
            ("OPENAI_API_KEY", "canary-model"),
        ]);
        let mut config = config.unwrap();
        let properties = config.table["bus"]["properties"].as_table_mut().unwrap();
        properties.insert("sasl.password".into(), "canary-kafka".into());
        let printed = config.to_toml();
        assert!(
            printed.contains(HIDDEN) && !printed.contains("canary"),
            "{printed}"
        );
    }
}
