//! The catalog of an agent in the dashboard: file uploads and feeds.

use std::sync::{Arc, Mutex};

use axum::{Router, http::StatusCode};
use serde_json::{Value, json};

use super::Person;
use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Page, Script, TestService, eventually,
};

/// Selects a file in the page like the file picker.
const UPLOAD: &str = "
    const picker = await until('the picker', () => document.querySelector('input[type=file]'));
    const files = new DataTransfer();
    files.items.add(new File([input[1]], input[0]));
    picker.files = files.files;
    picker.dispatchEvent(new Event('change', {bubbles: true}));";
const LISTED: &str =
    "const list = await until('the list', () => document.querySelector('[aria-label=\"Products in the catalog\"]'));
    return [...list.querySelectorAll('li')].map(row => row.innerText.split('\\n')[0]);";
const CSV: &str =
    "title,price,colour\nDesk lamp,$39,brass\nFloor lamp,$89,black\nMirror,$20,brass\n,$1,\n";

fn shop() -> OrganizationDocument {
    OrganizationDocument::new().shop(json!({"ecommerce": {"enabled": true}}))
}

fn page_of(organization: &Organization) -> String {
    format!("/agents/{}?tab=products", organization.shop())
}

async fn uploads(person: &Person, name: &str, content: &str) {
    person.does_with(UPLOAD, json!([name, content])).await;
}

