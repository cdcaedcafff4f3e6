//! The effect of one organization's slow replies on the first byte of another's.

use std::time::Duration;

use futures::future::join_all;
use hdrhistogram::Histogram;

use crate::{
    load::{self, Target},
    organization,
    support::{Profile, Script, TestService},
};

/// Slots of the service, the share of each of two organizations, and the chats of the busy one: ten
/// times its share.
const SLOTS: usize = 20;
const BUSY_CHATS: usize = 10 * SLOTS / 2;
/// Chats of the other organization, one after the other.
const SAMPLES: usize = 300;
/// Time in which the slots fill.
const FILLING: Duration = Duration::from_secs(3);

/// Measures the microseconds to the first text of one organization, alone and while another one
/// keeps ten times its share of replies open.
pub(crate) async fn first_bytes(profile: Profile) -> (Histogram<u64>, Histogram<u64>) {
    let slots = SLOTS.to_string();
    let setting = ("SWITCHBOARD__WORKERS__IN_FLIGHT_MAX", slots.as_str());
    let service = TestService::start_as(profile, &[setting]).await;
    let (quiet, busy) = (organization(&service).await, organization(&service).await);
    quiet.script(Script::counts(1, Duration::ZERO));
    busy.script(Script::counts(100, Duration::from_millis(300)));
    let target = Target::through(&service, &quiet);
    load::first_bytes(&target, 1, SAMPLES / 3).await;
    let alone = load::first_bytes(&target, 1, SAMPLES).await;
    let load = Target::through(&service, &busy);
    let endless = join_all((0..BUSY_CHATS).map(|_| load::first_bytes(&load, 1, usize::MAX)));
    let beside = async {
        tokio::time::sleep(FILLING).await;
        load::first_bytes(&target, 1, SAMPLES).await
    };
    let beside = tokio::select! {
        biased;
        measured = beside => measured,
        _ = endless => unreachable!("the load has no end"),
    };
    (alone, beside)
}
