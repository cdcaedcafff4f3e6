//! Appearance and accessibility of pages that need preparation: playground runs of an agent and a
//! team, and a failed feed.

use std::time::Duration;

use serde_json::json;

use super::{
    Person,
    appearance::{look_at, shop},
};
use crate::support::{
    PATIENCE, Script, ScriptedModel, SharedService, VIEWS, eventually, shop_with_settings,
};

/// Pause before each chunk of a reply, for realistic times.
const PACE: Duration = Duration::from_millis(25);
/// Duration of the transition between color schemes.
const SETTLED: &str = "
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    await Promise.all(document.getAnimations().filter(animation => animation instanceof CSSTransition).map(transition => transition.finished));";
const TRY: &str = "document.querySelector('#try, aside').scrollIntoView(); scrollBy(0, -72);";

/// Checks the page in each size and color scheme, on a phone with the part below the form.
async fn look_everywhere(person: &Person, name: &str, scroll: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for view in VIEWS {
        person.browser.looks_like(view.1, view.2, view.3).await;
        person.does(SETTLED).await;
        person
            .does(&format!(
                "scrollTo(0, 0); if (innerWidth < 600) {{ {scroll} }}"
            ))
            .await;
        findings.extend(look_at(person, name, view.0).await);
    }
    findings
}

#[tokio::test]
async fn playground_with_two_replies_is_accessible_in_every_size() {
    let service = SharedService::get().await;
    let organization = shop().await;
    let answers = |text: &str| {
        Script::in_turn(vec![
            Script::searches("green tea"),
            Script::says(text).paced(PACE),
        ])
    };
    let saved = "We have Sencha from Uji for $12, and Green tea for $9.";
    let draft = "Two green teas are here today:\n\n- **Sencha from Uji**, fresh, of the first flush\n- **Green tea**, mild and cheaper\n\nFor the afternoon I would take the Sencha.";
    ScriptedModel::get().register("leaf-small", answers(saved));
    ScriptedModel::get().register("leaf-large", answers(draft));
    let agent = organization.admin_path(&format!("/agents/{}", organization.shop()));
    assert_eq!(
        service
            .admin()
            .patch(&agent, &json!({"model": "leaf-small"}))
            .await
            .status,
        200
    );
    let path = format!("/agents/{}?tab=instructions", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    person
        .browser
        .looks_like(VIEWS[0].1, VIEWS[0].2, VIEWS[0].3)
        .await;
    let steps = "
        await type('Instructions', 'You sell coffee and tea. Know what is in the catalogue, name prices, and recommend one thing at the end. Be brief and kind.');
        await type('Model', 'leaf-large');
        await press('Side by side'); await type('Message', 'Do you have green tea?'); await press('Send');
        await until('both ends', () => [...document.querySelectorAll('[data-testid=turn-facts]')].filter(facts => facts.innerText.includes('done')).length === 2);";
    person.does(steps).await;
    assert_eq!(
        look_everywhere(&person, "agent-playground", TRY).await,
        [""; 0]
    );
}

#[tokio::test]
async fn team_scores_are_accessible_in_every_size() {
    let service = SharedService::get().await;
    let organization = shop().await;
    organization.script(Script::says("{}"));
    let support = format!(
        "/api/admin/organizations/{}/agents/{}",
        organization.id,
        organization.agent("support")
    );
    assert_eq!(
        service
            .admin()
            .patch(&support, &json!({"status": "active", "public": true}))
            .await
            .status,
        200
    );
    let person = Person::owner_at(
        &organization,
        &format!("/teams/{}", organization.team("front")),
    )
    .await;
    let steps = "
        await type('Message', 'Where is the delivery of my order?'); await press('Who would answer?');
        await part('chosen-agent'); await until('the bars', () => document.querySelectorAll('[role=progressbar]').length === 2);";
    person.does(steps).await;
    assert_eq!(look_everywhere(&person, "team-trial", TRY).await, [""; 0]);
}

#[tokio::test]
async fn failed_feed_is_accessible_in_every_size() {
    let feed = json!({"enabled": true, "feed": {"url": "https://feeds.invalid/products.csv"}});
    let organization = shop_with_settings(json!({"name": "Bean & Leaf", "ecommerce": feed})).await;
    let service = organization.service();
    let path = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    eventually("the feed was tried", PATIENCE, async || {
        service.admin().get(&path).await.json()["feed"]["error"]
            .is_string()
            .then_some(())
    })
    .await;
    let path = format!("/agents/{}?tab=products", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    person.does("await shows('The last fetch failed');").await;
    assert_eq!(look_everywhere(&person, "agent-feed", "").await, [""; 0]);
}
