//! `switchboard serve`: opens the backends, starts the chosen roles and waits until they stop.

use std::{io::IsTerminal, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, Parser, ValueEnum};
use prometheus::{Registry, process_collector::ProcessCollector};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Map, Value};
use switchboard_backends::{
    catalog::cache::CatalogCache, config::BackendProfile, vault::SecretVault,
};
use switchboard_ingress::{AddressCheck, AddressUsage, Ingress, IngressConfig, ProviderTest};
use switchboard_schemas::provider::ProviderApi;
use switchboard_workers::{
    AddressChecker, DefaultProvider, ProviderTester, ReaderPlace, RoutingWorker, WorkerContext,
    demo_model::{DEMO_MODEL, DemoModel},
    metrics::WorkerMetrics,
};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::{
    config::ServiceConfig,
    demo_organization,
    installation::{self, OpenInstallation},
    ops_server::{OpsServer, ReadinessState},
    supervisor::RoleSupervisor,
    telemetry::TelemetryGuard,
    terminal::{self, DemoAccess, StartSummary},
};

/// Drain budget of the private port.
const OPS_DRAIN: Duration = Duration::from_secs(1);

/// Arguments of `serve`: the role of this process.
#[derive(Args)]
pub(crate) struct ServeArguments {
    /// Role of this process; all roles but `all` need the cluster profile.
    #[arg(long, value_enum, default_value_t, env = "SWITCHBOARD_ROLE")]
    role: ServiceRole,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ServiceRole {
    /// All roles in one process.
    #[default]
    All,
    /// Serves HTTP and streams replies.
    Ingress,
    /// Chooses the team member that answers.
    Routing,
    /// Calls models and writes replies.
    Inference,
}

impl ServeArguments {
    /// Parses the arguments of a command line without arguments.
    pub(crate) fn from_environment() -> Self {
        #[derive(Parser)]
        struct ServeCommand {
            #[command(flatten)]
            arguments: ServeArguments,
        }
        ServeCommand::parse_from(["switchboard serve"]).arguments
    }
}

impl ServiceRole {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Ingress => "ingress",
            Self::Routing => "routing",
            Self::Inference => "inference",
        }
    }

    fn includes_role(self, part: Self) -> bool {
        self == Self::All || self == part
    }
}

/// Serves until a signal; returns once everything is drained.
pub(crate) fn run(
    runtime: &Runtime,
    config: ServiceConfig,
    arguments: &ServeArguments,
) -> anyhow::Result<()> {
    if config.backends.profile == BackendProfile::Embedded && arguments.role != ServiceRole::All {
        bail!(
            "a single role needs the cluster profile (SWITCHBOARD__PROFILE=cluster): the embedded one is one process"
        );
    }
    let telemetry = runtime.block_on(async { TelemetryGuard::install(&config.telemetry) })?;
    raise_open_files();
    let registry = Registry::new();
    registry.register(Box::new(telemetry.dropped_lines_collector()?))?;
    let outcome = runtime.block_on(Box::pin(serve(config, arguments.role, registry)));
    // The exporter blocks its thread while it sends what is left, which the runtime's threads must
    // not.
    telemetry.flush();
    outcome
}

/// Raises the limit of open files to what the process may have: each connection is one.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "limit of open files not raised");
    }
}

async fn serve(config: ServiceConfig, role: ServiceRole, registry: Registry) -> anyhow::Result<()> {
    let installation = installation::open_backends(&config, role.name()).await?;
    registry.register(Box::new(ProcessCollector::for_self()))?;
    let readiness = Arc::new(ReadinessState::default());
    // Load balancers know only processes that serve clients.
    let notice_ms = if role.includes_role(ServiceRole::Ingress) {
        config.ops.unready_notice_ms
    } else {
        0
    };
    let mut service = ServiceBuilder {
        supervisor: RoleSupervisor::new(readiness.clone(), Duration::from_millis(notice_ms)),
        cache: CatalogCache::new(installation.backends.catalog.clone()),
        vault: SecretVault::new(&installation.secret),
        demo_model: None,
        registry,
        config,
        installation,
    };
    let ops = service
        .bind_port(
            service.config.ops.listen,
            "private port",
            "SWITCHBOARD__OPS__LISTEN",
        )
        .await?;
    let ports = if role.includes_role(ServiceRole::Ingress) {
        Some(service.bind_client_ports().await?)
    } else {
        None
    };
    if service.config.backends.profile == BackendProfile::Embedded {
        service.installation.backends.bus.migrate().await?;
    }
    // Elsewhere the output is likely to be kept, for example by a log collector.
    let shows_link = std::io::stdout().is_terminal();
    let demo =
        demo_organization::prepare(&service.config, &service.installation, shows_link).await?;
    if let Some(ports) = ports {
        service.start_ingress(ports, demo.as_ref(), role).await?;
    }
    service.start_workers(role).await?;
    service.start_ops(ops, role, readiness.clone());
    readiness.set_ready();
    tracing::info!(role = role.name(), "ready");
    if role == ServiceRole::All {
        let admin_url = service.config.admin_url();
        terminal::print_summary(&StartSummary {
            public_url: &service.config.public_url(),
            dashboard_url: &service.config.dashboard_url(),
            admin_url: service
                .config
                .admin
                .token
                .as_ref()
                .map(|_| admin_url.as_str()),
            ops_address: service.config.ops.listen,
            data_dir: &service.config.backends.data_dir,
            demo,
            model: service
                .demo_model
                .is_none()
                .then_some(service.config.model.name.as_str()),
            has_only_key: service.config.model.has_only_key(),
        });
    }
    let outcome = service.supervisor.run_until_stopped().await;
    if let Some(model) = service.demo_model {
        model.shutdown().await;
    }
    outcome
}

