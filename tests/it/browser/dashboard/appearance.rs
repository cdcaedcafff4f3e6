//! Appearance and accessibility of every dashboard page on desktop and phone, light and dark.
//! `SWITCHBOARD_SCREENSHOTS=FOLDER` saves a screenshot of each.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Person, invited};
use crate::{
    browser::widget::page::FIND,
    support::{
        Organization, OrganizationDocument, PATIENCE, Script, SharedService, VIEWS, eventually,
    },
};

use crate::support::TestService;

/// Expression that is true once a page has its heading and no pending request.
const RESTS: &str = "await until('the page', () => document.querySelector('h1') && !document.querySelector('[role=status][aria-label=Loading]'));";

/// A product file exported by the shop.
const CATALOGUE: &str = "title,price,link,image_link,description,colour,weight
House blend,$14,https://shop.example/house,,\"Chocolate, hazelnut and a long finish\",dark,250 g
Ethiopia Guji,$19,https://shop.example/guji,,Jasmine and ripe peach; best as a filter,light,250 g
Sencha from Uji,$12,https://shop.example/sencha,,\"Green tea of the first flush: fresh grass, a little sea\",green,100 g
Earl Grey No. 4,$9,https://shop.example/grey,,Bergamot from Calabria on Assam,black,100 g
Pour-over kit,$39,https://shop.example/kit,,\"Dripper, server and forty filters\",white,
Milk jug,$24,https://shop.example/jug,,\"Brushed steel, with a fine spout\",steel,
";

pub(super) async fn shop() -> Organization {
    let product = |title: &str, price: &str| json!({"title": title, "price": price, "image": "", "url": "https://shop.example/tea"});
    let products = [
        product("Green tea, 100 g", "$9"),
        product("Mountain oolong", "$18"),
        product("Glass teapot", "$29"),
    ];
    let agent = json!({
        "name": "Bean & Leaf", "description": "Helps to choose coffee and tea.", "welcomeMessage": "Coffee or tea?",
        "features": {"enableLeadCapture": true}, "leadForm": lead_form(),
        "allowedDomains": ["shop.example", "*.shop.example"], "ecommerce": {"enabled": true, "products": products},
        "theme": {"primaryColor": "#7c4a21", "chatHeaderColor": "#7c4a21", "userMessageColor": "#7c4a21", "sendButtonColor": "#7c4a21"}
    });
    let draft = json!({"name": "Support", "description": "Orders and returns.", "public": false,
        "theme": {"primaryColor": "#2f6f4f"}});
    let members = json!([
        {"agent": "shop", "specialization": "coffee, tea, equipment and prices"},
        {"agent": "support", "specialization": "orders, delivery, returns and refunds"}
    ]);
    let organization = OrganizationDocument::new()
        .shop(agent)
        .agent("support", draft)
        .team("front", json!({"name": "Front desk", "description": "Whoever comes in is helped here.", "members": members, "defaultAgent": "support"}))
        .key("site", &["chat"])
        .apply_to_shared()
        .await;
    let name = json!({"name": "Bean & Leaf"});
    assert_eq!(
        organization
            .service()
            .admin()
            .patch(&organization.admin_path(""), &name)
            .await
            .status,
        200
    );
    let products = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    assert_eq!(
        upload(organization.service(), &products, CATALOGUE).await,
        200
    );
    organization.script(Script::says(
        "We have green tea, which keeps you awake without haste. **Shall I show you more?**",
    ));
    for (session, name, message) in [
        (
            "s-3",
            "Ines Fall",
            "I would like to sleep less. What do you have?",
        ),
        ("s-2", "Kim Park", "What is good in the afternoon?"),
        ("s-1", "Maria Lopez", "Do you have tea?"),
    ] {
        let email = format!("{}@example.com", name.to_lowercase().replace(' ', "."));
        let body = json!({
            "message": message, "sessionId": session, "visitorName": name, "visitorEmail": email, "stream": false
        });
        let path = organization.path("/chat");
        assert_eq!(organization.client().post(&path, &body).await.status, 200);
    }
    let path = organization.path("/conversations/s-1");
    let lead = json!({"name": "Maria Lopez", "email": "maria@example.com", "consent": true});
    let rated = json!({"rating": 5, "feedback": "Quick and kind. Thank you!", "lead": lead});
    assert_eq!(organization.client().patch(&path, &rated).await.status, 200);
    organization
}

fn lead_form() -> Value {
    json!({
        "title": "Stay in touch", "consent": {"text": "I agree that you contact me about my request."},
        "fields": [
            {"name": "name", "label": "Name", "type": "name"},
            {"name": "email", "label": "E-mail", "type": "email", "required": true},
        ],
        "trigger": "after-replies", "afterReplies": 3,
    })
}

async fn upload(service: &TestService, path: &str, csv: &'static str) -> u16 {
    let request = service
        .admin()
        .request(Method::PUT, path)
        .header("content-type", "text/csv")
        .body(csv);
    request.send().await.unwrap().status().as_u16()
}

