//! Faults of the operations of one backend, and a record of its calls.

use std::{any::Any, collections::HashMap, future::Future, ops::Range, sync::mpsc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, task, time};

use crate::{bus::BusError, error::StoreError, limiter::RateLimiterError, relay::RelayError};

/// Message of every injected error.
const INJECTED: &str = "injected by a test";

/// A fault of a call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call fails as unavailable and has no effect.
    Refuse,
    /// The call fails as unavailable after a delay and has no effect. It hangs where the delay is
    /// longer than the caller's patience.
    Stall(Duration),
}

/// An error type with a variant for a backend that cannot be reached.
pub trait Unavailable {
    /// Creates the error with a reason.
    fn unavailable(reason: String) -> Self;
}

macro_rules! unavailable {
    ($($error:ty),*) => { $(
        impl Unavailable for $error {
            fn unavailable(reason: String) -> Self {
                Self::Unavailable(reason)
            }
        }
    )* };
}
unavailable!(BusError, RateLimiterError, RelayError, StoreError);

/// Injected faults and recorded calls of one backend. Operations are named like the methods of the
/// trait; the name of a topic stands for the publishes on it. Without a fault, calls go to the
/// embedded backend.
#[derive(Default)]
pub struct Faults {
    plan: Mutex<FaultPlan>,
    calls: watch::Sender<RecordedCalls>,
}

#[derive(Default)]
struct FaultPlan {
    /// Fault of every operation without one of its own, with its end.
    all: Option<(Fault, Option<time::Instant>)>,
    /// Fault of an operation, and the range of its next calls that it applies to.
    operations: HashMap<&'static str, (Fault, Range<usize>)>,
    /// Functions that change the result of an operation, each a boxed [`Alteration`].
    alterations: HashMap<&'static str, Box<dyn Any + Send>>,
}

/// A function that changes the result of an operation.
type Alteration<T> = Box<dyn FnMut(T) -> T + Send>;

#[derive(Default)]
struct RecordedCalls {
    /// Calls of each operation, including failed ones.
    counts: HashMap<&'static str, usize>,
    /// Operation and argument of each call that took effect, oldest first.
    effects: Vec<(&'static str, Box<dyn Any + Send + Sync>)>,
}

impl Faults {
    /// Refuses every operation until called with `false`.
    pub fn set_down(&self, down: bool) {
        self.plan().all = down.then_some((Fault::Refuse, None));
    }

    /// Refuses every operation for a duration.
    pub fn set_down_for(&self, duration: Duration) {
        self.plan().all = Some((Fault::Refuse, Some(time::Instant::now() + duration)));
    }

    /// Injects a fault into an operation until it is [cleared](Self::clear).
    pub fn inject(&self, operation: &'static str, fault: Fault) {
        self.inject_times(operation, fault, usize::MAX);
    }

    /// Injects a fault into the next `times` calls of an operation.
    pub fn inject_times(&self, operation: &'static str, fault: Fault, times: usize) {
        self.plan().operations.insert(operation, (fault, 0..times));
    }

    /// Injects a fault into an operation after its next `count` calls, until it is
    /// [cleared](Self::clear).
    pub fn inject_after(&self, operation: &'static str, fault: Fault, count: usize) {
        let calls = count..usize::MAX;
        self.plan().operations.insert(operation, (fault, calls));
    }

    /// Changes every result of an operation with `alter`, until it is [cleared](Self::clear).
    pub fn alter<T: 'static>(
        &self,
        operation: &'static str,
        alter: impl FnMut(T) -> T + Send + 'static,
    ) {
        let alter: Alteration<T> = Box::new(alter);
        self.plan().alterations.insert(operation, Box::new(alter));
    }

    /// Removes the fault and the alteration of an operation.
    pub fn clear(&self, operation: &'static str) {
        let mut plan = self.plan();
        plan.operations.remove(operation);
        plan.alterations.remove(operation);
    }

    /// Returns the number of recorded calls of an operation, including failed ones.
    pub fn call_count(&self, operation: &str) -> usize {
        let calls = self.calls.borrow();
        calls.counts.get(operation).copied().unwrap_or_default()
    }

