//! Files in the widget: how they are chosen, uploaded, sent and shown again.

use reqwest::Method;
use serde_json::{Value, json};

use super::page::Visitor;
use crate::support::{
    Client, Organization, PATIENCE, Script, eventually, send, shop_saying, shop_with_settings,
};

const SHIFT: &str = "\u{e008}";
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const DELETE: &str = "\u{e017}";
const AXE: &str = include_str!("../assets/axe.min.js");

/// Finds and creates files in the page: `files` are lists of name, type and text, or of name, type
/// and edge in pixels for pictures.
const FILES: &str = "
    const create = async ([name, type, content]) => {
        if (!type.startsWith('image/')) return new File([content], name, {type});
        const canvas = document.createElement('canvas');
        canvas.width = canvas.height = content;
        canvas.getContext('2d').fillRect(0, 0, content / 2, content);
        return new File([await new Promise(done => canvas.toBlob(done, type))], name, {type});
    };
    const transfer = new DataTransfer();
    for (const file of input) transfer.items.add(await create(file));
    const options = {bubbles: true, cancelable: true, composed: true};";

pub(super) const CHOOSE: &str = "
    $('.chooser').files = transfer.files;
    $('.chooser').dispatchEvent(new Event('change'));";
const DROP: &str = "
    $('.log').dispatchEvent(new DragEvent('dragenter', {...options, dataTransfer: transfer}));
    const isShown = shown($('.drop'));
    $('.drop').dispatchEvent(new DragEvent('drop', {...options, dataTransfer: transfer}));
    return [isShown, shown($('.drop'))];";
const PASTE: &str = "
    const event = new ClipboardEvent('paste', {...options, clipboardData: transfer});
    return $('.field textarea').dispatchEvent(event);";

pub(super) const CHIPS: &str = "all('.chip').map(chip => chip.querySelector('.name').textContent)";
const UPLOADED: &str = "all('.chip').length > 0 && !all('.chip .bar').some(shown)";
pub(super) const ERRORS: &str =
    "all('.chip .error').map(error => error.textContent).filter(Boolean)";
/// Names of the files of each message.
pub(super) const SENT: &str = "all('.row.user').map(row => [...row.querySelectorAll('.file .name')].map(name => name.textContent))";
const FOCUS: &str =
    "host.shadowRoot.activeElement?.ariaLabel ?? host.shadowRoot.activeElement?.className";

/// Creates an organization whose shop accepts files with the default limits.
pub(super) async fn shop_with_files() -> Organization {
    let organization = shop_with_settings(json!({"features": {"enableFileUpload": true}})).await;
    organization.script(Script::says("fine"));
    organization
}

impl Visitor {
    pub(super) async fn with_files(organization: &Organization) -> Self {
        let visitor = Self::in_window(organization).await;
        visitor
            .sees("the paper clip", "shown($('.attach:not(.camera)'))")
            .await;
        visitor
    }

    pub(super) async fn chooses(&self, files: Value) {
        self.run(&format!("{FILES}{CHOOSE}"), files).await;
    }

    pub(super) async fn has_uploaded(&self, names: Value) {
        self.reads(CHIPS, names).await;
        self.sees("the end of the uploads", UPLOADED).await;
        assert_eq!(self.read(ERRORS).await, json!([]));
    }

    /// Runs the statements instead of the next uploads, until `resume` is called in the page.
    pub(super) async fn uploads_by(&self, statements: &str) {
        let replace = format!(
            "const send = XMLHttpRequest.prototype.send;
             window.resume = () => XMLHttpRequest.prototype.send = send;
             XMLHttpRequest.prototype.send = function (body) {{ {statements} }};"
        );
        self.run(&replace, Value::Null).await;
    }

    /// Returns the rules of accessibility that the page breaks.
    async fn breaks_rules(&self) -> Value {
        let check = "
            if (!window.axe) (0, eval)(input);
            const found = await axe.run(document, {resultTypes: ['violations']});
            return found.violations.map(({id, nodes}) => [id, ...nodes.map(node => node.target.flat().join(' '))]);";
        self.run(check, json!(AXE)).await
    }
}

