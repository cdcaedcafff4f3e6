//! Files in the dashboard: the settings of an agent, the files of visitors, and the playground.

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use super::Person;
use crate::support::{Organization, Script, send, shop_saying, shop_with_settings};

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQzbkPAAJCAXnnENzMAAAAAElFTkSuQmCC";
const EXCEL: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const NOTES: &str = "The lamp hums.";
/// Chooses a file for the next message like the file picker.
const ATTACH: &str = "
    const picker = await until('the picker', () => document.querySelector('#try input[type=file]'));
    const [name, mimeType, content] = input;
    const files = new DataTransfer();
    files.items.add(new File([content], name, {type: mimeType}));
    picker.files = files.files;
    picker.dispatchEvent(new Event('change', {bubbles: true}));";
const REPLIES: &str = "
    await until('the replies', () => [...document.querySelectorAll('[data-testid=turn-facts]')]
        .filter(facts => facts.innerText.includes('done')).length === input);";

async fn shop_with_files() -> Organization {
    let organization = shop_with_settings(json!({"features": {"enableFileUpload": true}})).await;
    organization.script(Script::says("I see."));
    organization
}

fn page_of(organization: &Organization) -> String {
    format!("/agents/{}?tab=behavior", organization.shop())
}

async fn resource(organization: &Organization, path: &str) -> Value {
    let path = organization.admin_path(path);
    let answer = organization.service().admin().get(&path).await;
    answer.assert_status(200);
    answer.json()
}

/// Uploads a file as a client of the public API and returns its id.
async fn upload(organization: &Organization, name: &str, mime_type: &str, bytes: &[u8]) -> String {
    let head = format!(
        "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: {mime_type}\r\n\r\n"
    );
    let body = [head.as_bytes(), bytes, b"\r\n--edge--\r\n"].concat();
    let client = organization.client();
    let request = client
        .request(Method::POST, &organization.path("/files"))
        .header("content-type", "multipart/form-data; boundary=edge")
        .body(body);
    let answer = send(request).await;
    answer.assert_status(201);
    answer.json()["fileId"].as_str().unwrap().to_owned()
}

/// Sends a message with a picture and a text in the session `s`.
async fn send_files(organization: &Organization) {
    let picture = BASE64_STANDARD.decode(PNG).unwrap();
    let picture = upload(organization, "lamp.png", "image/png", &picture).await;
    let notes = upload(organization, "notes.txt", "text/plain", NOTES.as_bytes()).await;
    let attachments = json!([{"fileId": picture}, {"fileId": notes}]);
    let body =
        json!({"message": "Look", "sessionId": "s", "attachments": attachments, "stream": false});
    let path = organization.path("/chat");
    let answer = organization.client().post(&path, &body).await;
    answer.assert_status(200);
}

#[tokio::test]
async fn file_settings_are_saved_and_read_again() {
    let organization = shop_saying("ok").await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    let edits =
        "await press('File uploads'); await type('Largest file', '2.5'); await press('Excel');
        await press('Save'); await shows('Saved.');";
    person.does(edits).await;
    let agent = resource(&organization, &format!("/agents/{}", organization.shop())).await;
    assert_eq!(agent["features"]["enableFileUpload"], true, "{agent}");
    let types = agent["files"]["types"].as_array().unwrap();
    assert_eq!(agent["files"]["maxBytes"], 2_500_000);
    assert!(
        types.len() == 10 && !types.contains(&json!(EXCEL)),
        "{types:?}"
    );

    person.goes_to(&page_of(&organization)).await;
    let shown = "return [(await field('Largest file')).value, (await control('PDF')).checked, (await control('Excel')).checked];";
    assert_eq!(person.does(shown).await, json!(["2.5 MB", true, false]));
    let empties = "for (const box of document.querySelectorAll('[role=group] input[type=checkbox]')) if (box.checked) hit(box);
        await shows('Choose at least one'); await shows('choose at least one type of files');";
    person.does(empties).await;
}

#[tokio::test]
async fn blind_model_is_named_with_its_provider() {
    let organization = shop_with_files().await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    let follows = "await shows('does not see pictures'); await press('Provider main');
        await press('Models see pictures'); await press('Save'); await shows('Saved.');
        await until('the dialog to go', () => !document.querySelector('[role=dialog]'));";
    person.does(follows).await;
    let providers = resource(&organization, "/providers").await;
    assert_eq!(providers["items"][0]["vision"], true, "{providers}");
    person.goes_to("/settings/providers").await;
    let shown = "await press('Edit main'); return (await control('Models see pictures')).checked;";
    assert_eq!(person.does(shown).await, true);
}

