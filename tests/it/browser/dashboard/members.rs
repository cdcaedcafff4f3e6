//! Members of an organization in the dashboard: invitations, roles, disabled accounts and the audit
//! log.

use serde_json::json;

use super::{PASSWORD, Person};
use crate::support::{OrganizationDocument, PROMISED, eventually, shop_saying, unique};

const MAKES_A_LINK: &str = "return (await part('secret')).textContent.trim().split('#')[1];";
const STATUS: &str = "return (await fetch(input)).status;";

#[tokio::test]
async fn invited_user_sets_a_password_and_has_the_selected_role() {
    let organization = shop_saying("ok").await;
    let owner = Person::owner_at(&organization, "/settings/members").await;
    let email = format!("{}@people.example", unique("edith"));
    let invites = "
        await press('Invite'); await type('Name', 'Edith Eng'); await type('Email', input); await press('Editor');
        await press('Create invitation link');";
    owner.does_with(invites, json!(email)).await;
    let secret = owner.does(MAKES_A_LINK).await;
    owner
        .does("await press('Done'); await shows('Edith Eng'); await shows('Invited');")
        .await;
    let edith = owner
        .in_another_browser(&format!("/link#{}", secret.as_str().unwrap()))
        .await;
    edith.does("await shows('Welcome, Edith Eng');").await;
    edith
        .does_with(
            "await type('New password', input); await press('Continue'); await control('New agent');",
            json!(PASSWORD),
        )
        .await;
    owner.goes_to("/settings/members").await;
    owner.does("await shows('Edith Eng'); await until('nobody waits', () => !document.body.innerText.includes('Invited'));").await;
    // A revoked role is refused at the next action, and the page updates.
    edith
        .does("await press('New agent'); await type('Name', 'Too late');")
        .await;
    owner
        .does(
            "await choose('Role of Edith Eng', 'Viewer'); await shows('Edith Eng is now viewer.');",
        )
        .await;
    edith
        .does("await press('Create'); await shows('You do not have permission');")
        .await;
    edith
        .does("await until('the button to go', () => all(PRESSED, 'New agent').length === 0);")
        .await;
}

#[tokio::test]
async fn disabled_user_is_out_within_two_seconds_and_can_return() {
    let organization = shop_saying("ok").await;
    let service = organization.service();
    let owner = Person::owner_at(&organization, "/settings/members").await;
    let vera = Person::at(service, &organization, "viewer", "/agents").await;
    owner.goes_to("/settings/members").await;
    owner.does("await press('Actions for Vera Voss'); await press('Disable'); await shows('Disabled');").await;
    eventually("the session is refused", PROMISED, async || {
        (vera
            .does_with(STATUS, json!("/api/dashboard/session"))
            .await
            == 401)
            .then_some(())
    })
    .await;
    for url in service.admin_urls() {
        vera.browser.visit(&format!("{url}/dashboard/teams")).await;
        vera.does("await field('Password');").await;
    }
    vera.goes_to("/teams").await;
    let signs_in =
        "await type('Email', input[0]); await type('Password', input[1]); await press('Sign in');";
    vera.does_with(signs_in, json!([vera.email, PASSWORD]))
        .await;
    vera.does("await shows('Wrong email, password or organization');")
        .await;
    owner.does("await press('Actions for Vera Voss'); await press('Enable'); await until('she is in', () => !document.body.innerText.includes('Disabled'));").await;
    eventually("she comes in", PROMISED, async || {
        // Not pressed by name: an earlier attempt may succeed at any moment, and its page has no
        // such button.
        let came = "all(PRESSED, 'Sign in')[0]?.click();
            for (let times = 0; times < 20 && location.pathname.endsWith('/sign-in'); times++) await new Promise(resolve => setTimeout(resolve, 50));
            return location.pathname;";
        (vera.does(came).await == "/dashboard/teams").then_some(())
    })
    .await;
}

#[tokio::test]
async fn password_reset_link_is_created_for_a_member() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let vera = Person::at(service, &organization, "viewer", "/agents").await;
    let owner = Person::owner_at(&organization, "/settings/members").await;
    owner.does("await press('Actions for Vera Voss'); await press('Create password link'); await press('Create link');").await;
    let secret = owner.does(MAKES_A_LINK).await;
    let elsewhere = vera
        .in_another_browser(&format!("/link#{}", secret.as_str().unwrap()))
        .await;
    elsewhere.does("await shows('Your other sessions are signed out'); await type('New password', 'another quiet evening'); await press('Continue'); await control('Agents');").await;
    vera.does("await press('Teams'); await field('Password');")
        .await;
}

#[tokio::test]
async fn audit_log_and_agent_history_show_who_changed_what() {
    let organization = shop_saying("ok").await;
    let editor = Person::at(
        organization.service(),
        &organization,
        "editor",
        &format!("/agents/{}", organization.shop()),
    )
    .await;
    editor
        .does("await type('Name', 'Renamed'); await press('Save'); await shows('Saved.'); await press('History');")
        .await;
    let latest = "
        const entry = await until('a change', () => [...document.querySelectorAll('[aria-label=Changes] li')].find(entry => entry.innerText.includes(input[0])));
        return input.every(text => entry.innerText.includes(text)) || entry.innerText;";
    let expected = json!(["changed", editor.email, "Name", "“Agent shop” → “Renamed”"]);
    assert_eq!(editor.does_with(latest, expected).await, true);
    editor.goes_to("/settings/audit").await;
    editor
        .does_with(latest, json!(["changed", editor.email, "agent"]))
        .await;
    editor
        .does_with("await shows(input + ' signed in');", json!(editor.email))
        .await;
    editor.does("await choose('Show', 'Agents'); await until('only agents', () => document.querySelector('[aria-label=Changes]') && !document.body.innerText.includes('signed in'));").await;
}

#[tokio::test]
async fn audit_log_filters_exports_and_team_history_names_agents() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team("desk", json!({}))
        .apply_to_shared()
        .await;
    let person = Person::owner_at(&organization, "/settings/audit").await;
    let path = organization.admin_path("/conversations/export?format=csv");
    person
        .does_with("await (await fetch(input)).text();", json!(path))
        .await;
    person.goes_to("/settings/audit").await;
    person
        .does(
            "await shows('signed in'); await choose('Show', 'Exports'); await shows('exported the conversations of');
             await until('only exports', () => !document.body.innerText.includes('signed in'));",
        )
        .await;
    person
        .goes_to(&format!("/teams/{}", organization.team("desk")))
        .await;
    person
        .does(
            "await choose('Default agent', 'Agent shop'); await press('Save'); await shows('Saved.'); await press('History');
             await until('its name', () => [...document.querySelectorAll('[aria-label=Changes] li')].some(entry => entry.innerText.includes('“Agent shop”')));",
        )
        .await;
}

#[tokio::test]
async fn promotion_to_owner_is_asked_and_can_be_undone() {
    let organization = shop_saying("ok").await;
    let owner = Person::owner_at(&organization, "/settings/members").await;
    super::invited(organization.service(), &organization, "viewer").await;
    owner.goes_to("/settings/members").await;
    owner
        .does(
            "await choose('Role of Vera Voss', 'Owner'); await shows('Make Vera Voss an owner?'); await press('Make owner');
             await shows('Vera Voss is now owner.'); await press('Undo');
             await until('she is a viewer again', () => all('input', 'Role of Vera Voss')[0]?.value === 'Viewer');",
        )
        .await;
    let own = "return all('input', 'Role of Olga Ortiz').length;";
    assert_eq!(
        owner.does(own).await,
        0,
        "one's own role is a fact, not a field"
    );
}
