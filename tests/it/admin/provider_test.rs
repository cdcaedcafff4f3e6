//! The test of a provider's connection: what works, what was adapted, and what the provider said.

use serde_json::{Value, json};

use crate::support::{Organization, OrganizationDocument, Raw, Script, shop_with};

/// Tests the provider of an organization as an administrator.
async fn test_provider(organization: &Organization) -> Value {
    let admin = organization.service().admin();
    let providers = admin.get(&organization.admin_path("/providers")).await;
    providers.assert_status(200);
    let id = providers.json()["items"][0]["id"].clone();
    let path = organization.admin_path(&format!("/providers/{}/test", id.as_str().unwrap()));
    let answer = admin.post(&path, &json!({})).await;
    answer.assert_status(200);
    answer.json()
}

fn outcomes(report: &Value) -> Vec<&str> {
    let steps = report["steps"].as_array().unwrap().iter();
    steps
        .map(|step| step["outcome"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn working_provider_is_adapted_to_and_reported() {
    let call = Script::raw(vec![
        Raw::call(0, "search_products", &json!({"query": "lamp"})),
        Raw::Finish("tool_calls"),
    ]);
    let error = json!({"error": {"message": "use max_completion_tokens", "param": "max_tokens"}});
    let refused = Script::answer(400, &[("content-type", "application/json")], error);
    let script = Script::says("OK")
        .when(|body| body.get("max_tokens").is_some(), refused)
        .when(|body| body.get("tools").is_some(), call);
    let organization = shop_with(script).await;
    let report = test_provider(&organization).await;
    assert_eq!(report["works"], true, "{report}");
    assert_eq!(
        outcomes(&report),
        ["skipped", "worked", "worked"],
        "{report}"
    );
    assert_eq!(report["leftOut"], json!(["max_tokens"]));
}

#[tokio::test]
async fn refused_key_is_reported_in_the_words_of_the_provider() {
    let organization = shop_with(Script::refuses(401)).await;
    let report = test_provider(&organization).await;
    assert_eq!(outcomes(&report), ["skipped", "failed", "skipped"]);
    let step = &report["steps"][1];
    assert_eq!(step["detail"], "The provider refused the key.");
    assert_eq!(
        step["providerError"],
        json!({"status": 401, "message": "refused by script", "retryAfterMs": null})
    );
}

#[tokio::test]
async fn visitor_sees_nothing_of_what_the_provider_says() {
    let error = json!({"error": {"message": "no money left for key sk-test, said the bank"}});
    let headers = [("content-type", "application/json"), ("retry-after", "90")];
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .apply_to_shared()
        .await;
    organization.script(Script::answer(429, &headers, error));
    let answer = organization.chat_json("s", "hi").await;
    answer.assert_problem(503, Some("UNAVAILABLE"));
    assert_eq!(answer.header("retry-after"), Some("90"));
    assert!(!answer.text.contains("bank"), "{}", answer.text);
    let report = test_provider(&organization).await;
    let said = report["steps"][1]["providerError"]["message"].as_str();
    assert_eq!(said, Some("no money left for key …, said the bank"));
}
