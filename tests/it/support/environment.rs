//! Environment of the processes under test.

use std::path::Path;

/// Admin token of every test service.
pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-tests-0123456789abcdef";
/// Installation secret of 32 bytes in hexadecimal.
const SECRET: &str = "5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";
/// Settings with addresses of shared services, and the variables that hold these.
const SHARED_SERVICES: [(&str, &str); 8] = [
    ("SWITCHBOARD__BUS__BROKERS", "SWITCHBOARD_TEST_BROKERS"),
    ("SWITCHBOARD__REDIS__URL", "SWITCHBOARD_TEST_REDIS"),
    ("SWITCHBOARD__SCYLLA__NODES", "SWITCHBOARD_TEST_SCYLLA"),
    ("SWITCHBOARD__FILES__BUCKET", "SWITCHBOARD__FILES__BUCKET"),
    (
        "SWITCHBOARD__FILES__ENDPOINT",
        "SWITCHBOARD__FILES__ENDPOINT",
    ),
    ("SWITCHBOARD__FILES__REGION", "SWITCHBOARD__FILES__REGION"),
    (
        "SWITCHBOARD__FILES__ACCESS_KEY_ID",
        "SWITCHBOARD__FILES__ACCESS_KEY_ID",
    ),
    (
        "SWITCHBOARD__FILES__SECRET_ACCESS_KEY",
        "SWITCHBOARD__FILES__SECRET_ACCESS_KEY",
    ),
];

/// Deployment of the product under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Embedded,
    /// Separate processes over Kafka, Redis and CQL.
    Cluster,
}

impl Profile {
    /// Returns the profile that `SWITCHBOARD_TEST_PROFILE` names, embedded by default.
    pub(crate) fn from_environment() -> Self {
        match std::env::var("SWITCHBOARD_TEST_PROFILE").as_deref() {
            Ok("cluster") => Self::Cluster,
            Ok("embedded") | Err(_) => Self::Embedded,
            Ok(other) => panic!("SWITCHBOARD_TEST_PROFILE is embedded or cluster, not {other}"),
        }
    }
}

/// Returns the settings of all processes of a service; `extra` ones replace others.
pub(super) fn environment(
    profile: Profile,
    namespace: &str,
    directory: &Path,
    extra: &[(&str, &str)],
) -> Vec<(String, String)> {
    let data = directory.join("data").to_string_lossy().into_owned();
    let mut variables = vec![
        ("SWITCHBOARD__SECRET", SECRET.to_owned()),
        ("SWITCHBOARD__ADMIN__TOKEN", ADMIN_TOKEN.to_owned()),
        ("SWITCHBOARD__DEMO", "false".to_owned()),
        ("SWITCHBOARD__OPS__UNREADY_NOTICE_MS", "0".to_owned()),
        // All tests sign in from the same address.
        (
            "SWITCHBOARD__INGRESS__SIGN_INS_PER_ADDRESS",
            "100000".to_owned(),
        ),
        ("SWITCHBOARD__DATA_DIR", data),
        ("SWITCHBOARD__NAMESPACE", namespace.to_owned()),
    ];
    match profile {
        Profile::Embedded => variables.push(("SWITCHBOARD__PROFILE", "embedded".to_owned())),
        Profile::Cluster => {
            variables.push(("SWITCHBOARD__PROFILE", "cluster".to_owned()));
            variables.push(("SWITCHBOARD__BUS__PARTITIONS", "8".to_owned()));
            // A test with its own services needs no shared ones.
            let shared = SHARED_SERVICES
                .iter()
                .filter(|(name, _)| extra.iter().all(|(own, _)| own != name));
            variables.extend(shared.map(|(name, variable)| (*name, service_address(variable))));
        }
    }
    variables.extend(
        extra
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the address of a real service; panics without one, because the cluster profile needs it.
pub(crate) fn service_address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run tests/services/up.sh, or `make test`")
    })
}
