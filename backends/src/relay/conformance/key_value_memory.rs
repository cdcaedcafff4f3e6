//! Conformance tests of the key-value memory.

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::ids::IngressId;

use super::support::World;
use crate::relay::Relay;

pub(super) async fn concurrent_inserts_return_one_value(world: World) {
    let (name, other) = (
        IngressId::random().to_string(),
        IngressId::random().to_string(),
    );
    let values: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let relays: [&Arc<dyn Relay>; 2] = [&world.worker, &world.ingress];
    let kept = join_all(
        values
            .iter()
            .enumerate()
            .map(|(index, value)| relays[index % 2].get_or_insert(&name, value)),
    )
    .await;
    let kept: Vec<_> = kept.into_iter().map(Result::unwrap).collect();
    assert!(
        values.contains(&kept[0]) && kept.iter().all(|value| *value == kept[0]),
        "{kept:?}"
    );
    assert_eq!(
        world.ingress.get_or_insert(&other, "own").await.unwrap(),
        "own"
    );
}

pub(super) async fn check_succeeds(world: World) {
    world.worker.check().await.unwrap();
}
