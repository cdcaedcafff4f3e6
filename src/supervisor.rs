//! Starts and stops the roles of a process. A stop has five phases:
//!
//! 1. `/readyz` returns 503 and everything else goes on, so that load balancers stop sending
//!    requests before they could be refused.
//! 2. The ingress stops accepting connections; open replies finish while the workers still run.
//! 3. The workers stop consuming; running jobs finish or are handed off.
//! 4. Each part flushes its offsets and writes.
//! 5. Telemetry is flushed.
//!
//! A role that ends before it was asked to stop is treated as crashed, and the process stops: a
//! restarted process is better than one that runs half of its roles.

use std::{future::Future, sync::Arc, time::Duration};

use anyhow::Context;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::ops_server::ReadinessState;

/// Extra time for a role beyond its drain budget before its task is abandoned.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

/// Running roles, in the order in which they stop.
pub(crate) struct RoleSupervisor {
    readiness: Arc<ReadinessState>,
    unready_notice: Duration,
    tracker: TaskTracker,
    roles: Vec<RunningRole>,
    /// Cancelled when any role ends.
    role_ended: CancellationToken,
}

struct RunningRole {
    name: &'static str,
    stop: CancellationToken,
    budget: Duration,
    task: JoinHandle<anyhow::Result<()>>,
}

impl RoleSupervisor {
    /// Creates a supervisor without roles. Before it stops a process whose readiness is watched, it
    /// waits for `unready_notice`.
    pub(crate) fn new(readiness: Arc<ReadinessState>, unready_notice: Duration) -> Self {
        Self {
            readiness,
            unready_notice,
            tracker: TaskTracker::new(),
            roles: Vec::new(),
            role_ended: CancellationToken::new(),
        }
    }

    /// Starts a role. It must return within `budget` after its token is cancelled.
    pub(crate) fn start_role<F>(
        &mut self,
        name: &'static str,
        budget: Duration,
        role: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let (running, requested, role_ended) =
            (role(stop.clone()), stop.clone(), self.role_ended.clone());
        let task = self.tracker.spawn(async move {
            let _guard = role_ended.drop_guard();
            let outcome = running.await;
            if requested.is_cancelled() {
                outcome
            } else {
                Err(outcome.err().unwrap_or_else(|| ended_unexpectedly(name)))
            }
        });
        self.roles.push(RunningRole {
            name,
            stop,
            budget,
            task,
        });
    }

    /// Waits for a signal or the end of a role, then stops the roles one after the other.
    ///
    /// Returns the first error of a role; a second signal ends the wait.
    pub(crate) async fn run_until_stopped(self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        tokio::select! {
            _ = terminate.recv() => tracing::info!("draining: SIGTERM"),
            _ = interrupt.recv() => tracing::info!("draining: SIGINT"),
            () = self.role_ended.cancelled() => tracing::error!("draining: a role ended unexpectedly"),
        }
        self.readiness.set_draining();
        let notice = if self.readiness.is_watched() && !self.role_ended.is_cancelled() {
            self.unready_notice
        } else {
            Duration::ZERO
        };
        let stopping = async {
            sleep(notice).await;
            stop_roles(self.roles).await
        };
        tokio::select! {
            outcome = stopping => outcome,
            _ = terminate.recv() => Err(anyhow::anyhow!("stopped by a second signal before the drain was over")),
            _ = interrupt.recv() => Err(anyhow::anyhow!("stopped by a second signal before the drain was over")),
        }
    }
}

async fn stop_roles(roles: Vec<RunningRole>) -> anyhow::Result<()> {
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

fn ended_unexpectedly(name: &str) -> anyhow::Error {
    anyhow::anyhow!("role {name} ended unexpectedly")
}
