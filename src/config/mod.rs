//! The configuration of a process: read and validated once at start, then passed on in sections.

mod checks;
mod hidden_values;
mod layers;
mod suggestions;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde::Deserialize;
use switchboard_backends::{
    config::{BackendProfile, BackendsConfig, BusConfig, FilesConfig, RedisConfig, ScyllaConfig},
    products::config::ProductsConfig,
};
use switchboard_ingress::{ceilings::MemberCeilings, config::IngressConfig};
use switchboard_schemas::provider::ProviderApi;
use switchboard_workers::config::WorkersConfig;
use toml::{Table, Value};

use self::hidden_values::hide_secrets;

/// All keys with their meanings and defaults. The file is compiled in, so that the documentation
/// cannot differ from the behavior.
pub(crate) const DEFAULTS: &str = include_str!("../config.default.toml");
/// Base URL of a model that is configured by name alone.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct ServiceConfig {
    /// Profile and addresses of the backends.
    pub(crate) backends: BackendsConfig,
    public_url: String,
    /// Create the demo organization on the first start.
    pub(crate) demo: bool,
    /// Installation secret from the configuration; none if it is generated.
    pub(crate) secret: Option<SecretString>,
    /// Settings of the HTTP API.
    pub(crate) ingress: IngressConfig,
    /// Settings of the private port.
    pub(crate) ops: OpsConfig,
    /// Settings of the admin API.
    pub(crate) admin: AdminConfig,
    /// Default provider of agents without one.
    pub(crate) model: ModelConfig,
    /// Settings of the routing and inference roles.
    pub(crate) workers: WorkersConfig,
    runtime: RuntimeConfig,
    /// Settings of logs and traces.
    pub(crate) telemetry: TelemetryConfig,
    /// Mistakes that do not prevent a start, for the operator.
    pub(crate) warnings: Vec<String>,
    table: Table,
}

/// Settings of the private port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpsConfig {
    /// Address of `/healthz`, `/readyz` and `/metrics`.
    pub(crate) listen: SocketAddr,
    /// Milliseconds for which a stopping process serves on after `/readyz` has become 503, if
    /// somebody asks for it.
    pub(crate) unready_notice_ms: u64,
}

/// Settings of the admin API.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdminConfig {
    /// Address of a separate port for `/api/admin`; none: the public port.
    #[serde(deserialize_with = "optional_address")]
    pub(crate) listen: Option<SocketAddr>,
    /// Bearer token for all organizations; none: token access is off.
    #[serde(deserialize_with = "optional_secret")]
    pub(crate) token: Option<SecretString>,
}

/// Settings of the default provider, for agents without one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelConfig {
    /// Base URL of an OpenAI-compatible API; empty: the built-in demo model.
    pub(crate) base_url: String,
    #[serde(deserialize_with = "optional_secret")]
    pub(crate) api_key: Option<SecretString>,
    /// Model name sent to the provider.
    pub(crate) name: String,
    /// Dialect of the API.
    pub(crate) api: ProviderApi,
    /// The model continues an unfinished assistant message.
    pub(crate) continues_prefix: bool,
    /// The model sees pictures.
    pub(crate) vision: bool,
}

impl ModelConfig {
    /// Returns true if a key is set but no model is named.
    pub(crate) const fn has_only_key(&self) -> bool {
        self.api_key.is_some() && self.name.is_empty() && self.base_url.is_empty()
    }
}

/// Settings of the threads of the process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuntimeConfig {
    /// Threads that run requests and replies; 0: by profile and number of processors.
    worker_threads: usize,
}

/// Settings of logs and traces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryConfig {
    /// Filter of log lines, in the syntax of `RUST_LOG`.
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    /// Base URL of an OTLP/HTTP collector; empty: traces are not exported.
    pub(crate) otlp_endpoint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// Compact text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Errors of a configuration, all of them.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration:\n  {}", .0.join("\n  "))]
pub(crate) struct ConfigError(Vec<String>);

