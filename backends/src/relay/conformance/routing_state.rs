//! Conformance tests of recorded routing decisions.

use switchboard_schemas::{
    ids::{AgentId, MessageId, OrgId},
    routing::{MemberScore, RoutingFacts, RoutingStage},
    secret::InstallationSecret,
};

use super::support::World;
use crate::relay::{RecordedDecisions, RoutingDecision};

fn decision(slug: &str) -> RoutingDecision {
    let secret = InstallationSecret::from_bytes(rand::random());
    let org = OrgId::derive(&secret, "acme");
    let agent_id = AgentId::derive(&secret, &org, slug);
    let scores = vec![MemberScore {
        agent_id: agent_id.clone(),
        permille: 731,
    }];
    let facts = RoutingFacts {
        stage: RoutingStage::Words,
        took_ms: 2,
        scores,
    };
    RoutingDecision {
        agent_id,
        reason: format!("asks about “{slug}”"),
        facts: Some(facts),
    }
}

pub(super) async fn first_decision_of_a_message_is_kept_and_the_last_known(world: World) {
    let [first, second, third] = [(); 3].map(|()| MessageId::new_in(&world.conversation));
    let (one, two) = (decision("one"), decision("two"));
    assert_eq!(
        world.worker.recorded_decisions(&first).await.unwrap(),
        RecordedDecisions::default()
    );
    assert_eq!(
        world.worker.record_decision(&first, &one).await.unwrap(),
        one
    );
    assert_eq!(
        world.worker.record_decision(&first, &two).await.unwrap(),
        one
    );
    world.worker.record_decision(&second, &two).await.unwrap();
    assert_eq!(
        world.worker.record_decision(&first, &two).await.unwrap(),
        one,
        "an older message is no news"
    );
    let known = world.ingress.recorded_decisions(&third).await.unwrap();
    assert_eq!(
        known,
        RecordedDecisions {
            own: None,
            last: Some(two.clone())
        }
    );
    assert_eq!(
        world.ingress.recorded_decisions(&first).await.unwrap(),
        RecordedDecisions {
            own: Some(one),
            last: Some(two)
        }
    );
}