/// Parts that the roles of this process share.
struct ServiceBuilder {
    supervisor: RoleSupervisor,
    cache: CatalogCache,
    vault: SecretVault,
    demo_model: Option<DemoModel>,
    registry: Registry,
    config: ServiceConfig,
    installation: OpenInstallation,
}

/// Listeners of the ingress.
struct ClientPorts {
    public: TcpListener,
    admin: Option<TcpListener>,
}

impl ServiceBuilder {
    /// Binds the ports of the ingress. All ports are bound before anything starts, so that a
    /// conflict is reported at once.
    async fn bind_client_ports(&self) -> anyhow::Result<ClientPorts> {
        let public = self
            .bind_port(
                self.config.ingress.listen,
                "public port",
                "SWITCHBOARD__INGRESS__LISTEN",
            )
            .await?;
        let admin = match self.config.admin.listen {
            Some(address) => Some(
                self.bind_port(address, "admin port", "SWITCHBOARD__ADMIN__LISTEN")
                    .await?,
            ),
            None => None,
        };
        Ok(ClientPorts { public, admin })
    }

    async fn bind_port(
        &self,
        address: SocketAddr,
        what: &str,
        variable: &str,
    ) -> anyhow::Result<TcpListener> {
        let bound = TcpListener::bind(address).await;
        bound.with_context(|| {
            format!("cannot listen on {address}, the {what} ({variable} chooses another address)")
        })
    }

    async fn start_ingress(
        &mut self,
        ports: ClientPorts,
        demo: Option<&DemoAccess>,
        role: ServiceRole,
    ) -> anyhow::Result<()> {
        // A process without the inference role does not know the model of the others.
        let is_demo =
            role.includes_role(ServiceRole::Inference) && self.config.model.base_url.is_empty();
        let ingress = Ingress::new(
            self.installation.backends.clone(),
            self.cache.clone(),
            self.installation.secret.clone(),
            self.config.admin.token.clone(),
            IngressConfig {
                dashboard_url: self.config.dashboard_url(),
                public_url: self.config.public_url(),
                is_demo,
                ..self.config.ingress.clone()
            },
            &self.registry,
        )
        .await?;
        let ingress = match ports.admin {
            Some(listener) => ingress.with_admin_listener(listener),
            None => ingress,
        };
        let ingress = ingress
            .with_provider_test(self.provider_test()?)
            .with_address_check(self.address_check());
        let ingress = match demo {
            Some(demo) => ingress.with_demo_page(demo.shop_id.clone()),
            None => ingress,
        };
        let budget = Duration::from_millis(self.config.ingress.drain_ms);
        self.supervisor
            .start_role("ingress", budget, |stop| ingress.serve(ports.public, stop));
        Ok(())
    }

    /// Returns the check of addresses that organizations save.
    fn address_check(&self) -> AddressCheck {
        let config = &self.config.workers;
        let checker = AddressChecker::new(config, &config.products);
        Arc::new(move |usage, url| {
            let checker = checker.clone();
            Box::pin(async move {
                match usage {
                    AddressUsage::Provider => checker.refusal_of_provider(&url).await,
                    AddressUsage::Feed => checker.refusal_of_feed(&url).await,
                }
            })
        })
    }