    /// Returns the recorded arguments of the calls of an operation that took effect, oldest first.
    /// Operations that record an argument are marked with `records` where they are implemented.
    pub fn arguments<T: Clone + 'static>(&self, operation: &str) -> Vec<T> {
        let calls = self.calls.borrow();
        let calls = calls.effects.iter().filter(|(name, _)| *name == operation);
        let arguments = calls.filter_map(|(_, argument)| argument.downcast_ref());
        arguments.cloned().collect()
    }

    /// Forgets all recorded calls.
    pub fn forget_calls(&self) {
        self.calls
            .send_modify(|calls| *calls = RecordedCalls::default());
    }

    /// Waits until a condition on the recorded calls holds.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Self) -> bool) {
        let mut calls = self.calls.subscribe();
        // The sender lives as long as `self`.
        while !condition(self) && calls.changed().await.is_ok() {}
    }

    /// Records a call and runs it with the fault of its operation, if it has one.
    pub(super) async fn call<T: 'static, E: Unavailable>(
        &self,
        operation: &'static str,
        argument: impl Any + Send + Sync,
        call: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let fault = self.next_fault(operation);
        self.calls
            .send_modify(|calls| *calls.counts.entry(operation).or_default() += 1);
        if let Some(fault) = fault {
            if let Fault::Stall(delay) = fault {
                time::sleep(delay).await;
            }
            return Err(E::unavailable(INJECTED.into()));
        }
        let result = with_clock_stopped(call).await?;
        self.calls
            .send_modify(|calls| calls.effects.push((operation, Box::new(argument))));
        let mut plan = self.plan();
        let alteration = plan.alterations.get_mut(operation);
        Ok(
            match alteration.and_then(|any| any.downcast_mut::<Alteration<T>>()) {
                Some(alter) => alter(result),
                None => result,
            },
        )
    }

    fn next_fault(&self, operation: &'static str) -> Option<Fault> {
        let mut plan = self.plan();
        if let Some((fault, calls)) = plan.operations.get_mut(operation) {
            let is_next = calls.contains(&0);
            *calls = calls.start.saturating_sub(1)..calls.end.saturating_sub(1);
            if is_next {
                return Some(*fault);
            }
        }
        let (fault, until) = plan.all?;
        until
            .is_none_or(|until| time::Instant::now() < until)
            .then_some(fault)
    }

    fn plan(&self) -> MutexGuard<'_, FaultPlan> {
        self.plan.lock()
    }
}

/// Runs a call while a paused clock stands still. An embedded backend works on threads that the
/// runtime does not know, so that a paused clock would otherwise jump to the next timeout.
pub(crate) async fn with_clock_stopped<T>(call: impl Future<Output = T>) -> T {
    let (_running, ended) = mpsc::sync_channel::<()>(0);
    // A blocking task keeps the clock of its runtime from advancing by itself.
    task::spawn_blocking(move || ended.recv());
    call.await
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<u32, StoreError>;

    async fn call(faults: &Faults, value: u32) -> Outcome {
        faults.call("read", value, async move { Ok(value) }).await
    }

    #[tokio::test]
    async fn call_without_a_fault_returns_its_result() {
        assert_eq!(call(&Faults::default(), 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn refused_call_has_no_effect() {
        let (faults, mut ran) = (Faults::default(), false);
        faults.inject("write", Fault::Refuse);
        let outcome: Outcome = faults
            .call("write", (), async {
                ran = true;
                Ok(1)
            })
            .await;
        assert!(outcome.is_err(), "{outcome:?}");
        assert!(!ran, "the call reached the backend");
    }

    #[tokio::test]
    async fn fault_applies_to_a_number_of_calls() {
        let faults = Faults::default();
        faults.inject_times("read", Fault::Refuse, 2);
        let mut failed = Vec::new();
        for value in 0..3 {
            failed.push(call(&faults, value).await.is_err());
        }
        assert_eq!(failed, [true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn backend_is_down_for_a_duration() {
        let faults = Faults::default();
        faults.set_down_for(Duration::from_secs(1));
        assert!(call(&faults, 1).await.is_err());
        time::advance(Duration::from_secs(1)).await;
        assert_eq!(call(&faults, 1).await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_call_fails_after_its_delay() {
        let (faults, start) = (Faults::default(), time::Instant::now());
        faults.inject("read", Fault::Stall(Duration::from_secs(5)));
        assert!(call(&faults, 1).await.is_err());
        assert_eq!(start.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test]
    async fn alteration_changes_results_until_cleared() {
        let faults = Faults::default();
        faults.alter("read", |value: u32| value + 1);
        assert_eq!(call(&faults, 1).await.unwrap(), 2);
        faults.clear("read");
        assert_eq!(call(&faults, 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn calls_with_an_effect_are_recorded_with_their_argument() {
        let faults = Faults::default();
        assert_eq!(call(&faults, 3).await.unwrap(), 3);
        faults.set_down(true);
        assert!(call(&faults, 4).await.is_err());
        assert_eq!(faults.call_count("read"), 2);
        assert_eq!(faults.arguments::<u32>("read"), [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn paused_clock_stands_still_during_a_call() {
        let (faults, start) = (Faults::default(), time::Instant::now());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            sender.send(7).unwrap();
        });
        let slow = async {
            receiver
                .await
                .map_err(|_| StoreError::unavailable("gone".into()))
        };
        let outcome = time::timeout(Duration::from_secs(1), faults.call("read", (), slow)).await;
        assert_eq!(outcome.unwrap().unwrap(), 7);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
