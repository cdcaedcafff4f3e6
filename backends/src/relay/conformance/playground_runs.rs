//! Conformance tests of the playground runs.

use switchboard_schemas::ids::MessageId;

use super::support::{World, any_conversation};

pub(super) async fn playground_run_is_read_by_another_process_by_its_id(world: World) {
    let [run, other] = [(); 2].map(|()| MessageId::new_in(&any_conversation()));
    assert_eq!(world.worker.playground_run(&run).await.unwrap(), None);
    for text in ["draft", "a later draft é"] {
        world.ingress.put_playground_run(&run, text).await.unwrap();
        assert_eq!(
            world.worker.playground_run(&run).await.unwrap().as_deref(),
            Some(text)
        );
    }
    assert_eq!(world.worker.playground_run(&other).await.unwrap(), None);
}
