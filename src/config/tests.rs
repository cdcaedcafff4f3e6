//! Tests of loading and validating the configuration.

use serde::Serialize;

use super::{
    hidden_values::{HIDDEN, without_credentials},
    *,
};

fn loaded(environment: &[(&str, &str)]) -> Result<ServiceConfig, ConfigError> {
    let environment = environment
        .iter()
        .map(|(name, text)| ((*name).into(), (*text).into()))
        .collect();
    ServiceConfig::from_layers(None, &environment)
}

fn shipped(section: &str) -> serde_json::Value {
    let table: Table = DEFAULTS.parse().unwrap();
    serde_json::to_value(&table[section]).unwrap()
}

fn json(defaults: impl Serialize) -> serde_json::Value {
    serde_json::to_value(defaults).unwrap()
}

#[test]
fn shipped_file_has_every_key_with_its_default() {
    assert_eq!(shipped("ingress"), json(IngressConfig::default()));
    assert_eq!(shipped("workers"), json(WorkersConfig::default()));
    assert_eq!(shipped("products"), json(ProductsConfig::default()));
    assert_eq!(shipped("ceilings"), json(MemberCeilings::default()));
    assert!(loaded(&[]).is_ok());
}

#[test]
fn cluster_profile_requires_the_installation_secret() {
    let errors = loaded(&[("SWITCHBOARD__PROFILE", "cluster")])
        .unwrap_err()
        .to_string();
    assert!(errors.contains("SWITCHBOARD__SECRET"), "{errors}");
}

#[test]
fn errors_of_all_sections_are_reported_together() {
    let errors = loaded(&[
        ("SWITCHBOARD__INGRESS__LISTEN", "nowhere"),
        ("SWITCHBOARD__TELEMETRY__LOG_FORMAT", "loud"),
        ("SWITCHBOARD__NAMESPACE", "a b"),
        ("SWITCHBOARD__INGRESS__LOG_POLL_MS", "0"),
        ("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", "0"),
    ]);
    let errors = errors.unwrap_err().to_string();
    for key in ["listen", "log_format", "namespace"] {
        assert!(errors.contains(key), "{key} is missing in {errors}");
    }
}

#[test]
fn values_out_of_bounds_are_rejected_with_their_keys() {
    let errors = loaded(&[
        ("SWITCHBOARD__INGRESS__LOG_POLL_MS", "0"),
        ("SWITCHBOARD__WORKERS__PATCHES_IN_FLIGHT_MAX", "0"),
        ("SWITCHBOARD__BUS__PARTITIONS", "0"),
        ("OPENAI_BASE_URL", "notaurl"),
        ("OPENAI_MODEL", "m"),
    ]);
    let errors = errors.unwrap_err().to_string();
    for key in [
        "ingress.log_poll_ms",
        "workers.patches_in_flight_max",
        "bus.partitions",
        "model.base_url",
    ] {
        assert!(errors.contains(key), "{key} is missing in {errors}");
    }
}

#[test]
fn ceiling_of_zero_is_rejected_with_its_key() {
    for key in ["AGENTS_MAX", "REQUESTS_PER_MINUTE_MAX", "OUTPUT_TOKENS_MAX"] {
        let variable = format!("SWITCHBOARD__CEILINGS__{key}");
        let errors = loaded(&[(&variable, "0")]).unwrap_err().to_string();
        let expected = format!("ceilings.{} must not be 0", key.to_lowercase());
        assert!(errors.contains(&expected), "{errors}");
    }
    let models = [("SWITCHBOARD__CEILINGS__INSTALLATION_MODELS", "small,large")];
    let ceilings = loaded(&models).unwrap().ingress.ceilings;
    assert_eq!(ceilings.installation_models, ["small", "large"]);
}

#[test]
fn invalid_addresses_and_secrets_are_rejected() {
    let errors = loaded(&[
        ("SWITCHBOARD__PROFILE", "cluster"),
        ("SWITCHBOARD__SECRET", "short"),
        ("SWITCHBOARD__ADMIN__TOKEN", "x"),
        ("SWITCHBOARD__BUS__BROKERS", ""),
        ("SWITCHBOARD__SCYLLA__NODES", "node-without-port"),
        ("SWITCHBOARD__REDIS__URL", "http://:canary@127.0.0.1:6379"),
    ]);
    let errors = errors.unwrap_err().to_string();
    for key in [
        "secret:",
        "admin.token:",
        "bus.brokers:",
        "scylla.nodes:",
        "redis.url:",
    ] {
        assert!(errors.contains(key), "{key} is missing in {errors}");
    }
    assert!(!errors.contains("canary"), "{errors}");
    let usual = [
        ("SWITCHBOARD__PROFILE", "cluster"),
        ("SWITCHBOARD__SECRET", "an-installation-secret"),
    ];
    assert!(loaded(&usual).is_ok());
}

#[test]
fn admin_port_defaults_to_the_public_one_and_is_unique() {
    assert_eq!(loaded(&[]).unwrap().admin_url(), "http://127.0.0.1:8080");
    let own = loaded(&[("SWITCHBOARD__ADMIN__LISTEN", "127.0.0.1:8081")]).unwrap();
    assert_eq!(
        (own.admin_url().as_str(), own.public_url().as_str()),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8080")
    );
    for address in ["127.0.0.1:8080", "127.0.0.1:9090", "8081"] {
        let errors = loaded(&[("SWITCHBOARD__ADMIN__LISTEN", address)])
            .unwrap_err()
            .to_string();
        assert!(
            errors.contains("admin") && errors.contains("listen"),
            "{errors}"
        );
    }
}