/// Returns the attachments of the first message of the organization's only conversation.
pub(super) async fn attachments(organization: &Organization) -> Value {
    let admin = organization.service().admin();
    let stored = async || {
        let conversations = organization.conversations(&admin).await?;
        let items = conversations.first()?["messages"]["items"].clone();
        let first = items
            .as_array()?
            .iter()
            .find(|item| item["role"] == "user")?;
        first.get("attachments").cloned()
    };
    eventually("a message with files", PATIENCE, stored).await
}

#[tokio::test]
async fn chosen_files_are_sent_and_shown_after_a_reload() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let name = "<img src=x onerror=alert(1)>.png";
    visitor
        .chooses(json!([
            [name, "image/png", 300],
            ["orders.csv", "application/vnd.ms-excel", "a,b\n1,2"]
        ]))
        .await;
    visitor.has_uploaded(json!([name, "orders.csv"])).await;
    visitor
        .sees("a thumbnail", "all('.chip canvas').length === 1")
        .await;
    visitor
        .sees(
            "the announcement",
            "$('[aria-live]').textContent.endsWith(' uploaded')",
        )
        .await;
    visitor.says("Look at this").await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read(CHIPS).await, json!([]));
    assert_eq!(visitor.read(SENT).await, json!([[name, "orders.csv"]]));
    let stored = attachments(&organization).await;
    assert_eq!(
        [&stored[0]["mimeType"], &stored[1]["mimeType"]],
        ["image/png", "text/csv"]
    );
    assert_eq!(stored[1]["bytes"], 7);
    visitor.browser.command("refresh", &json!({})).await;
    visitor.reads(SENT, json!([[name, "orders.csv"]])).await;
    visitor
        .sees("the image", "all('.file.image canvas').length === 1")
        .await;
    assert_eq!(
        visitor.read("all('.files img, .files a').length").await,
        0,
        "nothing that a file contains is in the page"
    );
    let download = "
        const create = URL.createObjectURL;
        const saved = new Promise(done => URL.createObjectURL = blob => (done(blob), create.call(URL, blob)));
        all('.file .tool').at(-1).click();
        const blob = await saved;
        return [blob.type, await blob.text()];";
    assert_eq!(
        visitor.run(download, Value::Null).await,
        json!(["application/octet-stream", "a,b\n1,2"])
    );
}

#[tokio::test]
async fn message_of_files_alone_waits_for_their_uploads() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    visitor
        .uploads_by("window.proceed = () => { window.resume(); this.send(body); };")
        .await;
    visitor
        .chooses(json!([["a.txt", "text/plain", "hello"]]))
        .await;
    let progress = "$('.chip [role=progressbar]')?.getAttribute('aria-label')";
    visitor.reads(progress, json!("Uploading a.txt")).await;
    visitor.clicks(".send").await;
    let reason = json!("Your message will be sent once its files are uploaded.");
    visitor
        .reads("$('.note').textContent", reason.clone())
        .await;
    visitor
        .reads("$('.root > [role=alert]').textContent", reason)
        .await;
    assert_eq!(visitor.read(SENT).await, json!([]));
    visitor
        .sees("the request", "typeof window.proceed === 'function'")
        .await;
    visitor.run("window.proceed();", Value::Null).await;
    visitor.is_answered("fine").await;
    assert_eq!(visitor.read(SENT).await, json!([["a.txt"]]));
    assert_eq!(
        visitor.read("shown($('.row.user .bubble'))").await,
        false,
        "no empty bubble"
    );
}

