//! Section "Theme".

use serde_json::{Map, Value, json};

use crate::support::shop_with_settings;

const FIELDS: [&str; 10] = [
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

fn theme() -> Map<String, Value> {
    let color =
        |(number, name): (usize, &&str)| ((*name).to_owned(), json!(format!("#00000{number}")));
    let mut theme: Map<_, _> = FIELDS.iter().enumerate().map(color).collect();
    theme.extend([
        ("borderRadius".to_owned(), json!("7px")),
        ("fontFamily".to_owned(), json!("Georgia, serif")),
    ]);
    theme
}

async fn read_theme(route: &str, settings: Value) -> Value {
    let organization = shop_with_settings(settings).await;
    let answer = organization.client().get(&organization.path(route)).await;
    answer.assert_status(200);
    answer.json()["theme"].clone()
}

#[tokio::test]
async fn agent_configuration_has_all_ten_theme_fields() {
    assert_eq!(
        read_theme("", json!({"theme": theme()})).await,
        Value::Object(theme())
    );
}

#[tokio::test]
async fn widget_configuration_has_three_theme_colors() {
    let expected =
        json!({"primaryColor": "#000000", "backgroundColor": "#000001", "textColor": "#000002"});
    assert_eq!(
        read_theme("/widget", json!({"theme": theme()})).await,
        expected
    );
}
