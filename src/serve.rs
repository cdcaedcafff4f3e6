//! Runs the service: opens the outside world, starts the roles that the argument names, waits for the end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use prometheus::{Registry, process_collector::ProcessCollector};
use serde_json::{Map, Value};
use switchboard_backends::{
    catalog::cache::CatalogCache, config::BackendProfile, vault::SecretVault,
};
use switchboard_ingress::{Ingress, IngressConfig};
use switchboard_workers::{
    DefaultProvider, WorkerContext,
    demo_model::{DEMO_MODEL, DemoModel},
    metrics::WorkerMetrics,
};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::{
    banner::{self, DemoLine, Welcome},
    config::Config,
    demo,
    lifecycle::Lifecycle,
    open::{self, Opened},
    ops::{Ops, Readiness},
    telemetry::Telemetry,
};

/// How long the private port may take to close.
const OPS_DRAIN: Duration = Duration::from_secs(1);

/// Which part of the service to run.
#[derive(Args, Default)]
pub(crate) struct ServeArguments {
    /// Role of this process; all roles but `all` need the cluster profile.
    #[arg(long, value_enum, default_value_t, env = "SWITCHBOARD_ROLE")]
    role: Role,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Role {
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

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Ingress => "ingress",
            Self::Routing => "routing",
            Self::Inference => "inference",
        }
    }

    fn includes(self, part: Self) -> bool {
        self == Self::All || self == part
    }
}

/// Serves until a signal; returns once everything is drained.
pub(crate) fn run(
    runtime: &Runtime,
    config: Config,
    arguments: &ServeArguments,
) -> anyhow::Result<()> {
    if config.backends.profile == BackendProfile::Embedded && arguments.role != Role::All {
        bail!(
            "a single role needs the cluster profile (SWITCHBOARD__PROFILE=cluster): the embedded one is one process"
        );
    }
    let telemetry = runtime.block_on(async { Telemetry::install(&config.telemetry) })?;
    let outcome = runtime.block_on(Box::pin(serve(config, arguments.role)));
    // The exporter blocks its thread while it sends what is left, which the runtime's threads must not.
    telemetry.flush();
    outcome
}

async fn serve(config: Config, role: Role) -> anyhow::Result<()> {
    let opened = open::open(&config, role.name()).await?;
    let registry = Registry::new();
    registry.register(Box::new(ProcessCollector::for_self()))?;
    let readiness = Arc::new(Readiness::default());
    let mut parts = Parts {
        lifecycle: Lifecycle::new(readiness.clone()),
        cache: CatalogCache::new(opened.backends.catalog.clone()),
        vault: SecretVault::new(&opened.secret),
        demo_model: None,
        registry,
        config,
        opened,
    };
    let ops = parts
        .listen(
            parts.config.ops.listen,
            "private port",
            "SWITCHBOARD__OPS__LISTEN",
        )
        .await?;
    let ports = if role.includes(Role::Ingress) {
        Some(parts.listen_for_clients().await?)
    } else {
        None
    };
    if parts.config.backends.profile == BackendProfile::Embedded {
        parts.opened.backends.bus.migrate().await?;
    }
    let demo = demo::prepare(&parts.config, &parts.opened).await?;
    if let Some(ports) = ports {
        parts.start_ingress(ports, demo.as_ref()).await?;
    }
    parts.start_workers(role).await?;
    parts.start_ops(ops, role, readiness.clone());
    readiness.ready();
    tracing::info!(role = role.name(), "ready");
    if role == Role::All {
        let admin_url = parts.config.admin_url();
        banner::welcome(&Welcome {
            public_url: &parts.config.public_url(),
            dashboard_url: &parts.config.dashboard_url(),
            admin_url: parts
                .config
                .admin
                .token
                .as_ref()
                .map(|_| admin_url.as_str()),
            ops: parts.config.ops.listen,
            data_dir: &parts.config.backends.data_dir,
            demo,
            model: parts
                .demo_model
                .is_none()
                .then_some(parts.config.model.name.as_str()),
            has_key_alone: parts.config.model.has_key_alone(),
        });
    }
    let outcome = parts.lifecycle.run().await;
    if let Some(model) = parts.demo_model {
        model.shutdown().await;
    }
    outcome
}

