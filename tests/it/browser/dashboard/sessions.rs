//! Sign-in, sign-out and account menu of the dashboard.

use serde_json::json;

use super::{PASSWORD, Person, invited, person::secret_of};
use crate::support::{OrganizationDocument, shop_saying, unique};

const SIGNS_IN: &str =
    "await type('Email', input[0]); await type('Password', input[1]); await press('Sign in');";
const SIGNS_OUT: &str =
    "await openAccountMenu(); await press('Sign out'); await field('Password');";

#[tokio::test]
async fn signed_out_user_returns_to_the_requested_page() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, "/agents").await;
    person.does("await shows('Agent shop');").await;
    person.does(SIGNS_OUT).await;
    assert_eq!(
        person
            .does("return document.body.innerText.includes('Agent shop');")
            .await,
        false
    );
    person.goes_to("/settings/keys").await;
    person
        .does_with(SIGNS_IN, json!([person.email, "quite a wrong one"]))
        .await;
    person
        .does("await shows('Wrong email, password or organization');")
        .await;
    person
        .does_with(SIGNS_IN, json!([person.email, PASSWORD]))
        .await;
    person.does("await shows('API keys'); await until('the address', () => location.pathname === '/dashboard/settings/keys');").await;
}

#[tokio::test]
async fn signing_out_with_unsaved_changes_asks() {
    let organization = shop_saying("ok").await;
    let page = format!("/agents/{}", organization.shop());
    let person = Person::owner_at(&organization, &page).await;
    let sign_out = "await openAccountMenu(); await press('Sign out');";
    person
        .does("await type('Name', 'Another name'); await shows('Unsaved changes');")
        .await;
    person.does(sign_out).await;
    person
        .does("await shows('Sign out without saving?'); await press('Cancel'); await shows('Unsaved changes');")
        .await;
    person.does(sign_out).await;
    person
        .does("await press('Discard and sign out'); await field('Password');")
        .await;
    person
        .does_with(SIGNS_IN, json!([person.email, PASSWORD]))
        .await;
    person.does("await shows('Agent shop');").await;
}

#[tokio::test]
async fn sign_in_link_asks_for_a_password_and_hides_its_secret() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::with_link(service, invited(service, &organization, "viewer").await).await;
    person
        .does(
            "await shows('Welcome, Vera Voss'); await type('New password', 'short'); await shows('7 more characters');",
        )
        .await;
    let disabled = "return [location.hash, all('button', 'Continue')[0].disabled];";
    assert_eq!(person.does(disabled).await, json!(["", true]));
    person
        .does_with(
            "await type('New password', input); await press('Continue'); await control('Agents');",
            json!(PASSWORD),
        )
        .await;
    // The same link again, signed in and signed out.
    let again = "await shows('no longer works');";
    let link = format!("/link#{}", person.secret);
    person.browser.visit("about:blank").await;
    person.goes_to(&link).await;
    person.does(again).await;
    person.in_another_browser(&link).await.does(again).await;
}

#[tokio::test]
async fn signed_in_by_link_is_reminded_of_a_password() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let slug = organization.document["organizations"][0]["slug"]
        .as_str()
        .unwrap();
    let email = format!("{}@people.example", unique("linked"));
    let arguments = ["admin", "link", "--organization", slug, "--email", &email];
    let (status, output) = service.command(&arguments);
    assert!(status.success(), "{output}");
    // The link offers a password, which may be put off.
    let person = Person::with_link_that_signs_in(service, secret_of(&output).unwrap()).await;
    person
        .does("await shows('You have no password yet'); await openAccountMenu(); await press('Sign out'); await shows('Sign out without a password?');")
        .await;
    let dialog = "
        const dialog = await until('the dialog', () => document.querySelector('[role=dialog]'));
        hit([...dialog.querySelectorAll('button')].find(button => button.textContent === 'Choose a password'));
        await type('New password', input); await press('Save'); await shows('Password set');
        await until('no reminder', () => !document.body.innerText.includes('You have no password yet'));";
    person.does_with(dialog, json!(PASSWORD)).await;
    person.does(SIGNS_OUT).await;
    person.does_with(SIGNS_IN, json!([email, PASSWORD])).await;
    person.does("await control('Agents');").await;
}

#[tokio::test]
async fn password_change_ends_the_other_sessions() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let person = Person::at(organization.service(), &organization, "viewer", "/agents").await;
    let elsewhere = person.in_another_browser("/sign-in").await;
    elsewhere
        .does_with(
            "await type('Organization', input);",
            json!(organization.slug()),
        )
        .await;
    elsewhere
        .does_with(SIGNS_IN, json!([person.email, PASSWORD]))
        .await;
    elsewhere.does("await control('Agents');").await;
    let changes = "await type('Current password', input[0]); await type('New password', input[1]); await press('Save');";
    person
        .does("await openAccountMenu(); await press('Change password');")
        .await;
    person
        .does_with(
            changes,
            json!(["quite a wrong one", "another quiet evening"]),
        )
        .await;
    person
        .does("await shows('This is not your current password');")
        .await;
    person
        .does_with(changes, json!([PASSWORD, "another quiet evening"]))
        .await;
    person
        .does("await shows('Password changed'); await press('Teams'); await shows('Teams');")
        .await;
    elsewhere
        .does("await press('Teams'); await field('Password');")
        .await;
    elsewhere
        .does_with(SIGNS_IN, json!([person.email, PASSWORD]))
        .await;
    elsewhere
        .does("await shows('Wrong email, password or organization');")
        .await;
    elsewhere
        .does_with(SIGNS_IN, json!([person.email, "another quiet evening"]))
        .await;
    elsewhere
        .does("await until('where they were', () => location.pathname === '/dashboard/teams');")
        .await;
}

#[tokio::test]
async fn color_scheme_follows_the_account_menu_and_persists() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let person = Person::at(organization.service(), &organization, "viewer", "/agents").await;
    let is = "await until('the scheme ' + input, () => document.documentElement.dataset.mantineColorScheme === input);";
    for (choice, scheme) in [("Dark", "dark"), ("Light", "light")] {
        person.does_with("await openAccountMenu(); hit(await until('the choice', () => [...document.querySelectorAll('[role=menuitemradio]')].find(item => nameOf(item) === input)));", json!(choice)).await;
        person.does_with(is, json!(scheme)).await;
        person.goes_to("/teams").await;
        person.does_with(is, json!(scheme)).await;
    }
}