#[tokio::test]
async fn files_of_visitors_are_shown_and_downloaded() {
    let organization = shop_with_files().await;
    send_files(&organization).await;
    let person = Person::owner_at(&organization, "/conversations").await;
    let picture = "await press('Visitor s');
        const image = await until('the picture', () => [...document.images].find(image => image.alt === 'lamp.png' && image.naturalWidth > 0));
        const answer = await fetch((await control('Download lamp.png')).href);
        return [image.loading, image.src === answer.url, answer.headers.get('content-type'), answer.headers.get('content-disposition').split(';')[0]];";
    let expected = json!(["lazy", true, "image/png", "attachment"]);
    assert_eq!(person.does(picture).await, expected);
    let notes = "const link = await until('the notes', () => [...document.querySelectorAll('a[download]')].find(link => link.innerText.includes('notes.txt')));
        return [link.innerText.includes('14 B'), link.download, await (await fetch(link.href)).text()];";
    assert_eq!(person.does(notes).await, json!([true, "notes.txt", NOTES]));
    assert_eq!(person.browser.findings("conversation-files").await, [""; 0]);
}

#[tokio::test]
async fn file_that_is_gone_is_still_named() {
    let organization = shop_with_files().await;
    send_files(&organization).await;
    let person = Person::owner_at(&organization, "/conversations").await;
    let gone = "const asks = window.fetch;
        window.fetch = (url, init) => String(url).includes('/files/') ? Promise.resolve(new Response('{}', {status: 404})) : asks(url, init);
        await press('Visitor s'); await shows('notes.txt'); await shows('no longer stored');
        return [...document.querySelectorAll('a[download]')].some(link => link.innerText.includes('notes.txt'));";
    assert_eq!(person.does(gone).await, false);
}

#[tokio::test]
async fn playground_sends_files_of_this_and_earlier_messages() {
    let organization = shop_saying("It hums.").await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    let turns_on = "await field('Message');
        const before = all('button', 'Attach files').length;
        await press('File uploads'); await control('Attach files');
        return before;";
    assert_eq!(person.does(turns_on).await, 0, "the agent takes no files");
    let notes = json!(["notes.txt", "text/plain", NOTES]);
    person.does_with(ATTACH, notes).await;
    // A message may have files only.
    person
        .does("await control('Remove notes.txt'); await press('Send');")
        .await;
    person.does_with(REPLIES, json!(1)).await;
    person
        .does("await type('Message', 'And now?'); await press('Send');")
        .await;
    person.does_with(REPLIES, json!(2)).await;
    let links = "return [...document.querySelectorAll('.chat-log a[download]')].map(link => link.download);";
    assert_eq!(person.does(links).await, json!(["notes.txt"]));
    let requests = organization.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let body = request.body.to_string();
        assert!(body.contains(NOTES), "{body}");
    }
}

#[tokio::test]
async fn playground_says_why_a_file_is_not_attached() {
    let organization = shop_with_files().await;
    let person = Person::owner_at(&organization, &page_of(&organization)).await;
    let program = json!(["tool.exe", "application/x-msdownload", "MZ\u{1}\u{2}"]);
    person.does_with(ATTACH, program).await;
    person
        .does("await shows('Not attached'); await shows('tool.exe');")
        .await;
    // A type that the form excludes, saved or not.
    person.does("await press('JSON');").await;
    let data = json!(["data.json", "application/json", "{\"lamp\": 1}"]);
    person.does_with(ATTACH, data).await;
    person
        .does("await shows('The agent does not accept JSON files.');")
        .await;
    let large = "await type('Largest file', '1');
        const picker = document.querySelector('#try input[type=file]');
        const files = new DataTransfer();
        files.items.add(new File([new Uint8Array(1000001)], 'large.txt', {type: 'text/plain'}));
        picker.files = files.files;
        picker.dispatchEvent(new Event('change', {bubbles: true}));
        await shows('The file is larger than 1 MB');";
    person.does(large).await;
    let notes = json!(["notes.txt", "text/plain", NOTES]);
    person.does_with(ATTACH, notes).await;
    let removes = "await press('Remove notes.txt');
        await until('it to go', () => all('button', 'Remove notes.txt').length === 0);
        return nameOf(document.activeElement);";
    assert_eq!(person.does(removes).await, "Attach files");
}
