//! The playground beside an agent's form: the draft, the saved agent, or both reply, and nothing is
//! stored.

use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, OrganizationDocument, Script, ScriptedModel, SharedService};

/// Returns the texts of both replies to the last question.
const ANSWERS: &str = "const answers = side => all('[data-side=' + side + ']', side === 'draft' ? 'Draft answer' : 'Saved answer');
    await until('both ends', () => [...document.querySelectorAll('[data-testid=turn-facts]')].filter(facts => facts.innerText.includes('done')).length >= input);
    return ['draft', 'saved'].map(side => answers(side).at(-1)?.querySelector('.said')?.innerText.trim() ?? null);";

async fn at_the_shop(service: &SharedService, organization: &Organization) -> Person {
    Person::owner_at(
        service,
        organization,
        &format!("/agents/{}?tab=instructions", organization.shop()),
    )
    .await
}

#[tokio::test]
async fn unsaved_form_answers_beside_the_saved_agent() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new()
        .agent("shop", json!({}))
        .apply(&service)
        .await;
    organization.script(Script::says("Tea it is."));
    let person = at_the_shop(&service, &organization).await;
    person.does("await type('Instructions', 'Sell tea.'); await press('Side by side'); await type('Message', 'Coffee?'); await press('Send');").await;
    assert_eq!(
        person.does_with(ANSWERS, json!(2)).await,
        json!(["Tea it is.", "Tea it is."])
    );
    let asked = ScriptedModel::get().requests(&organization.model);
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
    let asked = ScriptedModel::get()
        .requests(&organization.model)
        .pop()
        .unwrap();
    let told: Vec<_> = asked
        .messages
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(told, ["Sell tea.", "Coffee?", "Tea it is.", "And now?"]);
    let path = format!("/api/admin/organizations/{}/conversations", organization.id);
    assert_eq!(
        service.admin().get(&path).await.json()["items"],
        json!([]),
        "nothing of it is stored"
    );
}

#[tokio::test]
async fn tools_tokens_and_times_are_shown_with_the_products() {
    let service = SharedService::get().await;
    let lamp = json!({"title": "Desk Lamp", "price": "$39", "image": "", "url": "https://shop.example/lamp"});
    let ecommerce = json!({"enabled": true, "products": [lamp]});
    let organization = OrganizationDocument::new()
        .agent("shop", json!({"ecommerce": ecommerce}))
        .apply(&service)
        .await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("One lamp."),
    ]));
    let person = at_the_shop(&service, &organization).await;
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
    let service = SharedService::get().await;
    let (script, gate) = Script::says("one   two   ").chunk_chars(6).gated();
    let organization = Organization::with_agent(&service, script).await;
    let person = at_the_shop(&service, &organization).await;
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
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("never")).await;
    let path = format!("/agents/{}?tab=appearance", organization.shop());
    let person = Person::owner_at(&service, &organization, &path).await;
    let steps =
        "await type('Header', 'red;'); await press('Playground'); await type('Message', 'hi'); await press('Send');
        await shows('Check “theme.chatHeaderColor”');";
    person.does(steps).await;
    let path = format!("/agents/{}", organization.shop());
    let viewer = Person::at(&service, &organization, "viewer", &path).await;
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
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("Tea it is.")).await;
    let person = at_the_shop(&service, &organization).await;
    // Browsers omit it on such a page; every host here is localhost.
    person.does("Object.defineProperty(crypto, 'randomUUID', {value: undefined}); await type('Message', 'Coffee?'); await press('Send'); await shows('Tea it is.');").await;
}