/// What the roles of this process share.
struct Parts {
    lifecycle: Lifecycle,
    cache: CatalogCache,
    vault: SecretVault,
    demo_model: Option<DemoModel>,
    registry: Registry,
    config: Config,
    opened: Opened,
}

/// Where the ingress takes connections.
struct ClientPorts {
    public: TcpListener,
    admin: Option<TcpListener>,
}

impl Parts {
    /// All ports are taken before anything starts, so that one that is taken is told at once.
    async fn listen_for_clients(&self) -> anyhow::Result<ClientPorts> {
        let public = self
            .listen(
                self.config.ingress.listen,
                "public port",
                "SWITCHBOARD__INGRESS__LISTEN",
            )
            .await?;
        let admin = match self.config.admin.listen {
            Some(address) => Some(
                self.listen(
                    address,
                    "administrators' port",
                    "SWITCHBOARD__ADMIN__LISTEN",
                )
                .await?,
            ),
            None => None,
        };
        Ok(ClientPorts { public, admin })
    }

    async fn listen(
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
        demo: Option<&DemoLine>,
    ) -> anyhow::Result<()> {
        let ingress = Ingress::new(
            self.opened.backends.clone(),
            self.cache.clone(),
            self.opened.secret.clone(),
            self.config.admin.token.clone(),
            IngressConfig {
                dashboard_url: self.config.dashboard_url(),
                public_url: self.config.public_url(),
                ..self.config.ingress.clone()
            },
            &self.registry,
        )
        .await?;
        let ingress = match ports.admin {
            Some(listener) => ingress.with_admin_listener(listener),
            None => ingress,
        };
        let ingress = match demo {
            Some(demo) => ingress.with_demo_page(demo.shop_id.clone()),
            None => ingress,
        };
        let budget = Duration::from_millis(self.config.ingress.drain_ms);
        self.lifecycle
            .start("ingress", budget, |stop| ingress.serve(ports.public, stop));
        Ok(())
    }

    async fn start_workers(&mut self, role: Role) -> anyhow::Result<()> {
        let (routing, inference) = (role.includes(Role::Routing), role.includes(Role::Inference));
        if !routing && !inference {
            return Ok(());
        }
        let context = WorkerContext {
            backends: self.opened.backends.clone(),
            catalog: self.cache.clone(),
            vault: self.vault.clone(),
            default_provider: self.default_provider(inference).await?,
            config: self.config.workers.clone(),
            metrics: Arc::new(WorkerMetrics::register(&self.registry)?),
        };
        let budget = Duration::from_millis(self.config.workers.drain_ms);
        if routing {
            let context = context.clone();
            self.lifecycle.start("routing", budget, |stop| {
                switchboard_workers::run_routing(context, stop)
            });
        }
        if inference {
            let feeds = context.clone();
            self.lifecycle.start("feeds", Duration::ZERO, |stop| {
                switchboard_workers::run_feeds(feeds, stop)
            });
            self.lifecycle.start("inference", budget, |stop| {
                switchboard_workers::run_inference(context, stop)
            });
        }
        Ok(())
    }

    /// The configured endpoint, or the built-in demo model where none is configured.
    async fn default_provider(&mut self, inference: bool) -> anyhow::Result<DefaultProvider> {
        let model = &self.config.model;
        if !model.base_url.is_empty() || !inference {
            return Ok(DefaultProvider {
                base_url: model.base_url.clone(),
                api_key: model.api_key.clone(),
                model: model.name.clone(),
                continues_prefix: model.continues_prefix,
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
            continues_prefix: true,
            fallback: None,
        };
        self.demo_model = Some(demo);
        Ok(provider)
    }

    fn start_ops(&mut self, listener: TcpListener, role: Role, readiness: Arc<Readiness>) {
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
        let ops = Ops {
            readiness,
            backends: self.opened.backends.clone(),
            registry: self.registry.clone(),
            facts,
        };
        self.lifecycle
            .start("private port", OPS_DRAIN, |stop| ops.serve(listener, stop));
    }
}