#[tokio::test]
async fn dropped_and_pasted_files_are_uploaded() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let dropped = visitor
        .run(
            &format!("{FILES}{DROP}"),
            json!([["dropped.txt", "text/plain", "x"]]),
        )
        .await;
    assert_eq!(dropped, json!([true, false]), "the zone is shown meanwhile");
    visitor.has_uploaded(json!(["dropped.txt"])).await;
    let is_default = visitor
        .run(
            &format!("{FILES}{PASTE}"),
            json!([["image.png", "image/png", 20]]),
        )
        .await;
    assert_eq!(is_default, false);
    visitor
        .has_uploaded(json!(["dropped.txt", "image.png"]))
        .await;
    // A spreadsheet program copies a picture of its cells as well.
    let cells = format!(
        "{FILES} transfer.setData('text/plain', 'a'); transfer.setData('text/html', '<b>a</b>'); {PASTE}"
    );
    let picture = json!([["cells.png", "image/png", 20]]);
    assert_eq!(visitor.run(&cells, picture).await, true);
    assert_eq!(
        visitor.read(CHIPS).await,
        json!(["dropped.txt", "image.png"])
    );
    visitor.says("both").await;
    visitor.is_answered("fine").await;
    assert_eq!(
        visitor.read(SENT).await,
        json!([["dropped.txt", "image.png"]])
    );
}

#[tokio::test]
async fn files_are_reached_and_removed_with_the_keyboard() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    let files = json!([["a.txt", "text/plain", "x"], ["b.png", "image/png", 9]]);
    visitor.chooses(files).await;
    visitor.has_uploaded(json!(["a.txt", "b.png"])).await;
    visitor.reads(FOCUS, json!("Your message")).await;
    for name in ["Attach files", "Remove b.png", "Remove a.txt"] {
        let back = json!([{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": SHIFT}, {"type": "keyDown", "value": TAB},
            {"type": "keyUp", "value": TAB}, {"type": "keyUp", "value": SHIFT}
        ]}]);
        visitor
            .browser
            .command("actions", &json!({ "actions": back }))
            .await;
        visitor.reads(FOCUS, json!(name)).await;
    }
    visitor.presses(DELETE).await;
    visitor.reads(FOCUS, json!("Remove b.png")).await;
    assert_eq!(visitor.read(CHIPS).await, json!(["b.png"]));
    visitor.presses(ENTER).await;
    visitor.reads(FOCUS, json!("Your message")).await;
    assert_eq!(visitor.read(CHIPS).await, json!([]));
    let open = "
        window.opened = 0;
        $('.chooser').click = () => window.opened += 1;
        $('.attach').focus();";
    visitor.run(open, Value::Null).await;
    visitor.presses(ENTER).await;
    visitor.reads("window.opened", json!(1)).await;
}

#[tokio::test]
async fn axe_finds_nothing_in_chips_errors_and_sent_files() {
    let organization = shop_with_files().await;
    for phone in [false, true] {
        let visitor = Visitor::of_shop(&organization).await;
        if phone {
            visitor.takes_a_phone().await;
        }
        visitor.opens().await;
        visitor
            .sees("the paper clip", "shown($('.attach:not(.camera)'))")
            .await;
        let files = json!([["a.txt", "text/plain", "x"], ["b.png", "image/png", 300]]);
        visitor.chooses(files).await;
        visitor.has_uploaded(json!(["a.txt", "b.png"])).await;
        visitor.says("look").await;
        visitor.is_answered("fine").await;
        visitor
            .sees("the image", "all('.file.image canvas').length === 1")
            .await;
        visitor.uploads_by("").await;
        visitor
            .chooses(json!([["c.txt", "text/plain", "x"], ["d.exe", "", "x"]]))
            .await;
        visitor
            .sees(
                "a running upload and a mistake",
                "shown($('.bar')) && shown($('.mistakes'))",
            )
            .await;
        let still = "host.shadowRoot.getAnimations().length === 0";
        visitor.sees("no movement", still).await;
        assert_eq!(visitor.breaks_rules().await, json!([]), "phone: {phone}");
        let small =
            "all('.panel button').filter(shown).map(element => element.getBoundingClientRect())
            .filter(box => box.width < 24 || box.height < 24).length";
        assert_eq!(visitor.read(small).await, 0, "large enough for a finger");
    }
}