    /// Returns the test of providers for the dashboard.
    fn provider_test(&self) -> anyhow::Result<ProviderTest> {
        let tester = ProviderTester::new(&self.config.workers)?;
        Ok(Arc::new(move |provider, key| {
            let tester = tester.clone();
            Box::pin(async move { tester.test(&provider, key).await })
        }))
    }

    async fn start_workers(&mut self, role: ServiceRole) -> anyhow::Result<()> {
        let (routing, inference) = (
            role.includes_role(ServiceRole::Routing),
            role.includes_role(ServiceRole::Inference),
        );
        if !routing && !inference {
            return Ok(());
        }
        let context = WorkerContext {
            file_reader: ReaderPlace::this_program()?,
            backends: self.installation.backends.clone(),
            catalog: self.cache.clone(),
            vault: self.vault.clone(),
            default_provider: self.default_provider(inference).await?,
            config: self.config.workers.clone(),
            metrics: Arc::new(WorkerMetrics::register(&self.registry)?),
        };
        let budget = Duration::from_millis(self.config.workers.drain_ms);
        if routing {
            let worker = RoutingWorker::new(context.clone())?;
            self.supervisor
                .start_role("routing", budget, |stop| async move {
                    worker.run(stop).await;
                    Ok(())
                });
        }
        if inference {
            let feeds = context.clone();
            self.supervisor.start_role("feeds", Duration::ZERO, |stop| {
                switchboard_workers::run_feeds(feeds, stop)
            });
            let (backends, files) = (context.backends.clone(), &self.config.backends.files);
            let interval = Duration::from_millis(files.sweep_interval_ms);
            let removing = context.backends.clone();
            let workers = &self.config.workers;
            let delay = Duration::from_millis(workers.removal_delay_ms);
            if workers.removal_delay_ms < workers.removal_delay_needed_ms() {
                tracing::warn!(
                    needed_ms = workers.removal_delay_needed_ms(),
                    "workers.removal_delay_ms is too short: replies that run can leave data of a deleted organization"
                );
            }
            self.supervisor
                .start_role("removals", Duration::ZERO, move |stop| {
                    switchboard_workers::run_removals(removing, delay, stop)
                });
            self.supervisor.start_role("files", Duration::ZERO, |stop| {
                switchboard_workers::run_file_sweep(backends, interval, stop)
            });
            self.supervisor.start_role("inference", budget, |stop| {
                switchboard_workers::run_inference(context, stop)
            });
        }
        Ok(())
    }

    /// Returns the configured provider, or starts the built-in demo model.
    async fn default_provider(&mut self, inference: bool) -> anyhow::Result<DefaultProvider> {
        let model = &self.config.model;
        if !model.base_url.is_empty() || !inference {
            return Ok(DefaultProvider {
                base_url: model.base_url.clone(),
                api_key: model.api_key.clone(),
                model: model.name.clone(),
                api: model.api,
                continues_prefix: model.continues_prefix,
                vision: model.vision,
                is_demo: false,
                fallback: None,
            });
        }
        let demo = DemoModel::start()
            .await
            .context("cannot start the demo model")?;
        let provider = DefaultProvider {
            base_url: demo.base_url(),
            api_key: Some(demo.token().clone()),
            model: DEMO_MODEL.into(),
            api: ProviderApi::ChatCompletions,
            continues_prefix: true,
            vision: false,
            is_demo: true,
            fallback: None,
        };
        self.demo_model = Some(demo);
        Ok(provider)
    }

    fn start_ops(
        &mut self,
        listener: TcpListener,
        role: ServiceRole,
        readiness: Arc<ReadinessState>,
    ) {
        let model = if self.demo_model.is_some() {
            DEMO_MODEL
        } else {
            self.config.model.name.as_str()
        };
        let profile = match self.config.backends.profile {
            BackendProfile::Embedded => "embedded",
            BackendProfile::Cluster => "cluster",
        };
        let facts = [
            ("role", role.name()),
            ("profile", profile),
            ("model", model),
        ];
        let facts: Map<String, Value> = facts
            .map(|(name, fact)| (name.to_owned(), fact.into()))
            .into_iter()
            .collect();
        let ops = OpsServer {
            readiness,
            backends: self.installation.backends.clone(),
            registry: self.registry.clone(),
            facts,
        };
        self.supervisor
            .start_role("private port", OPS_DRAIN, |stop| ops.serve(listener, stop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_open_files_is_raised_to_its_maximum() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let lowered = Rlimit {
            current: maximum.map(|maximum| maximum - 1),
            maximum,
        };
        setrlimit(Resource::Nofile, lowered).unwrap();
        raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    }
}