#[test]
fn openai_variables_set_the_model_unless_own_keys_do() {
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
fn model_defaults_to_openai_and_key_alone_does_nothing() {
    let named = loaded(&[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m")]).unwrap();
    assert_eq!(named.model.base_url, OPENAI_BASE_URL);
    let alone = loaded(&[("OPENAI_API_KEY", "k")]).unwrap().model;
    assert!(alone.base_url.is_empty() && alone.has_only_key() && !named.model.has_only_key());
}

#[test]
fn secrets_are_hidden_in_the_printed_configuration() {
    let config = loaded(&[
        ("SWITCHBOARD__SECRET", "canary-installation-secret"),
        ("SWITCHBOARD__ADMIN__TOKEN", "canary-admin-token"),
        ("SWITCHBOARD__REDIS__URL", "redis://:canary-redis@127.0.0.1"),
        ("SWITCHBOARD__SCYLLA__PASSWORD", "canary-scylla"),
        ("OPENAI_API_KEY", "canary-model"),
        ("OPENAI_MODEL", "m"),
        (
            "SWITCHBOARD__MODEL__BASE_URL",
            "https://canary:canary@llm.example/v1?key=canary",
        ),
        (
            "SWITCHBOARD__TELEMETRY__OTLP_ENDPOINT",
            "http://canary-user@otlp.example:4318",
        ),
        (
            "SWITCHBOARD__FILES__ENDPOINT",
            "http://u:canary/canary@s3.example:9000",
        ),
    ]);
    let mut config = config.unwrap();
    let properties = config.table["bus"]["properties"].as_table_mut().unwrap();
    properties.insert("sasl.password".into(), "canary-kafka".into());
    let printed = config.to_toml();
    assert!(
        printed.contains(HIDDEN) && !printed.contains("canary"),
        "{printed}"
    );
    for shown in [
        "https://(hidden)@llm.example/v1?(hidden)",
        "otlp.example:4318",
        "s3.example:9000",
    ] {
        assert!(printed.contains(shown), "{printed}");
    }
}

#[test]
fn credentials_are_hidden_in_any_text() {
    for (text, shown) in [
        ("http://a.example:1/b", "http://a.example:1/b"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("what? #1", "what? #1"),
        ("http://u@a.example", "http://(hidden)@a.example"),
        ("http://u:p@q@a.example/b", "http://(hidden)@a.example/b"),
        ("u:p@a.example", "(hidden)@a.example"),
        ("http://a.example#k", "http://a.example?(hidden)"),
        ("http://a.example/?k=p@q", "http://(hidden)"),
        ("http://u:p?q@a.example", "http://(hidden)"),
        ("http://[u:p@", "http://(hidden)@"),
    ] {
        assert_eq!(without_credentials(text), shown, "{text}");
    }
    let refused = loaded(&[("SWITCHBOARD__PUBLIC_URL", "ftp://u:canary@chat.example")]);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("public_url") && !refused.contains("canary"),
        "{refused}"
    );
}

#[test]
fn public_url_without_scheme_is_refused_with_an_example() {
    for (text, example) in [
        ("chat.example", "for example https://chat.example"),
        ("localhost:8080", "for example https://localhost:8080"),
        ("//chat.example/x", "for example https://chat.example/x"),
        ("ftp://chat.example", "for example https://chat.example"),
        ("http:/chat.example", "for example https://chat.example"),
        ("https://", "is not a base URL"),
        ("https://chat.example/?a=b", "is not a base URL"),
    ] {
        let errors = loaded(&[("SWITCHBOARD__PUBLIC_URL", text)]).unwrap_err();
        let errors = errors.to_string();
        assert!(
            errors.contains("public_url") && errors.contains(example),
            "{errors}"
        );
    }
    assert!(loaded(&[("SWITCHBOARD__PUBLIC_URL", "HTTPS://chat.example/below/")]).is_ok());
}

#[test]
fn worker_threads_leave_a_processor_to_the_writers_of_files() {
    for (environment, processors, threads) in [
        (&[][..], 8, 7),
        (&[], 1, 1),
        (&[("SWITCHBOARD__RUNTIME__WORKER_THREADS", "3")], 8, 3),
    ] {
        let config = loaded(environment).unwrap();
        assert_eq!(config.worker_threads(processors), threads);
    }
}

#[test]
fn events_are_published_in_a_cluster_unless_set_otherwise() {
    let cluster = [
        ("SWITCHBOARD__PROFILE", "cluster"),
        (
            "SWITCHBOARD__SECRET",
            "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
        ),
    ];
    for (profile, is_published) in [(&[][..], false), (&cluster[..], true)] {
        for (publish, expected) in [("auto", is_published), ("always", true), ("never", false)] {
            let setting = ("SWITCHBOARD__BUS__PUBLISH_EVENTS", publish);
            let config = loaded(&[profile, &[setting]].concat()).unwrap();
            assert_eq!(config.workers.publish_events, expected, "{publish}");
        }
    }
}

#[test]
fn invalid_network_is_quoted_with_its_setting() {
    let errors = loaded(&[(
        "SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS",
        "10.0.0.0/8,intranet",
    )]);
    let errors = errors.unwrap_err().to_string();
    for part in ["\"intranet\"", "provider_private_networks"] {
        assert!(errors.contains(part), "{part} is missing in {errors}");
    }
}
