//! Outcome of saving inside the save bar, and drafts that survive what cannot be loaded.

use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, OrganizationDocument, shop_saying};

/// Returns `true` if a click in the middle of Save and Discard would reach them.
const REACHABLE: &str = "
    return ['Save', 'Discard'].map(name => {
        const button = all('button', name)[0];
        const {left, top, width, height} = button.getBoundingClientRect();
        return button.contains(document.elementFromPoint(left + width / 2, top + height / 2)) ? 'free' : name + ' is covered';
    });";
/// Lets all changes fail.
const REFUSES: &str = "
    window.asks = window.asks ?? window.fetch;
    window.fetch = (url, asked) => asked?.method === 'PATCH'
        ? Promise.resolve(new Response(JSON.stringify({detail: 'the store is read-only', requestId: 'req_1'}), {status: 503}))
        : window.asks(url, asked);";

async fn agent_page(organization: &Organization, tab: &str) -> Person {
    let path = format!("/agents/{}?tab={tab}", organization.shop());
    Person::owner_at(organization, &path).await
}

#[tokio::test]
async fn failed_save_is_told_in_the_save_bar_and_keeps_the_text() {
    let organization = shop_saying("ok").await;
    let person = agent_page(&organization, "general").await;
    for (width, height) in [(1440, 900), (390, 844)] {
        person.browser.looks_like(width, height, "light").await;
        person.does(REFUSES).await;
        let fails = "await type('Description', 'Kept'); await press('Save');
            const bar = await until('the bar', () => document.querySelector('[aria-label=Changes]'));
            await until('the reason', () => bar.innerText.includes('The store is read-only') && bar.innerText.includes('req_1'));
            const {top, bottom} = bar.querySelector('[role=alert]').getBoundingClientRect();
            return [top >= 0 && bottom <= innerHeight, (await field('Description')).value];";
        assert_eq!(person.does(fails).await, json!([true, "Kept"]), "{width}");
        assert_eq!(person.does(REACHABLE).await, json!(["free", "free"]));
        person.does("await press('Discard'); await until('it is gone', () => !document.querySelector('[aria-label=Changes]'));").await;
    }
}

#[tokio::test]
async fn second_save_can_be_clicked_right_after_the_first() {
    let organization = shop_saying("ok").await;
    let person = agent_page(&organization, "general").await;
    for (width, height) in [(1440, 900), (390, 844)] {
        person.browser.looks_like(width, height, "light").await;
        person
            .does_with(
                "await type('Description', 'One ' + input); await press('Save'); await shows('Saved.');
                 await type('Description', 'Two ' + input); await control('Save');",
                json!(width),
            )
            .await;
        assert_eq!(person.does(REACHABLE).await, json!(["free", "free"]));
        person.does("await press('Save'); await until('it is saved', () => document.body.innerText.includes('Saved.') && all('button', 'Save').length === 0);").await;
    }
}

/// Lets requests for files that match fail, as without a network.
async fn block(person: &Person, urls: Value) {
    person.browser.protocol("Network.enable", json!({})).await;
    person
        .browser
        .protocol("Network.setBlockedURLs", json!({ "urls": urls }))
        .await;
}

#[tokio::test]
async fn tab_that_cannot_be_fetched_loses_no_text_and_loads_later() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, "/agents").await;
    block(&person, json!(["*/assets/Appearance-*.js"])).await;
    person.does("(await until('the agent', () => all('a', 'Agent shop')[0])).click(); await type('Description', 'A long text');").await;
    person
        .does("await press('Appearance'); await shows('This part could not be loaded');")
        .await;
    let kept = "await press('General'); return (await field('Description')).value;";
    assert_eq!(person.does(kept).await, json!("A long text"));
    block(&person, json!([])).await;
    person
        .does("await press('Appearance'); await press('Try again'); await field('Corner radius');")
        .await;
    assert_eq!(person.does(kept).await, json!("A long text"));
}

#[tokio::test]
async fn unsaved_text_survives_a_reload_until_it_is_saved() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("desk", json!({}))
        .apply_to_shared()
        .await;
    let person = agent_page(&organization, "general").await;
    let team = format!("/teams/{}?tab=general", organization.team("desk"));
    let pages = [format!("/agents/{}?tab=general", organization.shop()), team];
    for page in pages {
        person.goes_to(&page).await;
        person
            .does("await type('Description', 'Not saved yet');")
            .await;
        // The prompt of the browser would wait for a person.
        person.does("addEventListener('beforeunload', event => event.stopImmediatePropagation(), true);").await;
        person.goes_to(&page).await;
        let restored =
            "await shows('restored in this tab'); return (await field('Description')).value;";
        assert_eq!(person.does(restored).await, json!("Not saved yet"));
        person
            .does("await press('Save'); await shows('Saved.');")
            .await;
        person.goes_to(&page).await;
        let saved = "const value = (await field('Description')).value; return [value, all('button', 'Save').length];";
        assert_eq!(person.does(saved).await, json!(["Not saved yet", 0]));
    }
}
