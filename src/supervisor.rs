//! From the signal to the exit code, in five phases:
//!
//! 1. readiness answers 503, so that balancers look elsewhere;
//! 2. the ingress stops accepting; its open replies finish while the workers still run;
//! 3. the workers stop taking; running jobs finish, the rest is handed over;
//! 4. offsets and writes are flushed by the parts that own them;
//! 5. telemetry is flushed.
//!
//! Each role is a task with a token of its own; a role that ends before it was asked to has died, and takes the process
//! with it, so that a supervisor starts it anew instead of half a process living on.

use std::{future::Future, sync::Arc, time::Duration};

use anyhow::Context;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::ops::Readiness;

/// How long a role may take beyond its own drain budget before it is given up.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

/// The running roles, in the order in which they are to stop.
pub(crate) struct Lifecycle {
    readiness: Arc<Readiness>,
    tracker: TaskTracker,
    roles: Vec<Role>,
    died: CancellationToken,
}

struct Role {
    name: &'static str,
    stop: CancellationToken,
    budget: Duration,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Lifecycle {
    /// Nothing runs yet.
    pub(crate) fn new(readiness: Arc<Readiness>) -> Self {
        Self {
            readiness,
            tracker: TaskTracker::new(),
            roles: Vec::new(),
            died: CancellationToken::new(),
        }
    }

    /// Starts a role; it is to return within `budget` once its token is cancelled.
    pub(crate) fn start<F>(
        &mut self,
        name: &'static str,
        budget: Duration,
        role: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let (running, asked, died) = (role(stop.clone()), stop.clone(), self.died.clone());
        let task = self.tracker.spawn(async move {
            let _guard = died.drop_guard();
            let outcome = running.await;
            if asked.is_cancelled() {
                outcome
            } else {
                Err(outcome.err().unwrap_or_else(|| ended_unasked(name)))
            }
        });
        self.roles.push(Role {
            name,
            stop,
            budget,
            task,
        });
    }

    /// Waits for a signal or a death, then stops the roles one after the other.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        tokio::select! {
            _ = terminate.recv() => tracing::info!("draining: SIGTERM"),
            _ = interrupt.recv() => tracing::info!("draining: SIGINT"),
            () = self.died.cancelled() => tracing::error!("draining: a role has ended by itself"),
        }
        self.readiness.drain();
        tokio::select! {
            outcome = stop_all(self.roles) => outcome,
            _ = terminate.recv() => Err(anyhow::anyhow!("stopped by a second signal before the drain was over")),
            _ = interrupt.recv() => Err(anyhow::anyhow!("stopped by a second signal before the drain was over")),
        }
    }
}

async fn stop_all(roles: Vec<Role>) -> anyhow::Result<()> {
    let mut first_failure = Ok(());
    for role in roles {
        role.stop.cancel();
        let outcome = match timeout(role.budget + DRAIN_GRACE, role.task).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(anyhow::anyhow!("role {} panicked: {panic}", role.name)),
            Err(_) => Err(anyhow::anyhow!(
                "role {} did not stop within its budget",
                role.name
            )),
        };
        match outcome {
            Ok(()) => tracing::info!(role = role.name, "stopped"),
            Err(error) => {
                tracing::error!(
                    role = role.name,
                    error = format!("{error:#}"),
                    "stopped with an error"
                );
                if first_failure.is_ok() {
                    first_failure = Err(error.context(format!("role {}", role.name)));
                }
            }
        }
    }
    first_failure
}

fn ended_unasked(name: &str) -> anyhow::Error {
    anyhow::anyhow!("role {name} ended without being asked to")
}
