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

use super::{
    ADMIN_TOKEN, Answer, Client, PATIENCE, Process, ProcessCommand, Profile,
    environment::environment, eventually, free_port, unique,
};

const START_PATIENCE: Duration = Duration::from_secs(60);
/// Time that a process gets to end after SIGTERM.
#[cfg(feature = "real-services")]
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct TestService {
    /// Profile of the running product.
    pub(crate) profile: Profile,
    /// Prefix of its topics, keys and tables.
    #[cfg_attr(not(feature = "real-services"), expect(dead_code))]
    pub(crate) namespace: String,
    directory: PathBuf,
    /// Environment of all processes.
    environment: Vec<(String, String)>,
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
        if std::thread::panicking() {
            self.0.print_log_tails();
        }
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
            environment,
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

    /// Returns the names of the processes of a role.
    pub(crate) fn process_names(&self, role: &str) -> Vec<String> {
        let names = self.roles.iter().map(|running| running.name.clone());
        names.filter(|name| name.starts_with(role)).collect()
    }

    /// Returns the names of the inference processes: the whole product if it is a single process.
    pub(crate) fn inference_processes(&self) -> Vec<String> {
        [self.process_names("inference"), self.process_names("all")].concat()
    }

    /// Waits until a process that was asked to stop has ended without an error.
    #[cfg(feature = "real-services")]
    pub(crate) async fn wait_for_end(&self, name: &str, deadline: Duration) {
        let status = eventually(&format!("{name} ends"), deadline, async || {
            self.with_process(name, Process::end_status)
        })
        .await;
        assert!(status.success(), "{name}: {status}");
    }

    /// Returns the sum of a metric for each process that responds and has it.
    pub(crate) async fn metric(&self, metric: &str) -> Vec<(String, f64)> {
        let mut values = vec![];
        for (name, metrics) in self.metrics().await {
            let lines = metrics
                .lines()
                .filter(|line| line.split([' ', '{']).next() == Some(metric));
            let found: Vec<f64> = lines
                .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
                .collect();
            if !found.is_empty() {
                values.push((name, found.iter().sum()));
            }
        }
        values
    }

    /// Returns name and metrics of each process that responds.
    pub(crate) async fn metrics(&self) -> Vec<(String, String)> {
        let mut metrics = vec![];
        for role in &self.roles {
            if let Some(answer) = Client::new(&role.ops_url).try_get("/metrics").await {
                metrics.push((role.name.clone(), answer.text));
            }
        }
        metrics
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

    /// Stops a process, starts it with changed environment variables and waits until it is ready.
    #[cfg(feature = "real-services")]
    pub(crate) async fn restart_with(&self, name: &str, variables: &[(&str, String)]) {
        self.with_process(name, |process| process.signal("TERM"));
        self.wait_for_end(name, STOP_PATIENCE).await;
        self.with_process(name, |process| process.set_variables(variables));
        self.restart(name).await;
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
        let (process, running) =
            launch_role((name, role), &self.environment, &self.directory, false);
        self.processes.lock().unwrap().push(process);
        wait_until_ready(name, &running.ops_url).await;
        self.roles.push(running);
    }

    /// Runs a command of the product with the configuration of the service.
    pub(crate) fn command(&self, arguments: &[&str]) -> (std::process::ExitStatus, String) {
        self.command_with(arguments, &[])
    }

    /// Runs a command like [`Self::command`], with these variables in place of its own.
    pub(crate) fn command_with(
        &self,
        arguments: &[&str],
        extra: &[(&str, &str)],
    ) -> (std::process::ExitStatus, String) {
        let own = |name: &String| extra.iter().all(|(other, _)| other != name);
        let mut environment = self.environment.clone();
        environment.retain(|(name, _)| own(name));
        environment.extend(
            extra
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let command = ProcessCommand {
            name: unique("command-"),
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            environment,
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

    fn print_log_tails(&self) {
        for process in self.processes.lock().unwrap().iter() {
            eprintln!("--- {}\n{}", process.name(), process.log_tail());
        }
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
            self.print_log_tails();
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
