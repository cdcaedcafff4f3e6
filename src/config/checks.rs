//! Validation of the configuration before anything starts. All errors are reported together, each
//! with its key.

use secrecy::ExposeSecret;
use switchboard_backends::config::{BackendProfile, BusConfig, RedisConfig, ScyllaConfig};
use switchboard_ingress::config::IngressConfig;
use switchboard_schemas::{
    provider::is_sendable_key,
    secret::{InstallationSecret, check_strength},
};
use switchboard_workers::config::WorkersConfig;

use super::{
    AdminConfig, ModelConfig, OpsConfig, TopLevelConfig, hidden_values::without_credentials,
};

const NAMESPACE_CHARACTERS_MAX: usize = 32;

pub(super) fn check_top_level(top: &TopLevelConfig, errors: &mut Vec<String>) {
    match &top.secret {
        None if top.profile == BackendProfile::Cluster => {
            errors.push(
                "secret: the cluster profile needs SWITCHBOARD__SECRET, the same for all processes"
                    .into(),
            );
        }
        Some(secret) => {
            if let Err(error) = InstallationSecret::parse(secret.expose_secret()) {
                errors.push(format!("secret: {error}"));
            }
        }
        None => {}
    }
    if let Err(reason) = check_public_url(&top.public_url) {
        let shown = without_credentials(&top.public_url);
        errors.push(format!("public_url: {shown:?} {reason}"));
    }
    let is_plain = top
        .namespace
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_plain || top.namespace.len() > NAMESPACE_CHARACTERS_MAX {
        errors.push(format!(
            "namespace: at most {NAMESPACE_CHARACTERS_MAX} letters, digits and hyphens"
        ));
    }
}

/// Checks the base URL that links are built from; empty stands for the default.
fn check_public_url(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let has_scheme = ["http://", "https://"]
        .iter()
        .any(|scheme| text.to_ascii_lowercase().starts_with(scheme));
    if !has_scheme {
        let shown = without_credentials(text);
        let rest = shown.split_once(":/").map_or(&*shown, |(_, rest)| rest);
        let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        return Err(format!(
            "must begin with http:// or https://, for example https://{}",
            rest.trim_start_matches('/')
        ));
    }
    let is_base = |url: &reqwest::Url| {
        let is_bare = url.username().is_empty() && url.password().is_none();
        url.has_host() && is_bare && url.query().is_none() && url.fragment().is_none()
    };
    match reqwest::Url::parse(text) {
        Ok(url) if is_base(&url) => Ok(()),
        _ => Err("is not a base URL such as https://chat.example".to_owned()),
    }
}

pub(super) fn check_model(model: Option<&ModelConfig>, errors: &mut Vec<String>) {
    let Some(model) = model.filter(|model| !model.base_url.is_empty()) else {
        return;
    };
    if !reqwest::Url::parse(&model.base_url).is_ok_and(|url| url.has_host()) {
        errors.push("model.base_url: not a URL such as https://api.example/v1".into());
    }
    if model.name.is_empty() {
        errors.push("model.name: a model.base_url needs a model (OPENAI_MODEL)".into());
    }
    let key = model.api_key.as_ref().map(ExposeSecret::expose_secret);
    if !key.is_none_or(is_sendable_key) {
        errors.push(
            "model.api_key: not one word of printable ASCII characters (OPENAI_API_KEY)".into(),
        );
    }
}

pub(super) fn check_admin(
    admin: Option<&AdminConfig>,
    ingress: Option<&IngressConfig>,
    ops: Option<&OpsConfig>,
    errors: &mut Vec<String>,
) {
    let Some(admin) = admin else { return };
    if let Some(token) = &admin.token
        && let Err(error) = check_strength(token.expose_secret())
    {
        errors.push(format!("admin.token: {error}"));
    }
    let Some(address) = admin.listen else { return };
    if ingress.is_some_and(|ingress| ingress.listen == address) {
        errors.push(
            "admin.listen: same address as ingress.listen; leave it empty to use the public port"
                .into(),
        );
    }
    if ops.is_some_and(|ops| ops.listen == address) {
        errors.push("admin.listen: same address as ops.listen".into());
    }
}

pub(super) fn check_bus(bus: Option<&BusConfig>, errors: &mut Vec<String>) {
    let Some(bus) = bus else { return };
    if bus.partitions == 0 {
        errors.push("bus.partitions must not be 0".into());
    }
    if !["classic", "consumer"].contains(&bus.group_protocol.as_str()) {
        errors.push("bus.group_protocol: classic or consumer".into());
    }
}

/// Checks the addresses of Kafka, Redis and ScyllaDB. A typing error would otherwise look like an
/// outage.
pub(super) fn check_addresses(
    bus: Option<&BusConfig>,
    redis: Option<&RedisConfig>,
    scylla: Option<&ScyllaConfig>,
    errors: &mut Vec<String>,
) {
    if bus.is_some_and(|bus| !are_hosts_with_ports(&bus.brokers)) {
        errors.push("bus.brokers: not a comma-separated list of host:port".into());
    }
    if scylla.is_some_and(|scylla| !are_hosts_with_ports(&scylla.nodes)) {
        errors.push("scylla.nodes: not a comma-separated list of host:port".into());
    }
    let is_redis =
        |url: &reqwest::Url| matches!(url.scheme(), "redis" | "rediss") && url.has_host();
    if redis.is_some_and(|redis| {
        !reqwest::Url::parse(redis.url.expose_secret()).is_ok_and(|url| is_redis(&url))
    }) {
        // The URL itself may hold a password.
        errors.push(
            "redis.url: not a URL such as redis://127.0.0.1:6379 (rediss:// uses TLS)".into(),
        );
    }
}

fn are_hosts_with_ports(list: &str) -> bool {
    list.split(',').map(str::trim).all(|address| {
        // The last colon precedes the port: an IPv6 address in brackets contains colons of its own.
        address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    })
}

pub(super) fn check_bounds(
    ingress: Option<&IngressConfig>,
    workers: Option<&WorkersConfig>,
    errors: &mut Vec<String>,
) {
    errors.extend(
        ingress
            .map(IngressConfig::validation_errors)
            .unwrap_or_default(),
    );
    let problems = workers
        .map(WorkersConfig::invalid_settings)
        .unwrap_or_default();
    errors.extend(
        problems
            .into_iter()
            .map(|(key, reason)| format!("workers.{key} {reason}")),
    );
}
