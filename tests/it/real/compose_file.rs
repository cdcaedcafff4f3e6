//! Commands and environment of the Compose file, run as processes without a container engine.

use std::{collections::BTreeMap, path::Path};

use serde_json::json;
use serde_yaml_ng::Value;
use switchboard_schemas::network::IpNetwork;

use crate::support::{
    Client, PATIENCE, Process, ProcessCommand, free_port, service_address, unique, wait_until_ready,
};

const ADMIN_TOKEN: &str = "admin-token-of-the-compose-file-0123456789";
/// Environment of the image, replaced here because each process needs its own ports.
const IMAGE_VARIABLES: [&str; 3] = [
    "SWITCHBOARD__DATA_DIR",
    "SWITCHBOARD__INGRESS__LISTEN",
    "SWITCHBOARD__OPS__LISTEN",
];

/// A service of the Compose file with its command and environment.
struct Service {
    name: String,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
}

fn compose_file() -> Value {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docker-compose.yml"))
            .unwrap();
    let mut file: Value = serde_yaml_ng::from_str(&text).unwrap();
    file.apply_merge().unwrap();
    file
}

fn our_services() -> Vec<Service> {
    let file = compose_file();
    let services = file["services"].as_mapping().unwrap().iter();
    let ours =
        services.filter(|(_, service)| service["image"].as_str() == Some("switchboard:local"));
    ours.map(|(name, service)| Service {
        name: name.as_str().unwrap().to_owned(),
        arguments: service["command"]
            .as_sequence()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().into())
            .collect(),
        environment: service["environment"]
            .as_mapping()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().unwrap().to_owned(),
                    value.as_str().unwrap().to_owned(),
                )
            })
            .collect(),
    })
    .collect()
}

/// Returns the variables with values for this machine; panics on an unknown variable.
fn local(variables: &BTreeMap<String, String>, namespace: &str) -> Vec<(String, String)> {
    let values = |name: &str, written: &str| match name {
        "SWITCHBOARD__SECRET" => "c0".repeat(32),
        "SWITCHBOARD__ADMIN__TOKEN" => ADMIN_TOKEN.to_owned(),
        "SWITCHBOARD__BUS__BROKERS" => service_address("SWITCHBOARD_TEST_BROKERS"),
        "SWITCHBOARD__REDIS__URL" => service_address("SWITCHBOARD_TEST_REDIS"),
        "SWITCHBOARD__SCYLLA__NODES" => service_address("SWITCHBOARD_TEST_SCYLLA"),
        _ if name.starts_with("SWITCHBOARD__FILES__") => service_address(name),
        "OPENAI_BASE_URL" | "OPENAI_API_KEY" | "OPENAI_MODEL" => String::new(),
        _ if !written.contains('$') => written.to_owned(),
        _ => panic!("the test has no value for {name}"),
    };
    let mut local: Vec<_> = variables
        .iter()
        .map(|(name, written)| (name.clone(), values(name, written)))
        .collect();
    local.push(("SWITCHBOARD__NAMESPACE".into(), namespace.into()));
    local
}

fn image_variables_are_those_of_the_dockerfile() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/Dockerfile"))
            .unwrap();
    for name in IMAGE_VARIABLES {
        assert!(
            text.contains(&format!("{name}=")),
            "{name} is set by the image"
        );
    }
}

#[test]
fn compose_file_trusts_its_gateway_only() {
    let file = compose_file();
    let network = &file["networks"]["default"]["ipam"]["config"][0];
    let gateway = network["gateway"].as_str().unwrap();
    let subnet: IpNetwork = network["subnet"].as_str().unwrap().parse().unwrap();
    assert!(subnet.contains(gateway.parse().unwrap()), "{network:?}");
    let name = "SWITCHBOARD__INGRESS__TRUSTED_PROXIES";
    let services = our_services();
    let trusting = services.iter().filter_map(|service| {
        Some((
            service.name.as_str(),
            service.environment.get(name)?.as_str(),
        ))
    });
    assert_eq!(trusting.collect::<Vec<_>>(), [("ingress", gateway)]);
}

#[tokio::test]
async fn compose_file_processes_serve_demo_model_chats() {
    image_variables_are_those_of_the_dockerfile();
    let (directory, namespace) = (tempfile::tempdir().unwrap(), unique("compose"));
    let (mut running, mut public, mut checked): (Vec<Process>, String, u32) =
        (vec![], String::new(), 0);
    // `migrate` runs first, as `depends_on` requires; the others follow in file order.
    for service in our_services() {
        let (ingress, ops) = (
            format!("127.0.0.1:{}", free_port()),
            format!("127.0.0.1:{}", free_port()),
        );
        let mut environment = local(&service.environment, &namespace);
        let data = directory.path().join("data").to_string_lossy().into_owned();
        environment.extend(IMAGE_VARIABLES.map(String::from).into_iter().zip([
            data,
            ingress.clone(),
            ops.clone(),
        ]));
        let command = |name: &str, arguments: &[String]| ProcessCommand {
            name: name.to_owned(),
            arguments: arguments.to_vec(),
            environment: environment.clone(),
            directory: directory.path().into(),
        };
        if service.name == "migrate" {
            let (status, log) = command("migrate", &service.arguments).run(PATIENCE);
            assert!(status.success(), "{log}");
            continue;
        }
        running.push(command(&service.name, &service.arguments).start());
        wait_until_ready(&service.name, &format!("http://{ops}")).await;
        let (status, log) = command("health", &["healthcheck".to_owned()]).run(PATIENCE);
        assert!(status.success(), "{}: {log}", service.name);
        checked += 1;
        if service.name == "ingress" {
            public = format!("http://{ingress}");
        }
    }
    assert_eq!(checked, 5);
    assert_a_chat_is_answered(&public).await;
    let complaints: Vec<_> = running.iter_mut().filter_map(Process::complaint).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

async fn assert_a_chat_is_answered(url: &str) {
    let document = json!({"organizations": [{"slug": "acme", "name": "Acme", "agents": [{"slug": "a", "name": "A"}],
        "keys": [{"name": "k"}]}]});
    let answer = Client::new(url)
        .with_key(ADMIN_TOKEN)
        .post("/api/admin/apply", &document)
        .await;
    answer.assert_status(200);
    let answer = answer.json();
    let organization = &answer["organizations"][0];
    let client = Client::new(url).with_key(organization["keys"][0]["value"].as_str().unwrap());
    let reply = client
        .chat(
            organization["agents"][0]["id"].as_str().unwrap(),
            "s",
            "hello",
        )
        .await;
    assert!(!reply.complete().is_empty());
    assert_eq!(reply.required_header("x-model"), "demo");
}
