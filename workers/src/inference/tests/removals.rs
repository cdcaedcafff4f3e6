//! Removal of organizations: what is counted, what goes on, and what late messages leave.

use std::time::Duration;

use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    store::ReplyStateStore,
    testing::Fault,
};
use switchboard_schemas::{ids::OrgId, removal::OrganizationRemoval};

use super::{agents::shop, finished, world::World};
use crate::{removals::RemovalRunner, testing::says};

const LONG: Duration = Duration::from_secs(600);

async fn begin(world: &World) -> OrgId {
    let org = shop().org_id;
    let removal = OrganizationRemoval::begin(org.clone(), None);
    let entry = CatalogEntry::Removal(removal);
    world.backends().catalog.put(&entry).await.unwrap();
    org
}

async fn removal(world: &World, org: &OrgId) -> OrganizationRemoval {
    let entry = world
        .backends()
        .catalog
        .get(EntryKind::Removal, org.as_str());
    match entry.await.unwrap() {
        Some(CatalogEntry::Removal(removal)) => removal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn closed_organization_waits_for_its_running_replies() {
    let world = World::new(vec![says("one")], false).await;
    assert!(finished(&world.run(&world.job("hi")).await));
    let org = begin(&world).await;
    let runner = RemovalRunner::new(world.backends().clone(), LONG);
    for _ in 0..2 {
        runner.work().await.unwrap();
    }
    let removal = removal(&world, &org).await;
    assert!(removal.closed_at.is_some() && !removal.is_counted);
    let agents = world.backends().catalog.list(EntryKind::Agent, Some(&org));
    assert_eq!(agents.await.unwrap(), []);
    assert_eq!(world.messages(&world.job("hi")).await.len(), 2);
}

#[tokio::test]
async fn interrupted_removal_counts_each_conversation_once() {
    let world = World::new(vec![says("one"), says("two")], false).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    let org = begin(&world).await;
    let runner = || RemovalRunner::new(world.backends().clone(), Duration::ZERO);
    for operation in ["conversations", "conversation"] {
        world.store.faults.inject_times(operation, Fault::Refuse, 1);
        runner().work().await.unwrap();
        assert!(!removal(&world, &org).await.is_counted, "{operation}");
        // Another process goes on when the claim of the first one has ended.
        world.lose_relay_data();
    }
    world
        .bus
        .faults
        .inject_times("erase_organization", Fault::Refuse, 1);
    runner().work().await.unwrap();
    assert_eq!(removal(&world, &org).await.finished_at, None);
    world.lose_relay_data();
    runner().work().await.unwrap();
    let removal = removal(&world, &org).await;
    assert!(removal.finished_at.is_some());
    assert_eq!((removal.conversations, removal.messages), (1, 2));
}

#[tokio::test]
async fn claimed_removal_is_left_to_its_process() {
    let world = World::new(Vec::new(), false).await;
    let org = begin(&world).await;
    world
        .relay
        .faults
        .alter("get_or_insert", |_: String| "other".to_owned());
    let runner = RemovalRunner::new(world.backends().clone(), Duration::ZERO);
    runner.work().await.unwrap();
    assert_eq!(removal(&world, &org).await.closed_at, None);
    world.relay.faults.clear("get_or_insert");
}

#[tokio::test]
async fn message_of_a_removed_organization_is_not_stored() {
    let mut world = World::new(vec![says("one")], false).await;
    begin(&world).await;
    let job = world.job("hi");
    assert!(finished(&world.run(&job).await));
    world.pushed(&job).await;
    assert_eq!(world.messages(&job).await, []);
    let reply = job.turn.reply_id();
    let store = world.store.inner();
    let known = store.known_reply(&job.turn.org_id, &reply).await;
    assert_eq!(known.unwrap(), None);
    assert_eq!(world.provider.bodies().len(), 0);
}