impl ServiceConfig {
    /// Reads the shipped defaults, `file` and the environment of this process.
    ///
    /// Fails with all errors of the three at once.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        Self::from_layers(file, &std::env::vars().collect())
    }

    fn from_layers(
        file: Option<&Path>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let mut errors = Vec::new();
        let file = file
            .map(|path| read_file(path, &mut errors))
            .unwrap_or_default();
        let defaults: Table = DEFAULTS
            .parse()
            .map_err(|error| ConfigError(vec![format!("shipped defaults: {error}")]))?;
        let settings = suggestions::setting_paths(&defaults);
        let mut table = layers::merge_layers(defaults, file, environment, &mut errors);
        apply_openai_variables(&mut table, environment);
        let config = Self::from_table(table, &mut errors);
        match config {
            Some(config) if errors.is_empty() => Ok(Self {
                warnings: suggestions::unknown_variables(environment, &settings),
                ..config
            }),
            _ => Err(ConfigError(errors)),
        }
    }

    fn from_table(table: Table, errors: &mut Vec<String>) -> Option<Self> {
        // All sections are read before the first `?`, so that one call reports the errors of all of
        // them.
        let top = parse_section::<TopLevelConfig>(&without_sections(&table), "", errors);
        let ingress = parse_named_section::<IngressConfig>(&table, "ingress", errors);
        let ops = parse_named_section::<OpsConfig>(&table, "ops", errors);
        let admin = parse_named_section::<AdminConfig>(&table, "admin", errors);
        let bus = parse_named_section::<BusConfig>(&table, "bus", errors);
        let redis = parse_named_section::<RedisConfig>(&table, "redis", errors);
        let scylla = parse_named_section::<ScyllaConfig>(&table, "scylla", errors);
        let files = parse_named_section::<FilesConfig>(&table, "files", errors);
        let model = parse_named_section::<ModelConfig>(&table, "model", errors);
        let workers = parse_named_section::<WorkersConfig>(&table, "workers", errors);
        let products = parse_named_section::<ProductsConfig>(&table, "products", errors);
        let ceilings = parse_named_section::<MemberCeilings>(&table, "ceilings", errors);
        let runtime = parse_named_section(&table, "runtime", errors);
        let telemetry = parse_named_section(&table, "telemetry", errors);
        checks::check_bus(bus.as_ref(), errors);
        checks::check_admin(admin.as_ref(), ingress.as_ref(), ops.as_ref(), errors);
        checks::check_bounds(ingress.as_ref(), workers.as_ref(), errors);
        errors.extend(
            products
                .as_ref()
                .map(ProductsConfig::validation_errors)
                .unwrap_or_default(),
        );
        errors.extend(
            ceilings
                .as_ref()
                .map(MemberCeilings::validation_errors)
                .unwrap_or_default(),
        );
        let (top, products) = (top?, products?);
        checks::check_top_level(&top, errors);
        checks::check_model(model.as_ref(), errors);
        if top.profile == BackendProfile::Cluster {
            checks::check_addresses(bus.as_ref(), redis.as_ref(), scylla.as_ref(), errors);
        }
        let backends = BackendsConfig {
            profile: top.profile,
            data_dir: top.data_dir,
            namespace: top.namespace,
            bus: bus?,
            redis: redis?,
            scylla: scylla?,
            files: files?,
        };
        let publish_events = backends.publishes_events();
        Some(Self {
            backends,
            public_url: top.public_url,
            demo: top.demo,
            secret: top.secret,
            ingress: IngressConfig {
                ceilings: ceilings?,
                products: products.clone(),
                ..ingress?
            },
            ops: ops?,
            admin: admin?,
            model: model?,
            workers: WorkersConfig {
                products,
                publish_events,
                ..workers?
            },
            runtime: runtime?,
            telemetry: telemetry?,
            warnings: Vec::new(),
            table,
        })
    }

    /// Returns the number of threads that run requests and replies, on this number of processors.
    pub(crate) fn worker_threads(&self, processors: usize) -> usize {
        match (self.runtime.worker_threads, self.backends.profile) {
            (0, BackendProfile::Embedded) => processors.saturating_sub(1).max(1),
            (0, BackendProfile::Cluster) => processors,
            (chosen, _) => chosen,
        }
    }

    /// Returns the base URL at which clients reach the service.
    pub(crate) fn public_url(&self) -> String {
        if self.public_url.is_empty() {
            local_url(self.ingress.listen)
        } else {
            self.public_url.trim_end_matches('/').to_owned()
        }
    }

    /// Returns the base URL of the admin API on this machine.
    pub(crate) fn admin_url(&self) -> String {
        local_url(self.admin.listen.unwrap_or(self.ingress.listen))
    }

    pub(crate) fn dashboard_url(&self) -> String {
        if self.admin.listen.is_some() {
            self.admin_url()
        } else {
            self.public_url()
        }
    }

    /// Returns the effective configuration as TOML with hidden secrets.
    pub(crate) fn to_toml(&self) -> String {
        let mut table = self.table.clone();
        hide_secrets(&mut table);
        toml::to_string_pretty(&table).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopLevelConfig {
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
        // Clients cannot connect to the unspecified address.
        format!("http://localhost:{}", listen.port())
    } else {
        format!("http://{listen}")
    }
}

fn read_file(path: &Path, errors: &mut Vec<String>) -> Table {
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    match read.and_then(|text| text.parse::<Table>().map_err(|error| error.to_string())) {
        Ok(table) => table,
        Err(error) => {
            errors.push(format!("{}: {error}", path.display()));
            Table::new()
        }
    }
}

/// Sets the model from the variables of OpenAI clients, unless our own keys set it.
fn apply_openai_variables(table: &mut Table, environment: &BTreeMap<String, String>) {
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
    // A model without a base URL is one of OpenAI, as in every OpenAI client. A key alone does not
    // enable a model: many shells have one, and a model costs money.
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

fn parse_named_section<T: for<'de> Deserialize<'de>>(
    table: &Table,
    name: &str,
    errors: &mut Vec<String>,
) -> Option<T> {
    match table.get(name) {
        Some(Value::Table(table)) => parse_section(table, name, errors),
        _ => {
            errors.push(format!("{name}: section is missing"));
            None
        }
    }
}

fn parse_section<T: for<'de> Deserialize<'de>>(
    table: &Table,
    name: &str,
    errors: &mut Vec<String>,
) -> Option<T> {
    match T::deserialize(table.clone()) {
        Ok(section) => Some(section),
        Err(error) => {
            // The message of the standard library does not show the expected form.
            let error = error.to_string().replace(
                "invalid socket address syntax",
                "not an address such as 127.0.0.1:8080",
            );
            let reason: Vec<String> = error.lines().map(|line| line.trim().to_owned()).collect();
            // Keys outside of sections have no prefix.
            let at = if name.is_empty() {
                String::new()
            } else {
                format!("{name}: ")
            };
            errors.push(format!("{at}{}", reason.join(" ").trim()));
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

#[cfg(test)]
mod tests;
