//! Lead forms and leads in the dashboard: the editor, the list and its files.

use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, OrganizationDocument, Script, shop_saying};

/// Name that would run or calculate if it were not shown as text.
const HOSTILE: &str = "=1+1<img src=x onerror=\"window.hit=1\">";

async fn agent_of(organization: &Organization) -> Value {
    let path = organization.admin_path(&format!("/agents/{}", organization.shop()));
    organization.service().admin().get(&path).await.json()
}

/// Creates an organization whose only conversation has a lead.
async fn shop_with_a_lead() -> Organization {
    let form = json!({
        "consent": {"text": "I agree that you contact me."}, "trigger": "tool",
        "fields": [
            {"name": "name", "label": "Your name", "type": "name"},
            {"name": "mail", "label": "Your e-mail", "type": "email"},
        ],
    });
    let organization = OrganizationDocument::new()
        .shop(json!({"features": {"enableLeadCapture": true}, "leadForm": form}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("ok"));
    organization.chat("s", "hi").await.complete();
    let path = organization.path("/conversations/s");
    let lead = json!({"lead": {"name": HOSTILE, "mail": "ada@shop.example", "consent": true}});
    organization
        .client()
        .patch(&path, &lead)
        .await
        .assert_status(200);
    organization
}

#[tokio::test]
async fn lead_form_is_edited_with_faults_beside_their_field() {
    let organization = shop_saying("ok").await;
    let path = format!("/agents/{}?tab=behavior", organization.shop());
    let person = Person::owner_at(&organization, &path).await;
    let edits = "await press('Ask for contact details'); await choose('Show the form', 'When the agent decides');
        await type('Title', 'Stay in touch'); await press('Save'); await shows('Saved.');";
    person.does(edits).await;
    let agent = agent_of(&organization).await;
    assert_eq!(agent["features"]["enableLeadCapture"], true);
    let form = &agent["leadForm"];
    assert_eq!(
        (&form["title"], &form["trigger"]),
        (&json!("Stay in touch"), &json!("tool"))
    );
    assert!(
        form["fields"]
            .as_array()
            .is_some_and(|fields| !fields.is_empty()),
        "{form}"
    );

    let fails = "await type('Privacy policy link', 'javascript:alert(1)');
        const link = all('input', 'Privacy policy link')[0];
        return await until('the fault', () => link.getAttribute('aria-invalid') === 'true'
            && document.getElementById(link.getAttribute('aria-describedby').split(' ').find(id => id.endsWith('error')))?.innerText);";
    let fault = person.does(fails).await;
    assert!(
        fault.as_str().is_some_and(|fault| fault.contains("http")),
        "{fault}"
    );
}

#[tokio::test]
async fn leads_are_listed_as_text_searched_and_saved_as_a_file() {
    let organization = shop_with_a_lead().await;
    let person = Person::owner_at(&organization, "/agents").await;
    person
        .does("await press('Leads'); await shows('ada@shop.example'); await shows('Your e-mail');")
        .await;
    person
        .does_with("await shows(input);", json!(HOSTILE))
        .await;
    let search = "await type('Search leads', 'nobody'); await shows('No leads match');
        await type('Search leads', 'ADA@'); await shows('ada@shop.example'); return window.hit === undefined;";
    assert_eq!(person.does(search).await, true);
    let file = "await press('Export');
        const item = await until('the file', () => [...document.querySelectorAll('[role=menuitem]')].find(it => it.innerText.includes('CSV')));
        const answer = await fetch(item.href);
        return [answer.headers.get('content-disposition').includes('leads-'), await answer.text()];";
    let [named, text] = serde_json::from_value::<[Value; 2]>(person.does(file).await).unwrap();
    assert_eq!(named, true);
    assert!(
        text.as_str().is_some_and(|text| text.contains("'=1+1")),
        "{text}"
    );
    person.does("await press('Open the conversation of =1+1<img src=x onerror=\"window.hit=1\">'); await shows('I agree that you contact me.'); await shows('Your e-mail');").await;
}

#[tokio::test]
async fn viewers_see_no_leads() {
    let organization = shop_with_a_lead().await;
    let viewer = Person::at(organization.service(), &organization, "viewer", "/agents").await;
    let links = "await control('Conversations'); return all('a', 'Leads').length;";
    assert_eq!(viewer.does(links).await, 0);
    viewer.goes_to("/leads").await;
    viewer.does("await shows('cannot open this page');").await;
    let asks = "return (await fetch(`/api/admin/organizations/${input}/leads`)).status;";
    assert_eq!(viewer.does_with(asks, json!(organization.id)).await, 403);
    let reads = "const list = await (await fetch(`/api/admin/organizations/${input}/conversations`)).json();
        const one = await (await fetch(`/api/admin/organizations/${input}/conversations/${list.items[0].id}`)).json();
        return [list.items[0], one].map(({ metadata }) => [metadata.visitorEmail, 'lead' in metadata]);";
    let seen = json!(["ada@shop.example", false]);
    assert_eq!(
        viewer.does_with(reads, json!(organization.id)).await,
        json!([seen, seen])
    );
}
