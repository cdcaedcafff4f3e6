//! The product under test: one process, or one process per role over real services.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;

use super::{Answer, Client, PATIENCE, Process, ProcessCommand, eventually, free_port, unique};

/// Admin token of every test service.
pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-tests-0123456789abcdef";
/// Installation secret of 32 bytes in hexadecimal.
const SECRET: &str = "5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";
const START_PATIENCE: Duration = Duration::from_secs(60);

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

pub(crate) struct TestService {
    /// Profile of the running product.
    pub(crate) profile: Profile,
    /// Prefix of its topics, keys and tables.
    pub(crate) namespace: String,
    directory: PathBuf,
    processes: Mutex<Vec<Process>>,
    roles: Vec<RunningRole>,
    next_ingress: AtomicUsize,
}

struct RunningRole {
    name: String,
    public_url: Option<String>,
    /// Base URLs of the admin API, unless it shares the public port.
    admin_url: Option<String>,
    ops_url: String,
}

/// The service shared by most tests; fails a test if a process has crashed.
pub(crate) struct SharedService(&'static TestService);

impl SharedService {
    /// Returns the shared instance and starts it at the first call.
    pub(crate) async fn get() -> Self {
        static SHARED: OnceLock<TestService> = OnceLock::new();
        static STARTING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _one_at_a_time = STARTING.lock().await;
        if SHARED.get().is_none() {
            let service = TestService::start().await;
            assert!(SHARED.set(service).is_ok());
        }
        Self(SHARED.get().unwrap())
    }
}

impl std::ops::Deref for SharedService {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        self.0
    }
}

impl Drop for SharedService {
    fn drop(&mut self) {
        self.0.complain();
    }
}

impl TestService {
    /// Starts the product in the selected profile and waits until it is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts the product with additional environment variables for all processes.
    pub(crate) async fn start_with(extra: &[(&str, &str)]) -> Self {
        Self::start_as(Profile::from_environment(), extra).await
    }

    /// Starts the product in a certain profile.
    pub(crate) async fn start_as(profile: Profile, extra: &[(&str, &str)]) -> Self {
        Self::start_with_ports(profile, extra, false).await
    }

    /// Starts the product in the selected profile with a separate admin port.
    pub(crate) async fn start_with_admin_port() -> Self {
        Self::start_with_ports(Profile::from_environment(), &[], true).await
    }

    async fn start_with_ports(profile: Profile, extra: &[(&str, &str)], admin_port: bool) -> Self {
        super::background();
        let namespace = unique("t");
        let directory = fresh_directory(&namespace);
        let environment = environment(profile, &namespace, &directory, extra);
        if profile == Profile::Cluster {
            migrate(&environment, &directory);
        }
        let (processes, roles) = launch(profile, &environment, &directory, admin_port)
            .into_iter()
            .unzip();
        let next_ingress = AtomicUsize::new(0);
        let service = Self {
            profile,
            namespace,
            directory,
            processes: Mutex::new(processes),
            roles,
            next_ingress,
        };
        service.wait_until_ready().await;
        service
    }

    /// Returns a client of the next ingress without a key.
    pub(crate) fn client(&self) -> Client {
        let urls = self.public_urls();
        let turn = self.next_ingress.fetch_add(1, Ordering::Relaxed);
        Client::new(&urls[turn % urls.len()])
    }

    /// Returns a client with the admin token.
    pub(crate) fn admin(&self) -> Client {
        let urls = self.admin_urls();
        let turn = self.next_ingress.fetch_add(1, Ordering::Relaxed);
        Client::new(&urls[turn % urls.len()]).with_key(ADMIN_TOKEN)
    }

    /// Applies a document with the admin token.
    pub(crate) async fn apply(&self, document: &Value) -> Answer {
        self.admin().post("/api/admin/apply", document).await
    }

    /// Returns the base URL of the public API of each ingress.
    pub(crate) fn public_urls(&self) -> Vec<String> {
        self.roles
            .iter()
            .filter_map(|role| role.public_url.clone())
            .collect()
    }

