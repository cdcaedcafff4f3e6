//! Agents of the inference tests.

use switchboard_schemas::{
    agent::{Agent, AgentSettings, EcommerceSettings, Product},
    ids::{AgentId, OrgId},
    secret::InstallationSecret,
};

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
