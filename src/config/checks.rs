//! What can be known to be wrong before anything is started: told at once, all together, each with its key.

use secrecy::{ExposeSecret, SecretString};
use switchboard_backends::config::{BackendProfile, BusConfig, RedisConfig, ScyllaConfig};
use switchboard_ingress::config::IngressConfig;
use switchboard_schemas::secret::InstallationSecret;
use switchboard_workers::config::WorkersConfig;

use super::{AdminConfig, ModelConfig, OpsConfig, TopLevel};

/// Shortest administrator's token, in bytes: it opens all organizations, and nothing but its length stops guesses from many addresses.
const ADMIN_TOKEN_BYTES_MIN: usize = 16;
const NAMESPACE_CHARACTERS_MAX: usize = 32;

pub(super) fn top_level(top: &TopLevel, mistakes: &mut Vec<String>) {
    match &top.secret {
        None if top.profile == BackendProfile::Cluster => {
            mistakes.push(
                "secret: the cluster profile needs SWITCHBOARD__SECRET, the same for all processes"
                    .into(),
            );
        }
        Some(secret) => {
            if let Err(error) = InstallationSecret::parse(secret.expose_secret()) {
                mistakes.push(format!("secret: {error}"));
            }
        }
        None => {}
    }
    let is_plain = top
        .namespace
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_plain || top.namespace.len() > NAMESPACE_CHARACTERS_MAX {
        mistakes.push(format!(
            "namespace: at most {NAMESPACE_CHARACTERS_MAX} letters, digits and hyphens"
        ));
    }
}

pub(super) fn model(model: Option<&ModelConfig>, mistakes: &mut Vec<String>) {
    let Some(model) = model.filter(|model| !model.base_url.is_empty()) else {
        return;
    };
    if !reqwest::Url::parse(&model.base_url).is_ok_and(|url| url.has_host()) {
        mistakes.push("model.base_url: not a URL such as https://api.example/v1".into());
    }
    if model.name.is_empty() {
        mistakes.push("model.name: a model.base_url needs a model (OPENAI_MODEL)".into());
    }
}

pub(super) fn admin(
    admin: Option<&AdminConfig>,
    ingress: Option<&IngressConfig>,
    ops: Option<&OpsConfig>,
    mistakes: &mut Vec<String>,
) {
    let Some(admin) = admin else { return };
    let is_short = |token: &SecretString| token.expose_secret().len() < ADMIN_TOKEN_BYTES_MIN;
    if admin.token.as_ref().is_some_and(is_short) {
        mistakes.push(format!(
            "admin.token: at least {ADMIN_TOKEN_BYTES_MIN} bytes, for instance of `openssl rand -hex 32`"
        ));
    }
    let Some(address) = admin.listen else { return };
    if ingress.is_some_and(|ingress| ingress.listen == address) {
        mistakes
            .push("admin.listen: the same as ingress.listen; empty means the public port".into());
    }
    if ops.is_some_and(|ops| ops.listen == address) {
        mistakes.push("admin.listen: the same as ops.listen, which is another port".into());
    }
}

pub(super) fn bus(bus: Option<&BusConfig>, mistakes: &mut Vec<String>) {
    let Some(bus) = bus else { return };
    if bus.partitions == 0 {
        mistakes.push("bus.partitions must not be 0".into());
    }
    if !["classic", "consumer"].contains(&bus.group_protocol.as_str()) {
        mistakes.push("bus.group_protocol: classic or consumer".into());
    }
}

/// Where the services of the cluster profile are. A mistake here would otherwise look like a service that is away.
pub(super) fn addresses(
    bus: Option<&BusConfig>,
    redis: Option<&RedisConfig>,
    scylla: Option<&ScyllaConfig>,
    mistakes: &mut Vec<String>,
) {
    if bus.is_some_and(|bus| !are_hosts_with_ports(&bus.brokers)) {
        mistakes.push("bus.brokers: host:port, more of them with commas between".into());
    }
    if scylla.is_some_and(|scylla| !are_hosts_with_ports(&scylla.nodes)) {
        mistakes.push("scylla.nodes: host:port, more of them with commas between".into());
    }
    let is_redis =
        |url: &reqwest::Url| matches!(url.scheme(), "redis" | "rediss") && url.has_host();
    if redis.is_some_and(|redis| {
        !reqwest::Url::parse(redis.url.expose_secret()).is_ok_and(|url| is_redis(&url))
    }) {
        // The URL itself may hold a password.
        mistakes.push(
            "redis.url: not a URL such as redis://127.0.0.1:6379 (rediss:// speaks TLS)".into(),
        );
    }
}

fn are_hosts_with_ports(list: &str) -> bool {
    list.split(',').map(str::trim).all(|address| {
        // An IPv6 address has colons of its own, in brackets.
        address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    })
}

pub(super) fn figures(
    ingress: Option<&IngressConfig>,
    workers: Option<&WorkersConfig>,
    mistakes: &mut Vec<String>,
) {
    mistakes.extend(ingress.map(IngressConfig::mistakes).unwrap_or_default());
    let problems = workers.map(WorkersConfig::problems).unwrap_or_default();
    mistakes.extend(
        problems
            .into_iter()
            .map(|(key, reason)| format!("workers.{key} {reason}")),
    );
}
