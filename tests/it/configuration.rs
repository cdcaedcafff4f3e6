//! The two configuration reads, every field and type.

use serde_json::{Value, json};

use crate::support::{Organization, OrganizationDocument, SharedService};

const THEME: [&str; 10] = [
    "primaryColor",
    "backgroundColor",
    "textColor",
    "borderRadius",
    "fontFamily",
    "chatHeaderColor",
    "userMessageColor",
    "botMessageColor",
    "inputBackgroundColor",
    "sendButtonColor",
];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn sorted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

async fn configured(service: &SharedService) -> Organization {
    let mut theme: serde_json::Map<_, _> =
        THEME.iter().enumerate().map(|(number, name)| ((*name).to_owned(), json!(format!("#00000{number}")))).collect();
    theme.extend([("borderRadius".to_owned(), json!("7px")), ("fontFamily".to_owned(), json!("Georgia, serif"))]);
    let settings = json!({
        "name": "Shop ☕", "description": "Sells.", "instructions": "a secret prompt", "welcomeMessage": "Welcome!",
        "placeholderText": "Ask…", "theme": theme,
        "features": {"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true, "enableRating": false, "enableLeadCapture": true},
        "limits": {"maxMessageLength": 321, "rateLimitPerMinute": 12},
        "widget": {"position": "top-left", "size": "large", "showAvatar": false, "showTimestamp": true, "showPoweredBy": false,
            "autoOpen": true, "autoOpenDelay": 1234, "triggerText": "Talk", "offlineMessage": "Gone."}
    });
    OrganizationDocument::new().agent("shop", settings).apply(service).await
}

#[tokio::test]
async fn the_agent_configuration_has_all_its_fields_and_no_others() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    let answer = organization.client().get(&format!("/api/public/agents/{}", organization.shop())).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let agent = answer.json();
    let fields = ["id", "name", "description", "welcomeMessage", "placeholderText", "theme", "features", "limits"];
    assert_eq!(keys(&agent), sorted(&fields));
    assert_eq!(agent["id"], organization.shop());
    assert_eq!(agent["name"], "Shop ☕");
    assert_eq!(agent["description"], "Sells.");
    assert_eq!(agent["welcomeMessage"], "Welcome!");
    assert_eq!(agent["placeholderText"], "Ask…");
    assert_eq!(keys(&agent["theme"]), sorted(&THEME));
    assert_eq!(agent["theme"]["sendButtonColor"], "#000009");
    assert_eq!(agent["theme"]["borderRadius"], "7px");
    assert_eq!(agent["theme"]["fontFamily"], "Georgia, serif");
    let features = json!({"enableMarkdown": false, "enableFileUpload": true, "enableEmailCapture": true, "enableRating": false, "enableLeadCapture": true});
    assert_eq!(agent["features"], features);
    assert_eq!(agent["limits"], json!({"maxMessageLength": 321, "rateLimitPerMinute": 12}));
    assert!(!answer.text.contains("secret prompt"));
}

#[tokio::test]
async fn the_widget_configuration_has_all_its_fields_and_no_others() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    let answer = organization.client().get(&format!("/api/public/agents/{}/widget", organization.shop())).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let configuration = answer.json();
    let fields = ["id", "name", "description", "welcomeMessage", "placeholderText", "theme", "widget"];
    assert_eq!(keys(&configuration), sorted(&fields));
    let theme = json!({"primaryColor": "#000000", "backgroundColor": "#000001", "textColor": "#000002"});
    assert_eq!(configuration["theme"], theme);
    let widget = json!({
        "position": "top-left", "size": "large", "showAvatar": false, "showTimestamp": true, "enableMarkdown": false,
        "enableFileUpload": true, "enableEmailCapture": true, "enableRating": false, "showPoweredBy": false,
        "maxMessageLength": 321, "rateLimitPerMinute": 12, "autoOpen": true, "autoOpenDelay": 1234,
        "triggerText": "Talk", "offlineMessage": "Gone."
    });
    assert_eq!(configuration["widget"], widget);
}

#[tokio::test]
async fn every_field_has_a_default_of_its_type() {
    let service = SharedService::get().await;
    let organization = OrganizationDocument::new().agent("shop", json!({"limits": {}})).apply(&service).await;
    let path = format!("/api/public/agents/{}", organization.shop());
    let agent = organization.client().get(&path).await.json();
    for name in THEME {
        assert!(agent["theme"][name].as_str().is_some_and(|value| !value.is_empty()), "{name}");
    }
    assert!(agent["features"].as_object().unwrap().values().all(Value::is_boolean));
    assert_eq!(agent["limits"], json!({"maxMessageLength": 4000, "rateLimitPerMinute": 30}));
    let widget = organization.client().get(&format!("{path}/widget")).await.json()["widget"].clone();
    assert!(["bottom-right", "bottom-left", "top-right", "top-left"].contains(&widget["position"].as_str().unwrap()));
    assert!(["small", "medium", "large"].contains(&widget["size"].as_str().unwrap()));
    assert!(widget["autoOpenDelay"].is_number());
}

#[tokio::test]
async fn a_change_is_seen_within_two_seconds_on_every_ingress() {
    let service = SharedService::get().await;
    let organization = configured(&service).await;
    let path = format!("/api/public/agents/{}", organization.shop());
    for url in service.public_urls() {
        assert_eq!(organization.client_at(&url).get(&path).await.json()["welcomeMessage"], "Welcome!");
    }
    let document = organization.changed_agent("shop", json!({"welcomeMessage": "Changed!"}));
    assert_eq!(service.admin().post("/api/admin/apply", &document).await.status, 200);
    let changed = std::time::Instant::now();
    for url in service.public_urls() {
        let client = organization.client_at(&url);
        // Half a second more than promised, for a machine that is busy with other tests.
        let patience = std::time::Duration::from_millis(2_500).saturating_sub(changed.elapsed());
        crate::support::eventually("the change is live", patience, async || {
            (client.get(&path).await.json()["welcomeMessage"] == "Changed!").then_some(())
        })
        .await;
    }
}