/// Returns the titles shown to a visitor who asks for a lamp.
async fn is_shown(organization: &Organization, expected: &[&str]) {
    let mut number = 0;
    eventually("visitors are shown it", PATIENCE, async || {
        number += 1;
        organization.script(Script::in_turn(vec![
            Script::searches("lamp"),
            Script::says("Look."),
        ]));
        let session = format!("{}-{number}", expected.len());
        let reply = organization.chat(&session, "a lamp?").await;
        let spec: Value = reply
            .header("x-ui-spec")
            .map(|text| serde_json::from_str(text).unwrap())
            .unwrap_or_default();
        let mut titles: Vec<_> = spec["data"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|card| &card["title"])
            .collect();
        titles.sort_by_key(|title| title.to_string());
        (titles == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn uploaded_file_is_replaced_deleted_and_shown_to_visitors() {
    let organization = shop().apply_to_shared().await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    person
        .does(
            "await shows('No products yet'); await shows('title,price,link,image_link'); await control('Copy sample');",
        )
        .await;
    uploads(&person, "lamps.csv", CSV).await;
    person
        .does("await shows('Imported 3 products'); await shows('1 row skipped'); await shows('Row 5: it has no title');")
        .await;
    assert_eq!(
        person.does(LISTED).await,
        json!(["Desk lamp", "Floor lamp", "Mirror"])
    );
    is_shown(&organization, &["Desk lamp", "Floor lamp"]).await;

    // The file name does not matter: JSON is detected by its bracket.
    uploads(&person, "export.txt", r#"[{"title": "Oil lamp"}]"#).await;
    person.does("await shows('Replace 3 products?'); await shows('export.txt'); await shows('Oil lamp'); await press('Cancel');").await;
    assert_eq!(
        person.does(LISTED).await,
        json!(["Desk lamp", "Floor lamp", "Mirror"])
    );
    uploads(&person, "export.txt", r#"[{"title": "Oil lamp"}]"#).await;
    person
        .does("await press('Replace catalog'); await shows('Imported 1 product');")
        .await;
    is_shown(&organization, &["Oil lamp"]).await;

    person.does("await press('Restore previous catalog'); await shows('Restore 3 products?'); hit(all('[role=dialog] button', 'Restore')[0]); await shows('Desk lamp');").await;
    is_shown(&organization, &["Desk lamp", "Floor lamp"]).await;

    person.does("await press('Delete all'); await shows('Delete 3 products?'); hit(all('[role=dialog] button', 'Delete all')[0]); await shows('No products yet');").await;
    is_shown(&organization, &[]).await;
}

#[tokio::test]
async fn catalog_is_searched_and_paged() {
    let organization = shop().apply_to_shared().await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    let rows: String = (1..=60)
        .map(|number| {
            format!(
                "Tea {number},{}\n",
                if number == 42 { "oolong" } else { "green" }
            )
        })
        .collect();
    uploads(&person, "teas.csv", &format!("title,kind\n{rows}")).await;
    person
        .does("await shows('Imported 60 products'); await press('Show more');")
        .await;
    let grown = "await until('50 rows', () => document.querySelectorAll('[aria-label=\"Products in the catalog\"] li').length === 50);";
    person.does(grown).await;
    person.does("await type('Search products', 'TEA oolong'); await shows('1 product with “TEA oolong”');").await;
    assert_eq!(person.does(LISTED).await, json!(["Tea 42"]));
    person.does("await type('Search products', 'wine'); await shows('0 products with “wine”'); await shows('Try fewer or shorter words');").await;
}

#[tokio::test]
async fn invalid_file_is_explained_and_changes_nothing() {
    let organization = shop().apply_to_shared().await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    uploads(&person, "lamps.csv", CSV).await;
    // The page accepts the next file once this one is processed.
    let listed = "await shows('Imported 3 products');
        await until('the list', () => document.querySelectorAll('[aria-label=\"Products in the catalog\"] li').length === 3);";
    person.does(listed).await;
    uploads(
        &person,
        "page.csv",
        "<html><body>Please sign in</body></html>",
    )
    .await;
    let words = "await shows('The file was not imported'); await shows('The file is a web page');
        await shows('Use the product export of your shop.');";
    person.does(words).await;
    uploads(&person, "half.json", "[{\"title\": \"Lamp\"").await;
    person
        .does("await shows('The file ends in the middle of row 1');")
        .await;
    assert_eq!(
        person.does(LISTED).await,
        json!(["Desk lamp", "Floor lamp", "Mirror"])
    );
}

#[tokio::test]
async fn feed_is_added_refreshed_and_explains_its_failures() {
    let service = TestService::start_with(&[
        ("SWITCHBOARD__PRODUCTS__FEED_SCAN_MS", "200"),
        ("SWITCHBOARD__PRODUCTS__FEED_PRIVATE_NETWORKS", "127.0.0.1"),
    ])
    .await;
    let answer = Arc::new(Mutex::new((
        StatusCode::OK,
        "title,price\nTea,$5\n".to_owned(),
    )));
    let shared_answer = Arc::clone(&answer);
    let server =
        Page::answer(Router::new().fallback(async move || shared_answer.lock().unwrap().clone()));
    let organization = shop().apply(&service).await;
    let person = Person::at(&service, &organization, "owner", &page_of(&organization)).await;
    let mistakes = "
        await press('Add a feed');
        await type('Address', 'ftp://shop.example/tea.csv'); await shows('Use an address that begins with https://');
        await type('Address', 'https://me:secret@shop.example/tea.csv'); await shows('Leave out user and password');
        await shows('Products: the address of the feed is invalid');
        await type('Address', 'https://shop.example/' + 'x'.repeat(2100)); await press('Save');
        const address = await field('Address');
        await until('what the service says, beside the field', () => address.getAttribute('aria-invalid') === 'true' && address.closest('.mantine-TextInput-root').innerText.includes('must have at most 2048 characters'));";
    person.does(mistakes).await;
    let fetched = "await type('Address', input); await choose('Interval', 'Every day'); await press('Save'); await shows('1 product'); await shows('Fetched');
        await shows('From the feed'); return all('button', 'Replace with a file').length + all('button', 'Delete all').length;";
    let url = format!("{}/feed.csv", server.origin());
    assert_eq!(person.does_with(fetched, json!(url)).await, 0);
    let path = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    assert_eq!(
        service.admin().get(&path).await.json()["feed"]["everyMinutes"],
        1440
    );

    *answer.lock().unwrap() = (StatusCode::NOT_FOUND, String::new());
    let failed =
        "await press('Fetch now'); await shows('The last fetch failed'); await shows('The server answered 404');
        await shows('Open it in a browser, then correct it here.'); await shows('1 product');";
    person.does(failed).await;
    *answer.lock().unwrap() = (StatusCode::OK, "title\nTea\nCup\n".to_owned());
    person
        .does("await press('Fetch now'); await shows('2 products'); await shows('Fetched');")
        .await;
    person.does("await press('Remove feed'); await press('Save'); await control('Replace with a file'); await control('Delete all');").await;
}

#[tokio::test]
async fn viewer_sees_products_and_is_offered_no_edits() {
    let organization = shop().apply_to_shared().await;
    let service = organization.service();
    let owner = Person::owner_at(&organization, &page_of(&organization)).await;
    uploads(&owner, "lamps.csv", CSV).await;
    owner.does("await shows('Imported 3 products');").await;
    let viewer = Person::at(service, &organization, "viewer", &page_of(&organization)).await;
    viewer
        .does("await type('Search products', 'floor'); await shows('1 product with “floor”');")
        .await;
    assert_eq!(viewer.does(LISTED).await, json!(["Floor lamp"]));
    let offered = "return input.filter(name => all(PRESSED, name).some(element => !element.matches(':disabled')));";
    let changes = [
        "Replace with a file",
        "Delete all",
        "Add a feed",
        "Add product",
        "Let the agent show products",
    ];
    assert_eq!(viewer.does_with(offered, json!(changes)).await, json!([]));
    assert_eq!(
        viewer
            .does("return document.querySelectorAll('input[type=file]').length;")
            .await,
        0
    );
    let asked = "const headers = {'content-type': 'text/csv'};
        return (await fetch(input, {method: 'PUT', headers, body: 'title\\nTea\\n'})).status;";
    let path = organization.admin_path(&format!("/agents/{}/products", organization.shop()));
    assert_eq!(viewer.does_with(asked, json!(path)).await, 403);
}
