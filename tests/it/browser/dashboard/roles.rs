//! Permissions of each role in the dashboard, and the refusals behind them.

use serde_json::{Value, json};

use super::Person;
use crate::support::shop_saying;

/// Actions that change something, with the request that bypasses the page.
const ASKS: &str = "
    const [organization, agent, slug] = input;
    const ask = async (method, path, body) => {
        const headers = {'content-type': 'application/json'};
        const content = body === undefined ? {} : {headers, body: JSON.stringify(body)};
        const answer = await fetch(`/api/admin/organizations/${organization}${path}`, {method, ...content});
        return answer.status < 300 ? 'done' : answer.status;
    };
    return {
        change: await ask('PATCH', `/agents/${agent}`, {description: slug}),
        make: await ask('POST', '/agents', {slug, name: slug}),
        audit: await ask('GET', '/audit'),
        key: await ask('POST', '/keys', {name: slug}),
        people: await ask('GET', '/users'),
    };";
const OFFERED: &str = "
    await control('Conversations');
    return input.filter(name => all(PRESSED, name).some(element => !element.matches(':disabled')));";

/// Returns which of the actions in `names` the page offers.
async fn offered(person: &Person, path: &str, ready: &str, names: &[&str]) -> Value {
    person.goes_to(path).await;
    person.does_with("await shows(input);", json!(ready)).await;
    person.does_with(OFFERED, json!(names)).await
}

#[tokio::test]
async fn each_role_sees_only_its_permitted_actions() {
    let organization = shop_saying("ok").await;
    let agent = organization.shop();
    for role in ["viewer", "operator", "editor", "owner"] {
        let person = Person::at(organization.service(), &organization, role, "/agents").await;
        let (edits, owns) = (matches!(role, "editor" | "owner"), role == "owner");
        let if_edits = |names: &[&str]| if edits { json!(names) } else { json!([]) };
        let if_owns = |names: &[&str]| if owns { json!(names) } else { json!([]) };
        assert_eq!(
            offered(&person, "/agents", "Agent shop", &["New agent"]).await,
            if_edits(&["New agent"]),
            "{role}"
        );
        assert_eq!(
            offered(&person, "/teams", "Teams", &["Audit log"]).await,
            if_edits(&["Audit log"]),
            "{role}"
        );
        let keys = offered(
            &person,
            "/settings/keys",
            "all",
            &["New key", "Actions for all", "Members"],
        )
        .await;
        assert_eq!(
            keys,
            if_owns(&["New key", "Actions for all", "Members"]),
            "{role}"
        );
        let parts = ["History", "More actions", "Public"];
        let form = offered(&person, &format!("/agents/{agent}"), "Identity", &parts).await;
        assert_eq!(form, if_edits(&parts), "{role}");
        let asked = person
            .does_with(ASKS, json!([organization.id, agent, format!("by-{role}")]))
            .await;
        let done_if = |may: bool| if may { json!("done") } else { json!(403) };
        let expected = json!({
            "change": done_if(edits), "make": done_if(edits), "audit": done_if(edits), "key": done_if(owns), "people": done_if(owns)
        });
        assert_eq!(asked, expected, "{role}");
    }
}

#[tokio::test]
async fn page_for_other_roles_explains_itself_and_links_on() {
    let organization = shop_saying("ok").await;
    let person = Person::at(organization.service(), &organization, "operator", "/agents").await;
    for path in ["/settings/members", "/settings/audit"] {
        person.goes_to(path).await;
        person.does("await shows('Your role cannot open this page'); await press('Go to agents'); await shows('Agent shop');").await;
    }
}

#[tokio::test]
async fn url_of_a_forbidden_tab_leads_to_the_first_tab() {
    let organization = shop_saying("ok").await;
    let path = format!("/agents/{}?tab=history", organization.shop());
    let person = Person::at(organization.service(), &organization, "viewer", &path).await;
    person.does("await shows('Identity');").await;
}