    /// Returns the base URL of the admin API of each ingress.
    pub(crate) fn admin_urls(&self) -> Vec<String> {
        let url = |role: &RunningRole| role.admin_url.clone().or_else(|| role.public_url.clone());
        self.roles.iter().filter_map(url).collect()
    }

    /// Returns name and base URL of each process's private port.
    pub(crate) fn ops_urls(&self) -> Vec<(String, String)> {
        self.roles
            .iter()
            .map(|role| (role.name.clone(), role.ops_url.clone()))
            .collect()
    }

    /// Returns the data folder of the embedded profile.
    pub(crate) fn data_directory(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns the names of the inference processes: the whole product if it is a single process.
    pub(crate) fn inference_processes(&self) -> Vec<String> {
        let names = self.roles.iter().map(|role| role.name.clone());
        names
            .filter(|name| name.starts_with("inference") || name == "all")
            .collect()
    }

    /// Returns the sum of a metric for each process that responds and has it.
    pub(crate) async fn metric(&self, metric: &str) -> Vec<(String, f64)> {
        let mut values = vec![];
        for role in &self.roles {
            let Some(answer) = Client::new(&role.ops_url).try_get("/metrics").await else {
                continue;
            };
            let lines = answer
                .text
                .lines()
                .filter(|line| line.split([' ', '{']).next() == Some(metric));
            let found: Vec<f64> = lines
                .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
                .collect();
            if !found.is_empty() {
                values.push((role.name.clone(), found.iter().sum()));
            }
        }
        values
    }

    /// Calls `work` with the process of that name.
    pub(crate) fn with_process<T>(&self, name: &str, work: impl FnOnce(&mut Process) -> T) -> T {
        let mut processes = self.processes.lock().unwrap();
        work(
            processes
                .iter_mut()
                .find(|process| process.name() == name)
                .unwrap(),
        )
    }

    /// Restarts a process and waits until it is ready.
    pub(crate) async fn restart(&self, name: &str) {
        self.with_process(name, Process::restart);
        let url = &self
            .roles
            .iter()
            .find(|role| role.name == name)
            .unwrap()
            .ops_url;
        wait_until_ready(name, url).await;
    }

    /// Kills and restarts the inference processes: the whole product if it is a single process.
    pub(crate) async fn kill_and_restart_workers(&self) {
        self.kill_and_restart(&self.inference_processes()).await;
    }

    /// Kills processes and restarts them when all are dead.
    pub(crate) async fn kill_and_restart(&self, names: &[String]) {
        for name in names {
            self.with_process(name, Process::kill);
        }
        for name in names {
            self.restart(name).await;
        }
    }

    /// Starts another process of a role.
    #[cfg(feature = "real-services")]
    pub(crate) async fn add(&mut self, name: &str, role: &str) {
        let environment = environment(self.profile, &self.namespace, &self.directory, &[]);
        let (process, running) = launch_role((name, role), &environment, &self.directory, false);
        self.processes.lock().unwrap().push(process);
        wait_until_ready(name, &running.ops_url).await;
        self.roles.push(running);
    }

    /// Runs a command of the product with the configuration of the service.
    pub(crate) fn command(&self, arguments: &[&str]) -> (std::process::ExitStatus, String) {
        let command = ProcessCommand {
            name: unique("command-"),
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            environment: environment(self.profile, &self.namespace, &self.directory, &[]),
            directory: self.directory.clone(),
        };
        command.run(START_PATIENCE)
    }

    /// Returns the logs of all processes.
    pub(crate) fn logs(&self) -> String {
        self.processes
            .lock()
            .unwrap()
            .iter()
            .map(Process::log)
            .collect()
    }

    /// Panics if a process has crashed or panicked.
    pub(crate) fn complain(&self) {
        let complaints: Vec<_> = self
            .processes
            .lock()
            .unwrap()
            .iter_mut()
            .filter_map(Process::complaint)
            .collect();
        if complaints.is_empty() {
            return;
        }
        if std::thread::panicking() {
            eprintln!("{}", complaints.join("\n"));
        } else {
            panic!("{}", complaints.join("\n"));
        }
    }

    async fn wait_until_ready(&self) {
        for role in &self.roles {
            let ready =
                tokio::time::timeout(START_PATIENCE, wait_until_ready(&role.name, &role.ops_url))
                    .await;
            if ready.is_err() {
                panic!(
                    "{} is not ready\n{}",
                    role.name,
                    self.with_process(&role.name, |process| process.log_tail())
                );
            }
        }
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in self.processes.lock().unwrap().iter() {
                eprintln!("--- {}\n{}", process.name(), process.log_tail());
            }
        }
        self.complain();
        self.processes.lock().unwrap().clear();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// Waits until the process with that private port is ready.
pub(crate) async fn wait_until_ready(name: &str, ops_url: &str) {
    let client = Client::new(ops_url);
    eventually(&format!("{name} is ready"), PATIENCE * 2, async || {
        let answer = client.try_get("/readyz").await?;
        (answer.status == 200).then_some(())
    })
    .await;
}

fn launch(
    profile: Profile,
    environment: &[(String, String)],
    directory: &Path,
    admin_port: bool,
) -> Vec<(Process, RunningRole)> {
    let roles: &[(&str, &str)] = match profile {
        Profile::Embedded => &[("all", "all")],
        Profile::Cluster => &[
            ("ingress-1", "ingress"),
            ("ingress-2", "ingress"),
            ("routing-1", "routing"),
            ("inference-1", "inference"),
            ("inference-2", "inference"),
        ],
    };
    roles
        .iter()
        .map(|(name, role)| launch_role((name, role), environment, directory, admin_port))
        .collect()
}

fn launch_role(
    (name, role): (&str, &str),
    environment: &[(String, String)],
    directory: &Path,
    admin_port: bool,
) -> (Process, RunningRole) {
    let (public, ops) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{}", free_port()),
    );
    let mut environment = environment.to_vec();
    environment.push(("SWITCHBOARD__INGRESS__LISTEN".into(), public.clone()));
    environment.push(("SWITCHBOARD__OPS__LISTEN".into(), ops.clone()));
    let has_public_port = matches!(role, "all" | "ingress");
    let admin = (admin_port && has_public_port).then(|| format!("127.0.0.1:{}", free_port()));
    environment.extend(
        admin
            .iter()
            .map(|address| ("SWITCHBOARD__ADMIN__LISTEN".to_owned(), address.clone())),
    );
    // `--role all` is the default, so the embedded run also tests the default.
    let arguments = if role == "all" {
        vec!["serve"]
    } else {
        vec!["serve", "--role", role]
    };
    let arguments = arguments.into_iter().map(String::from).collect();
    let command = ProcessCommand {
        name: name.into(),
        arguments,
        environment,
        directory: directory.into(),
    };
    let public_url = has_public_port.then(|| format!("http://{public}"));
    let admin_url = admin.map(|address| format!("http://{address}"));
    (
        command.start(),
        RunningRole {
            name: name.into(),
            public_url,
            admin_url,
            ops_url: format!("http://{ops}"),
        },
    )
}

fn migrate(environment: &[(String, String)], directory: &Path) {
    let command = ProcessCommand {
        name: "migrate".into(),
        arguments: vec!["migrate".into()],
        environment: environment.to_vec(),
        directory: directory.into(),
    };
    let (status, log) = command.run(START_PATIENCE);
    assert!(status.success(), "migrate failed: {status}\n{log}");
}

fn environment(
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
        Profile::Cluster => variables.extend([
            ("SWITCHBOARD__PROFILE", "cluster".to_owned()),
            (
                "SWITCHBOARD__BUS__BROKERS",
                service_address("SWITCHBOARD_TEST_BROKERS"),
            ),
            ("SWITCHBOARD__BUS__PARTITIONS", "8".to_owned()),
            (
                "SWITCHBOARD__REDIS__URL",
                service_address("SWITCHBOARD_TEST_REDIS"),
            ),
            (
                "SWITCHBOARD__SCYLLA__NODES",
                service_address("SWITCHBOARD_TEST_SCYLLA"),
            ),
        ]),
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

/// Creates a folder for this run and removes the folders of ended runs.
fn fresh_directory(namespace: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix("it-")
            .and_then(|rest| rest.split('-').next())
            .map(str::to_owned);
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let directory = root.join(format!("it-{}-{namespace}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}
