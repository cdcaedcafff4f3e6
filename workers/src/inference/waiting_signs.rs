//! Notifies ingresses that their messages are still queued. Without such a sign an ingress gives up
//! a message after about 20 s, so that no ingress or connection may delay the signs for others.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use switchboard_backends::relay::Relay;
use switchboard_schemas::{
    conversation_job::ConversationJob,
    ids::{IngressId, MessageId, OrgId},
    reply_event::{IngressEnvelope, ReplySignal},
    turn::Turn,
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

/// Tells ingresses which organizations crowd the queue, so that they refuse further messages of
/// these. Those of others would wait behind them in the partitions.
pub(super) async fn send_crowding(
    relay: &Arc<dyn Relay>,
    jobs: &[AssignedJob],
    queued_jobs_max: usize,
) {
    let turns: Vec<_> = jobs.iter().filter_map(waiting_turn).collect();
    let senders = turns.iter().map(|turn| (&turn.org_id, &turn.reply_to));
    let targets = crowding(senders, queued_jobs_max);
    send_concurrently(targets, |(org, ingress)| async move {
        let sign = IngressEnvelope::Crowded(org.clone());
        if let Err(error) = relay.push(ingress, &sign).await {
            tracing::debug!(%error, "could not send a sign of crowding");
        }
    })
    .await;
}

/// Returns the organizations that have more than a quarter of all places, if half of these are
/// taken, each with the ingresses of its messages.
fn crowding<'a>(
    senders: impl Iterator<Item = (&'a OrgId, &'a Option<IngressId>)> + Clone,
    queued_jobs_max: usize,
) -> HashSet<(&'a OrgId, &'a IngressId)> {
    let mut waiting = HashMap::new();
    for (org, _) in senders.clone() {
        *waiting.entry(org).or_insert(0_usize) += 1;
    }
    if waiting.values().sum::<usize>() < queued_jobs_max / 2 {
        return HashSet::new();
    }
    let crowded = senders.filter(|(org, _)| waiting[org] > queued_jobs_max / 4);
    crowded
        .filter_map(|(org, ingress)| Some((org, ingress.as_ref()?)))
        .collect()
}

fn waiting_turn(assigned: &AssignedJob) -> Option<&Turn> {
    match &*assigned.job {
        ConversationJob::Reply(job) | ConversationJob::Playground(job) => Some(&job.turn),
        ConversationJob::Patch(_) | ConversationJob::Delete(_) => None,
    }
}

/// Returns the ingress that waits for a job, with the reply that it waits for.
fn waiting_message(assigned: &AssignedJob) -> Option<(IngressId, MessageId)> {
    let turn = waiting_turn(assigned)?;
    Some((turn.reply_to.clone()?, turn.reply_id()))
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

    use switchboard_schemas::secret::InstallationSecret;
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

    #[test]
    fn organization_with_a_quarter_of_a_half_full_queue_crowds_it() {
        let secret = InstallationSecret::from_bytes([7; 32]);
        let orgs: Vec<_> = (0..3)
            .map(|name| OrgId::derive(&secret, &name.to_string()))
            .collect();
        let (here, nowhere) = (Some(IngressId::random()), None);
        let crowded = |waiting: &[usize], ingress: &Option<IngressId>| {
            let senders = orgs.iter().zip(waiting);
            let senders = senders.flat_map(|(org, count)| vec![(org, ingress); *count]);
            let senders: Vec<_> = senders.collect();
            let crowded = crowding(senders.iter().copied(), 16);
            let is_in = |org: &&OrgId| crowded.iter().any(|(found, _)| found == org);
            orgs.iter().map(|org| is_in(&org)).collect::<Vec<_>>()
        };
        assert_eq!(crowded(&[7], &here), [false; 3]);
        assert_eq!(crowded(&[8], &here), [true, false, false]);
        assert_eq!(crowded(&[4, 4, 5], &here), [false, false, true]);
        assert_eq!(crowded(&[16], &nowhere), [false; 3]);
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
