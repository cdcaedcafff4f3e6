//! Agents of the inference tests, and agents that may not answer.

use switchboard_schemas::{
    agent::{ActivationStatus, Agent, AgentSettings, EcommerceSettings, Product},
    ids::{AgentId, OrgId},
    reply_event::ReplyFailure,
    secret::InstallationSecret,
};

use super::{finished, world::World};
use crate::testing::says;

/// Returns the secret from which all ids of the tests are derived.
pub(super) fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([1; 32])
}

/// Returns an agent without tools.
pub(crate) fn shop() -> Agent {
    let org_id = OrgId::derive(&secret(), "acme");
    Agent {
        id: AgentId::derive(&secret(), &org_id, "shop"),
        org_id,
        slug: "shop".into(),
        name: "Shop".into(),
        provider: None,
        fallback_provider: None,
        settings: AgentSettings {
            instructions: "be kind".into(),
            ..AgentSettings::default()
        },
    }
}

pub(super) fn lamp_shop() -> Agent {
    let mut agent = shop();
    let lamp = |title: &str, price: &str| Product {
        title: title.into(),
        price: price.into(),
        image: "https://shop.example/a.jpg".into(),
        url: "https://shop.example/a".into(),
    };
    let products = vec![
        lamp("Desk Lamp", "$39"),
        lamp("Floor Lamp", "$89"),
        lamp("Mirror", "$10"),
    ];
    agent.settings.ecommerce = EcommerceSettings {
        enabled: true,
        products,
        ..EcommerceSettings::default()
    };
    agent
}

#[tokio::test]
async fn foreign_or_inactive_agent_does_not_answer() {
    let world = World::new(vec![says("Hello")], false).await;
    let agent = shop();
    let foreign = Agent {
        id: AgentId::derive(&secret(), &World::another_organization(), "shop"),
        org_id: World::another_organization(),
        ..agent.clone()
    };
    let inactive = Agent {
        id: AgentId::derive(&secret(), &agent.org_id, "inactive"),
        settings: AgentSettings {
            status: ActivationStatus::Inactive,
            ..AgentSettings::default()
        },
        ..agent
    };
    for unable in [foreign, inactive] {
        world.put_agent(&unable).await;
        let job = world.job_for(unable.id, "hi");
        assert!(finished(&world.run(&job).await));
        assert_eq!(
            world.record(&job).await.unwrap().end.failure,
            Some(ReplyFailure::AgentUnavailable)
        );
    }
    assert!(world.provider.bodies().is_empty());
}
