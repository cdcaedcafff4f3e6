//! Unsaved changes survive a save in progress and an expired session.

use serde_json::json;

use super::{PASSWORD, Person};
use crate::support::{Organization, PATIENCE, eventually, shop_saying};

async fn at_the_shop(organization: &Organization) -> Person {
    Person::owner_at(organization, &format!("/agents/{}", organization.shop())).await
}

/// Waits until the agent has this description.
async fn is_described(organization: &Organization, expected: &str) {
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    eventually("the description is saved", PATIENCE, async || {
        (organization.service().admin().get(&path).await.json()["description"] == expected)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn edits_made_during_a_save_stay_unsaved() {
    let organization = shop_saying("ok").await;
    let person = at_the_shop(&organization).await;
    let slow = "const ask = window.fetch;
        window.fetch = async (url, asked) => {
            const answer = await ask(url, asked);
            if (asked?.method === 'PATCH') await until('the rest was typed', () => window.isTyped);
            return answer;
        };";
    person.does(slow).await;
    person
        .does(
            "await type('Description', 'Sent'); await press('Save'); await type('Description', 'Sent, and more');
             window.isTyped = true; await shows('Saved.'); await shows('Unsaved changes');",
        )
        .await;
    is_described(&organization, "Sent").await;
    assert_eq!(
        person
            .does("return (await field('Description')).value;")
            .await,
        json!("Sent, and more")
    );
    person.does("await press('Save');").await;
    is_described(&organization, "Sent, and more").await;
}

#[tokio::test]
async fn unsaved_changes_survive_an_expired_session() {
    let organization = shop_saying("ok").await;
    let person = at_the_shop(&organization).await;
    let ends = "await type('Description', 'A long and careful text');
        await fetch('/api/dashboard/session', {method: 'DELETE'});
        await press('Save'); await shows('You have been signed out');";
    person.does(ends).await;
    let signs_in =
        "await type('Email', input[0]); await type('Password', input[1]); await press('Sign in');
        await until('the dialog to go', () => !document.querySelector('[role=dialog]'));
        return (await field('Description')).value;";
    let kept = person
        .does_with(signs_in, json!([person.email, PASSWORD]))
        .await;
    assert_eq!(kept, json!("A long and careful text"));
    person.does("await press('Save');").await;
    is_described(&organization, "A long and careful text").await;
}

#[tokio::test]
async fn another_user_sees_no_unsaved_changes_of_the_previous_one() {
    let organization = shop_saying("ok").await;
    let person = at_the_shop(&organization).await;
    let other = Person::owner_at(&organization, "/agents").await;
    let ends = "await type('Description', 'Mine');
        await fetch('/api/dashboard/session', {method: 'DELETE'});
        await press('Save'); await shows('You have been signed out');
        await type('Email', input[0]); await type('Password', input[1]); await press('Sign in');
        await until('the dialog to go', () => !document.querySelector('[role=dialog]'));
        return (await field('Description')).value;";
    assert_eq!(
        person.does_with(ends, json!([other.email, PASSWORD])).await,
        json!("")
    );
}
