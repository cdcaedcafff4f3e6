//! Every page, on a desk and in a hand, light and dark: no finding of axe, and nothing that scrolls sideways.
//! `SWITCHBOARD_SCREENSHOTS=FOLDER` keeps a picture of each.

use std::path::Path;

use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, OrganizationDocument, Script, SharedService};

const AXE: &str = include_str!("../assets/axe.min.js");
const VIEWS: [(&str, u32, u32, &str); 4] = [
    ("desktop-light", 1440, 900, "light"),
    ("desktop-dark", 1440, 900, "dark"),
    ("phone-light", 390, 844, "light"),
    ("phone-dark", 390, 844, "dark"),
];
/// Runs axe on what is there once it is at rest, and says where it found what.
const FINDINGS: &str = "
    await until('the page', () => document.querySelector('h1') && !document.querySelector('[role=status][aria-label=Loading]'));
    await document.fonts.ready;
    const {violations} = await axe.run(document, {resultTypes: ['violations']});
    const found = violations.flatMap(rule => rule.nodes.map(node => rule.id + ': ' + node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? '')));
    if (document.documentElement.scrollWidth > innerWidth + 1) found.push('scrolls sideways: ' + document.documentElement.scrollWidth);
    return found;";

async fn shop(service: &SharedService) -> Organization {
    let product = json!({"title": "Green tea", "price": "$9", "image": "", "url": "https://shop.example/tea"});
    let agent = json!({
        "name": "Bean & Leaf", "description": "Helps to choose coffee and tea.", "welcomeMessage": "Coffee or tea?",
        "allowedDomains": ["shop.example", "*.shop.example"], "ecommerce": {"enabled": true, "products": [product]},
        "theme": {"primaryColor": "#7c4a21", "chatHeaderColor": "#7c4a21", "userMessageColor": "#7c4a21", "sendButtonColor": "#7c4a21"}
    });
    let draft = json!({"name": "Support", "description": "Orders and returns.", "status": "draft", "public": false});
    let members = json!([{"agent": "shop", "specialization": "coffee, tea and prices"}]);
    let organization = OrganizationDocument::new()
        .agent("shop", agent)
        .agent("support", draft)
        .team("front", json!({"name": "Front desk", "members": members, "defaultAgent": "support"}))
        .key("site", &["chat"])
        .apply(service)
        .await;
    organization
        .script(Script::says("We have green tea, which keeps you awake without haste. **Shall I show you more?**"));
    for (session, name) in [("s-1", "Maria Lopez"), ("s-2", "Kim Park")] {
        let body = json!({
            "message": "Do you have tea?", "sessionId": session, "visitorName": name, "visitorEmail": "someone@example.com", "stream": false
        });
        let path = format!("/api/public/agents/{}/chat", organization.shop());
        assert_eq!(organization.client().post(&path, &body).await.status, 200);
    }
    let path = format!("/api/public/agents/{}/conversations/s-1", organization.shop());
    let rated = json!({"rating": 5, "feedback": "Quick and kind. Thank you!"});
    assert_eq!(organization.client().patch(&path, &rated).await.status, 200);
    organization
}

async fn conversation_of(service: &SharedService, organization: &Organization) -> String {
    let path = format!("/api/admin/organizations/{}/conversations", organization.id);
    service.admin().get(&path).await.json()["items"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn no_page_has_an_accessibility_finding_or_scrolls_sideways_in_any_size_and_scheme() {
    let service = SharedService::get().await;
    let organization = shop(&service).await;
    let (agent, team) = (organization.shop(), organization.team("front"));
    let conversation = conversation_of(&service, &organization).await;
    let pages = [
        ("agents", "/agents".to_owned()),
        ("agent-general", format!("/agents/{agent}")),
        ("agent-instructions", format!("/agents/{agent}?tab=instructions")),
        ("agent-appearance", format!("/agents/{agent}?tab=appearance")),
        ("agent-behaviour", format!("/agents/{agent}?tab=behaviour")),
        ("agent-access", format!("/agents/{agent}?tab=access")),
        ("agent-products", format!("/agents/{agent}?tab=products")),
        ("teams", "/teams".to_owned()),
        ("team", format!("/teams/{team}")),
        ("conversations", "/conversations".to_owned()),
        ("conversation", format!("/conversations/{conversation}")),
        ("keys", "/settings/keys".to_owned()),
        ("providers", "/settings/providers".to_owned()),
        ("not-found", "/nowhere".to_owned()),
    ];
    let person = Person::owner_at(&service, &organization, "/agents").await;
    let mut findings = Vec::new();
    for (view, width, height, scheme) in VIEWS {
        person.browser.looks_like(width, height, scheme).await;
        for (name, path) in &pages {
            person.goes_to(path).await;
            let found = person.does(&format!("{AXE};\n{FINDINGS}")).await;
            let found = found.as_array().unwrap().iter();
            findings.extend(found.map(|finding| format!("{name}, {view}: {}", finding.as_str().unwrap())));
            keep_picture(&person, name, view).await;
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[tokio::test]
async fn dialogs_have_no_accessibility_finding_and_keep_the_keyboard() {
    let service = SharedService::get().await;
    let organization = shop(&service).await;
    let conversation = conversation_of(&service, &organization).await;
    let person = Person::owner_at(&service, &organization, "/agents").await;
    for (path, opener) in [
        ("/agents", "New agent"),
        ("/teams", "New team"),
        ("/settings/keys", "New key"),
        ("/settings/providers", "New provider"),
        ("/conversations", "Erase visitor"),
        (&format!("/conversations/{conversation}"), "Delete"),
    ] {
        person.goes_to(path).await;
        let open = "await press(input); await until('the dialog', () => document.querySelector('[role=dialog]'));
            await until('the focus inside', () => document.activeElement.closest('[role=dialog]'));
            await new Promise(resolve => setTimeout(resolve, 400));";
        person.does_with(open, json!(opener)).await;
        let found = person.does(&format!("{AXE};\n{FINDINGS}")).await;
        assert_eq!(found, json!([]), "{opener}");
        let closed = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', code: 'Escape', bubbles: true}));
            await until('the dialog to go', () => !document.querySelector('[role=dialog]'));
            return await until('the focus back', () => nameOf(document.activeElement) === input);";
        assert_eq!(person.does_with(closed, json!(opener)).await, Value::Bool(true), "{opener}");
    }
}

async fn keep_picture(person: &Person, name: &str, view: &str) {
    let Some(folder) = std::env::var_os("SWITCHBOARD_SCREENSHOTS") else { return };
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(Path::new(&folder).join(format!("{name}-{view}.png")), person.browser.picture().await).unwrap();
}