async fn conversation_of(organization: &Organization) -> String {
    let path = organization.admin_path("/conversations");
    organization.service().admin().get(&path).await.json()["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn pages_are_accessible_and_fit_every_size_and_color_scheme() {
    let service = SharedService::get().await;
    let organization = shop().await;
    let (agent, team) = (organization.shop(), organization.team("front"));
    let conversation = conversation_of(&organization).await;
    let pages = [
        ("agents", "/agents".to_owned()),
        ("agent-general", format!("/agents/{agent}")),
        (
            "agent-instructions",
            format!("/agents/{agent}?tab=instructions"),
        ),
        (
            "agent-appearance",
            format!("/agents/{agent}?tab=appearance"),
        ),
        ("agent-behavior", format!("/agents/{agent}?tab=behavior")),
        ("agent-install", format!("/agents/{agent}?tab=install")),
        ("agent-products", format!("/agents/{agent}?tab=products")),
        (
            "agent-products-none",
            format!("/agents/{}?tab=products", organization.agent("support")),
        ),
        ("teams", "/teams".to_owned()),
        ("team", format!("/teams/{team}")),
        ("team-install", format!("/teams/{team}?tab=install")),
        ("conversations", "/conversations".to_owned()),
        ("conversation", format!("/conversations/{conversation}")),
        ("leads", "/leads".to_owned()),
        ("analytics", "/analytics".to_owned()),
        ("keys", "/settings/keys".to_owned()),
        ("providers", "/settings/providers".to_owned()),
        ("members", "/settings/members".to_owned()),
        ("audit", "/settings/audit".to_owned()),
        ("agent-history", format!("/agents/{agent}?tab=history")),
        ("not-found", "/nowhere".to_owned()),
    ];
    let person = Person::owner_at(&organization, "/agents").await;
    invited(&service, &organization, "editor").await;
    let mut findings = Vec::new();
    for view in VIEWS {
        person.browser.looks_like(view.1, view.2, view.3).await;
        for (name, path) in &pages {
            person.goes_to(path).await;
            if *name == "agent-appearance" {
                shows_its_preview(&person).await;
            }
            findings.extend(look_at(&person, name, view.0).await);
        }
        person.goes_to("/agents").await;
        person.does("await openAccountMenu();").await;
        findings.extend(look_at(&person, "account-menu", view.0).await);
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[tokio::test]
async fn signed_out_pages_are_accessible_and_fit_every_size() {
    let organization = OrganizationDocument::new().apply_to_shared().await;
    let service = organization.service();
    let person = Person::with_link(service, invited(service, &organization, "editor").await).await;
    let dead = "/link#nothing-of-this-name-was-ever-made".to_owned();
    let mut findings = Vec::new();
    for view in VIEWS {
        person.browser.looks_like(view.1, view.2, view.3).await;
        for (name, path, ready) in [
            ("sign-in", "/sign-in".to_owned(), "Sign in"),
            (
                "welcome",
                format!("/link#{}", person.secret),
                "Welcome, Edith Eng",
            ),
            ("link-dead", dead.clone(), "no longer works"),
        ] {
            // A URL that differs only in its fragment is not another page.
            person.browser.visit("about:blank").await;
            person.goes_to(&path).await;
            person.does_with("await shows(input);", json!(ready)).await;
            findings.extend(look_at(&person, name, view.0).await);
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Waits until the preview widget is open and shows its conversation.
async fn shows_its_preview(person: &Person) {
    person
        .does("await until('the frame', () => document.querySelector('iframe'));")
        .await;
    let look = format!("{FIND}\nreturn shown($('.row.user'));");
    eventually("the preview", PATIENCE, async || {
        (person
            .browser
            .run_in_frame("iframe", &look, Value::Null)
            .await
            == true)
            .then_some(())
    })
    .await;
}

pub(super) async fn look_at(person: &Person, name: &str, view: &str) -> Vec<String> {
    person.does(RESTS).await;
    person.browser.findings(&format!("{name}-{view}")).await
}

#[tokio::test]
async fn dialogs_are_accessible_and_trap_the_focus() {
    let organization = shop().await;
    let conversation = conversation_of(&organization).await;
    let person = Person::owner_at(&organization, "/agents").await;
    person
        .browser
        .looks_like(VIEWS[0].1, VIEWS[0].2, VIEWS[0].3)
        .await;
    for (path, opener) in [
        ("/agents", "New agent"),
        ("/teams", "New team"),
        ("/settings/keys", "New key"),
        ("/settings/providers", "New provider"),
        ("/conversations", "Erase visitor"),
        (&format!("/conversations/{conversation}"), "Delete"),
        ("/settings/members", "Invite"),
    ] {
        person.goes_to(path).await;
        let open = "await press(input); await until('the dialog', () => document.querySelector('[role=dialog]'));
            await until('the focus inside', () => document.activeElement.closest('[role=dialog]'));
            await new Promise(resolve => setTimeout(resolve, 400));";
        person.does_with(open, json!(opener)).await;
        let name = opener.to_lowercase().replace(' ', "-");
        assert_eq!(look_at(&person, "dialog", &name).await, [""; 0]);
        let closed = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', code: 'Escape', bubbles: true}));
            await until('the dialog to go', () => !document.querySelector('[role=dialog]'));
            return await until('the focus back', () => nameOf(document.activeElement) === input);";
        assert_eq!(
            person.does_with(closed, json!(opener)).await,
            Value::Bool(true),
            "{opener}"
        );
    }
}
