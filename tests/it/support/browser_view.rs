//! Viewport sizes, color schemes, screenshots and console messages of a browser.

use std::path::Path;

use serde_json::{Value, json};

use super::Browser;

/// Views of desktop and phone, light and dark: name, width and height in pixels, and color scheme.
pub(crate) const VIEWS: [(&str, u32, u32, &str); 4] = [
    ("desktop-light", 1440, 900, "light"),
    ("desktop-dark", 1440, 900, "dark"),
    ("phone-light", 390, 844, "light"),
    ("phone-dark", 390, 844, "dark"),
];
const AXE: &str = include_str!("../browser/assets/axe.min.js");
/// Runs rules of axe on the page, all if there is no list, and returns its findings with their
/// elements.
const FINDINGS: &str = "
    await document.fonts.ready;
    const options = {resultTypes: ['violations'], ...(input && {runOnly: input})};
    const {violations} = await axe.run(document, options);
    const found = violations.flatMap(rule => rule.nodes.map(node => rule.id + ': ' + node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? '')));
    if (document.documentElement.scrollWidth > innerWidth + 1) found.push('scrolls sideways: ' + document.documentElement.scrollWidth);
    return found;";

impl Browser {
    /// Sets window size and color scheme, with reduced motion.
    pub(crate) async fn looks_like(&self, width: u32, height: u32, scheme: &str) {
        // First, because an existing layout keeps its scroll bars until its size changes.
        self.protocol("Emulation.setScrollbarsHidden", json!({"hidden": true}))
            .await;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.protocol("Emulation.setDeviceMetricsOverride", size)
            .await;
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"}
        ]);
        self.protocol(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        )
        .await;
    }

    /// Returns axe findings of the visible page and sideways scrolling, each prefixed with `name`,
    /// and saves a screenshot. A dark page is checked for its colors only.
    pub(crate) async fn findings(&self, name: &str) -> Vec<String> {
        // Half a megabyte, which a page needs once for all views.
        if self.run("return !window.axe", Value::Null).await == true {
            self.run(&format!("{AXE}; window.axe = axe;"), Value::Null)
                .await;
        }
        let rules = if name.ends_with("-dark") {
            json!(["color-contrast", "link-in-text-block"])
        } else {
            Value::Null
        };
        let found = self.run(FINDINGS, rules).await;
        self.keep_picture(name).await;
        let found = found.as_array().unwrap().iter();
        found
            .map(|finding| format!("{name}: {}", finding.as_str().unwrap()))
            .collect()
    }

    /// Saves a screenshot if `SWITCHBOARD_SCREENSHOTS` names a folder.
    pub(crate) async fn keep_picture(&self, name: &str) {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let Some(folder) = std::env::var_os("SWITCHBOARD_SCREENSHOTS") else {
            return;
        };
        let shot = self
            .protocol(
                "Page.captureScreenshot",
                json!({"format": "webp", "quality": 85}),
            )
            .await;
        let picture = BASE64_STANDARD
            .decode(shot["data"].as_str().unwrap())
            .unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.webp")), picture).unwrap();
    }

    /// Runs a script like [`Browser::run`] in a frame of the page, also of another origin.
    pub(crate) async fn run_in_frame(&self, selector: &str, body: &str, input: Value) -> Value {
        let frame = self
            .command(
                "element",
                &json!({"using": "css selector", "value": selector}),
            )
            .await;
        self.command("frame", &json!({ "id": frame })).await;
        let value = self.run(body, input).await;
        self.command("frame", &json!({"id": null})).await;
        value
    }

    /// Returns the console messages since the last call.
    pub(crate) async fn console(&self) -> Vec<String> {
        let entries = self.command("se/log", &json!({"type": "browser"})).await;
        let entries = entries.as_array().unwrap().iter();
        entries
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Sends a command of the DevTools protocol.
    pub(crate) async fn protocol(&self, name: &str, parameters: Value) -> Value {
        self.command(
            "goog/cdp/execute",
            &json!({"cmd": name, "params": parameters}),
        )
        .await
    }
}
