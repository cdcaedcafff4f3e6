//! Notifies ingresses that their messages are still queued. Without such a sign an ingress gives up
//! a message after about 20 s, so that no ingress or connection may delay the signs for others.

use std::sync::Arc;

use futures::{StreamExt, stream};
use switchboard_backends::relay::Relay;
use switchboard_schemas::{
    conversation_job::ConversationJob,
    ids::{IngressId, MessageId},
    reply_event::{IngressEnvelope, ReplySignal},
};

use super::AssignedJob;

/// Most signs that are sent at the same time.
const CONCURRENT_SIGNS_MAX: usize = 64;

/// Sends a sign for every queued message. Failed signs are repeated with the next announcement.
pub(super) async fn send_signs(relay: &Arc<dyn Relay>, jobs: &[AssignedJob]) {
    let targets: Vec<_> = jobs.iter().filter_map(waiting_message).collect();
    send_concurrently(targets, |(ingress, reply_id)| async move {
        if let Err(error) = relay
            .push(
                &ingress,
                &IngressEnvelope::Reply(reply_id, ReplySignal::Waiting),
            )
            .await
        {
            tracing::debug!(%error, "could not send a waiting sign");
        }
    })
    .await;
}

/// Returns the ingress that waits for a job, with the reply that it waits for.
fn waiting_message(assigned: &AssignedJob) -> Option<(IngressId, MessageId)> {
    match &*assigned.job {
        ConversationJob::Reply(job) | ConversationJob::Playground(job) => {
            Some((job.turn.reply_to.clone()?, job.turn.reply_id()))
        }
        ConversationJob::Patch(_) | ConversationJob::Delete(_) => None,
    }
}

async fn send_concurrently<T, F>(targets: impl IntoIterator<Item = T>, send: impl Fn(T) -> F)
where
    F: Future<Output = ()>,
{
    stream::iter(targets)
        .for_each_concurrent(CONCURRENT_SIGNS_MAX, send)
        .await;
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// Duration of one ordinary round trip.
    const ROUND_TRIP: Duration = Duration::from_millis(100);
    const TARGETS: u32 = 600;

    #[tokio::test(start_paused = true)]
    async fn slow_sign_does_not_delay_others() {
        let started = Instant::now();
        let others_done = Cell::new(Duration::ZERO);
        let others_done = &others_done;
        send_concurrently(0..TARGETS, |target| async move {
            if target == 0 {
                sleep(Duration::from_secs(60)).await;
            } else {
                sleep(ROUND_TRIP).await;
                others_done.set(started.elapsed());
            }
        })
        .await;
        let (took, sequential) = (others_done.get(), ROUND_TRIP * TARGETS);
        assert!(
            took <= sequential / 32,
            "the last sign took {took:?}, one after the other {sequential:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_signs_are_bounded() {
        let (running, most) = (Cell::new(0), Cell::new(0));
        let (running, most) = (&running, &most);
        send_concurrently(0..TARGETS, |_| async move {
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            sleep(ROUND_TRIP).await;
            running.set(running.get() - 1);
        })
        .await;
        assert_eq!(most.get(), CONCURRENT_SIGNS_MAX);
    }
}
