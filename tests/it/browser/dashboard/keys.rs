//! API keys in the dashboard: creation, one-time display, rotation and deletion.

use serde_json::json;

use super::Person;
use crate::support::{
    Client, Organization, PROMISED, TestService, eventually, shop_saying, shop_with_settings,
};

const SHOWN: &str = "return (await part('secret')).textContent.trim();";

async fn chats(organization: &Organization, service: &TestService, key: &str) -> u16 {
    let body = json!({"message": "hi", "sessionId": "s", "stream": false});
    service
        .client()
        .with_key(key)
        .post(&organization.path("/chat"), &body)
        .await
        .status
}

#[tokio::test]
async fn key_is_shown_once_works_and_is_refused_after_deletion() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person.does("await press('New key'); await type('Name', 'Shop backend'); await press('Create key');").await;
    let key = person.does(SHOWN).await.as_str().unwrap().to_owned();
    assert_eq!(chats(&organization, service, &key).await, 200);
    person.goes_to("/settings/keys").await;
    person.does("await shows('Shop backend');").await;
    let everything = person
        .does("return document.documentElement.outerHTML;")
        .await;
    let everything = everything.as_str().unwrap();
    assert!(!everything.contains(&key) && everything.contains(&key[key.len() - 4..]));
    person.does("await press('Actions for Shop backend'); await press('Delete'); await press('Delete key'); await until('it to go', () => !document.body.innerText.includes('Shop backend'));").await;
    for url in service.public_urls() {
        let client = Client::new(&url).with_key(&key);
        eventually("the key is refused", PROMISED, async || {
            (client
                .chat_json(organization.shop(), "s", "hi")
                .await
                .status
                == 401)
                .then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn rotated_key_works_until_the_overlap_ends() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person.does("await press('Actions for all'); await press('Rotate'); await shows('Keep the old key for'); (await until('the button', () => all('button', 'Rotate').at(-1))).click();").await;
    let successor = person.does(SHOWN).await.as_str().unwrap().to_owned();
    for key in [successor.as_str(), organization.key_text("all")] {
        assert_eq!(chats(&organization, service, key).await, 200);
    }
}

#[tokio::test]
async fn key_has_the_selected_scopes() {
    let organization = shop_with_settings(json!({})).await;
    let service = organization.service();
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person.does("await press('New key'); await type('Name', 'Reader'); await press('Chat'); await press('Configuration'); await press('Create key');").await;
    let key = person.does(SHOWN).await.as_str().unwrap().to_owned();
    assert_eq!(chats(&organization, service, &key).await, 403);
    let agent = organization.path("");
    assert_eq!(
        service.client().with_key(&key).get(&agent).await.status,
        200
    );
}

#[tokio::test]
async fn key_value_stays_until_the_user_confirms_saving_it() {
    let organization = shop_with_settings(json!({})).await;
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person
        .does("await press('New key'); await type('Name', 'Reader'); await press('Create key');")
        .await;
    let escapes = "await part('secret');
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', code: 'Escape', bubbles: true}));
        await new Promise(resolve => setTimeout(resolve, 100));
        return document.querySelector('[data-testid=secret]') !== null;";
    assert_eq!(person.does(escapes).await, json!(true));
    person.does("await press('Done'); await until('it to go', () => !document.querySelector('[role=dialog]'));").await;
}

#[tokio::test]
async fn copying_without_a_clipboard_falls_back_or_says_it_failed() {
    let organization = shop_with_settings(json!({})).await;
    let person = Person::owner_at(&organization, "/settings/keys").await;
    person
        .does("await press('New key'); await type('Name', 'Reader'); await press('Create key');")
        .await;
    // As on a page served over plain HTTP.
    let copies = "Object.defineProperty(navigator, 'clipboard', {value: undefined});
        const taken = []; document.execCommand = command => { taken.push([command, String(getSelection())]); return input; };
        await press('Copy'); await shows(input ? 'Copied' : 'blocked copying');
        return taken[0][0] === 'copy' && taken[0][1].trim() === (await part('secret')).textContent.trim();";
    assert_eq!(person.does_with(copies, json!(false)).await, json!(true));
    assert_eq!(
        person
            .does_with(copies.split_once('\n').unwrap().1, json!(true))
            .await,
        json!(true)
    );
}