#[tokio::test]
async fn touch_devices_offer_their_camera() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    assert_eq!(visitor.read("shown($('.camera'))").await, false);
    let touch = json!({"cmd": "Emulation.setTouchEmulationEnabled", "params": {"enabled": true}});
    visitor.browser.command("goog/cdp/execute", &touch).await;
    visitor.takes_a_phone().await;
    visitor.sees("the camera", "shown($('.camera'))").await;
    let input = "(({accept, multiple}) => [accept, multiple])($('input[capture=environment]'))";
    assert_eq!(visitor.read(input).await, json!(["image/*", false]));
    assert_eq!(visitor.read("$('.camera').ariaLabel").await, "Take a photo");
}

#[tokio::test]
async fn file_of_a_visitor_is_not_shown_to_another() {
    let organization = shop_with_files().await;
    let visitor = Visitor::with_files(&organization).await;
    visitor
        .chooses(json!([["secret.txt", "text/plain", "mine"]]))
        .await;
    visitor.has_uploaded(json!(["secret.txt"])).await;
    visitor.says("for you").await;
    visitor.is_answered("fine").await;
    let file = attachments(&organization).await[0]["fileId"].clone();
    let path = format!("/api/public/files/{}", file.as_str().unwrap());
    let values = "Object.fromEntries(Object.entries(localStorage).filter(([name]) => name.endsWith(':session') || name.endsWith(':secret')))";
    let stored = visitor.read(values).await;
    let secret = format!("switchboard:{}:secret", organization.shop());
    let client = Client::new(&organization.service().public_urls()[0]);
    let origin = visitor.read("location.origin").await;
    let origin = origin.as_str().unwrap();
    let token = async |secret: Option<&Value>| {
        let mut body = json!({"agentId": organization.shop()});
        if let Some(secret) = secret {
            body["visitorSecret"] = secret.clone();
        }
        let request = client.request(Method::POST, "/api/widget/token");
        let answer = send(request.header("origin", origin).json(&body)).await;
        answer.assert_status(200);
        client.with_key(answer.json()["token"].as_str().unwrap())
    };
    let get = async |client: Client| {
        let request = client.request(Method::GET, &path).header("origin", origin);
        send(request).await
    };
    let answer = get(token(Some(&stored[&secret])).await).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "mine"));
    let disposition = answer.header("content-disposition").unwrap_or_default();
    assert!(disposition.starts_with("attachment"), "{disposition}");
    let answer = get(token(None).await).await;
    answer.assert_problem(404, Some("NOT_FOUND"));
    // Another visitor who learned the name of the session sees nothing either.
    let other = Visitor::of_shop(&organization).await;
    let session = format!("switchboard:{}:session", organization.shop());
    let steal = "localStorage.setItem(...input);";
    other.run(steal, json!([session, stored[&session]])).await;
    other.browser.command("refresh", &json!({})).await;
    other.sees("the button", "shown($('.launcher'))").await;
    other.opens().await;
    other.says("hello").await;
    other
        .sees(
            "the end",
            "all('.row.user').length === 1 && !$('.send.stop')",
        )
        .await;
    assert_eq!(other.read(SENT).await, json!([[]]));
}

#[tokio::test]
async fn widget_without_files_loads_and_shows_nothing_of_them() {
    let organization = shop_saying("fine").await;
    let visitor = Visitor::in_window(&organization).await;
    visitor.says("hello").await;
    visitor.is_answered("fine").await;
    let loaded = "performance.getEntriesByType('resource').filter(({name}) => name.includes('/v1/widget/files.')).length";
    assert_eq!(visitor.read(loaded).await, 0);
    assert_eq!(
        visitor
            .read("all('.attach, .tray, .drop, [type=file]').length")
            .await,
        0
    );
    let dropped = "
        const transfer = new DataTransfer();
        transfer.items.add(new File(['x'], 'a.txt', {type: 'text/plain'}));
        return $('.log').dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: transfer}));";
    assert_eq!(visitor.run(dropped, Value::Null).await, true);
}
