//! What a browser shows to its person: sizes, schemes, pictures, and what it complained of.

use serde_json::{Value, json};

use super::Browser;

impl Browser {
    /// Shows the page in this size and scheme, without motion.
    pub(crate) async fn looks_like(&self, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.protocol("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"}
        ]);
        self.protocol("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// What is seen, as a PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let shot = self.protocol("Page.captureScreenshot", json!({"format": "png"})).await;
        BASE64_STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }

    /// What the browser has written to its console since it was asked last.
    pub(crate) async fn console(&self) -> Vec<String> {
        let entries = self.command("se/log", &json!({"type": "browser"})).await;
        let entries = entries.as_array().unwrap().iter();
        entries.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn protocol(&self, name: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", &json!({"cmd": name, "params": parameters})).await
    }
}
