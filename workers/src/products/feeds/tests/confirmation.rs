//! Replacements by a feed that are probably mistakes.

use switchboard_backends::products::{FeedRefresh, replacement::ReplacementConsent};

use super::*;

#[tokio::test]
async fn feed_that_loses_most_products_waits_for_a_confirmation() {
    let world = World::new().await;
    let many: String = (0..20).map(|number| format!("Tea {number}\n")).collect();
    let many = format!("title\n{many}");
    world.script.then(move || many.clone().into_response());
    world.script.then(|| "title\nTea\n".into_response());
    let full = world.refresh().await.kept;
    for _ in 0..2 {
        let kept = world.refresh().await;
        assert_eq!(kept.kept, full);
        let refresh = kept.refresh.unwrap();
        assert_eq!(refresh.consent, ReplacementConsent::Needed);
        let error = refresh.error.unwrap();
        assert!(error.contains("1 product and would replace 20"), "{error}");
    }
    let confirmed = FeedRefresh {
        consent: ReplacementConsent::Given,
        ..world.status().await.refresh.unwrap()
    };
    let products = &world.backends.products;
    let (org, agent) = (&world.agent.org_id, &world.agent.id);
    products
        .record_refresh(org, agent, &confirmed)
        .await
        .unwrap();
    let replaced = world.refresh().await;
    assert_eq!(replaced.kept.unwrap().count, 1);
    let refresh = replaced.refresh.unwrap();
    assert_eq!(
        (refresh.error, refresh.consent),
        (None, ReplacementConsent::Unneeded)
    );
}
