//! The playground beside an agent's form: the draft, the saved agent, or both reply, and nothing is
//! stored.

use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, Script, shop_saying, shop_with, shop_with_settings};

/// Returns the texts of both replies to the last question.
const ANSWERS: &str = "const answers = side => all('[data-side=' + side + ']', side === 'draft' ? 'Draft answer' : 'Saved answer');
    await until('both ends', () => [...document.querySelectorAll('[data-testid=turn-facts]')].filter(facts => facts.innerText.includes('done')).length >= input);
    return ['draft', 'saved'].map(side => answers(side).at(-1)?.querySelector('.said')?.innerText.trim() ?? null);";

async fn at_the_shop(organization: &Organization) -> Person {
    Person::owner_at(
        organization,
        &format!("/agents/{}?tab=instructions", organization.shop()),
    )
    .await
}

#[tokio::test]
async fn unsaved_form_answers_beside_the_saved_agent() {
    let organization = shop_with_settings(json!({})).await;
    organization.script(Script::says("Tea it is."));
    let person = at_the_shop(&organization).await;
    person.does("await type('Instructions', 'Sell tea.'); await press('Side by side'); await type('Message', 'Coffee?'); await press('Send');").await;
    assert_eq!(
        person.does_with(ANSWERS, json!(2)).await,
        json!(["Tea it is.", "Tea it is."])
    );
    let asked = organization.requests();
    let mut instructions: Vec<_> = asked
        .iter()
        .map(|request| request.messages[0].1.clone())
        .collect();
    instructions.sort();
    assert_eq!(instructions, ["Answer.", "Sell tea."]);

    person
        .does("await press('Draft'); await type('Message', 'And now?'); await press('Send');")
        .await;
    person.does_with(ANSWERS, json!(3)).await;
    let asked = organization.requests().pop().unwrap();
    let contents: Vec<_> = asked
        .messages
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(contents, ["Sell tea.", "Coffee?", "Tea it is.", "And now?"]);
    let path = organization.admin_path("/conversations");
    assert_eq!(
        organization.service().admin().get(&path).await.json()["items"],
        json!([]),
        "nothing of it is stored"
    );
}

#[tokio::test]
async fn tools_tokens_and_times_are_shown_with_the_products() {
    let lamp = json!({"title": "Desk Lamp", "price": "$39", "image": "", "url": "https://shop.example/lamp"});
    let ecommerce = json!({"enabled": true, "products": [lamp]});
    let organization = shop_with_settings(json!({"ecommerce": ecommerce})).await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("One lamp."),
    ]));
    let person = at_the_shop(&organization).await;
    person
        .does("await type('Message', 'A lamp?'); await press('Send'); await shows('Desk Lamp');")
        .await;
    let facts = person
        .does("await until('the end', () => document.querySelector('[data-testid=turn-facts]')?.innerText.includes('done')); return [(await part('tool-call')).innerText, (await part('turn-facts')).innerText];")
        .await;
    let [tool, facts] = [0, 1].map(|index| facts[index].as_str().unwrap().to_owned());
    assert!(
        tool.starts_with("search_products finished in ") && !tool.ends_with(" 0 ms"),
        "{tool}"
    );
    for fact in ["first token ", "done ", " tokens", &organization.model] {
        assert!(facts.contains(fact), "{fact} in {facts}");
    }
}

#[tokio::test]
async fn reply_can_be_stopped_and_the_chat_restarted() {
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = shop_with(script).await;
    let person = at_the_shop(&organization).await;
    gate.open(1);
    person.does("await type('Message', 'Count'); await press('Send'); await shows('one'); await press('Stop the reply'); await shows('stopped');").await;
    person
        .does("await press('Start over'); await until('an empty chat', () => !document.querySelector('[data-side]'));")
        .await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('two');")
            .await,
        false
    );
}

#[tokio::test]
async fn form_errors_and_missing_permission_show_in_place_of_a_reply() {
    let organization = shop_saying("never").await;
    let service = organization.service();
    let path = format!("/agents/{}?tab=appearance", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    let steps =
        "await type('Header', 'red;'); await press('Playground'); await type('Message', 'hi'); await press('Send');
        await shows('Check “theme.chatHeaderColor”');";
    person.does(steps).await;
    let path = format!("/agents/{}", organization.shop());
    let viewer = Person::at(service, &organization, "viewer", &path).await;
    viewer
        .does("await shows('You need the editor role to test');")
        .await;
    assert_eq!(
        viewer
            .does("return all('textarea', 'Message').length;")
            .await,
        Value::from(0)
    );
}

#[tokio::test]
async fn playground_works_over_plain_http() {
    let organization = shop_saying("Tea it is.").await;
    let person = at_the_shop(&organization).await;
    // Browsers omit it on such a page; every host here is localhost.
    person.does("Object.defineProperty(crypto, 'randomUUID', {value: undefined}); await type('Message', 'Coffee?'); await press('Send'); await shows('Tea it is.');").await;
}
