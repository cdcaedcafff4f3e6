//! PATCH of a conversation: metadata, rating and visitor fields.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Organization, shop_saying};

async fn conversation() -> (Organization, String) {
    let organization = shop_saying("ok").await;
    organization.chat("s", "hi").await.complete();
    let path = organization.path("/conversations/s");
    (organization, path)
}

async fn metadata(organization: &Organization) -> Value {
    organization.history("s").await["metadata"].clone()
}

#[tokio::test]
async fn null_clears_a_field() {
    let (organization, path) = conversation().await;
    let client = organization.client();
    let full = json!({"visitorEmail": "ada@example.org", "visitorName": "Ada", "feedback": "good", "metadata": {"plan": "pro", "page": "/"}});
    assert_eq!(client.patch(&path, &full).await.status, 200);
    let clearing = json!({"visitorEmail": null, "visitorName": null, "feedback": null, "metadata": {"plan": null}});
    assert_eq!(client.patch(&path, &clearing).await.status, 200);
    let metadata = metadata(&organization).await;
    for key in ["visitorEmail", "visitorName", "feedback", "plan"] {
        assert!(
            metadata.get(key).is_none(),
            "absent keys are omitted: {key} in {metadata}"
        );
    }
    assert_eq!(metadata["page"], "/", "a key that was not named stays");
}

#[tokio::test]
async fn metadata_merges_key_by_key() {
    let (organization, path) = conversation().await;
    let client = organization.client();
    client
        .patch(&path, &json!({"metadata": {"a": {"x": 1}, "b": 1}}))
        .await;
    client
        .patch(&path, &json!({"metadata": {"a": {"y": 2}, "c": 3}}))
        .await;
    let metadata = metadata(&organization).await;
    assert_eq!(metadata["a"], json!({"y": 2}));
    assert_eq!((&metadata["b"], &metadata["c"]), (&json!(1), &json!(3)));
}

#[tokio::test]
async fn merged_metadata_never_exceeds_the_limit_of_one_request() {
    let (organization, path) = conversation().await;
    let client = organization.client();
    let keys = |from: u32, to: u32| {
        let metadata: serde_json::Map<String, Value> = (from..to)
            .map(|key| (format!("k{key}"), key.into()))
            .collect();
        json!({"metadata": metadata})
    };
    assert_eq!(client.patch(&path, &keys(0, 40)).await.status, 200);
    let refused = client.patch(&path, &keys(40, 60)).await;
    assert_eq!(
        refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "metadata"
    );
    assert_eq!(
        client.patch(&path, &keys(30, 50)).await.status,
        200,
        "ten of them are there already"
    );
    let mut chat = keys(50, 60);
    (chat["message"], chat["sessionId"]) = ("hi".into(), "s".into());
    let refused = Answer::read(organization.open_chat(&chat).await)
        .await
        .unwrap();
    assert_eq!(
        refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "metadata"
    );
    for name in ["visitorName", "feedback"] {
        let refused = client
            .patch(&path, &json!({name: "x".repeat(100_000)}))
            .await;
        assert_eq!(
            refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
            name
        );
    }
}

#[tokio::test]
async fn reserved_keys_inside_metadata_are_dropped() {
    let (organization, path) = conversation().await;
    let forged = json!({"metadata": {"visitorId": "x", "visitorEmail": "x", "visitorName": "x", "source": "x", "ipAddress": "x", "kept": 1}});
    let answer = organization.client().patch(&path, &forged).await;
    assert_eq!(
        answer.json(),
        json!({"success": true, "updated": {"metadata": {"kept": 1}}})
    );
    let metadata = metadata(&organization).await;
    assert_eq!(metadata["source"], "api");
    assert_ne!(metadata["ipAddress"], "x");
    assert!(metadata.get("visitorId").is_none(), "{metadata}");
}

#[tokio::test]
async fn one_invalid_field_changes_nothing() {
    let (organization, path) = conversation().await;
    let client = organization.client();
    let before = metadata(&organization).await;
    let table = [
        (
            json!({"visitorName": "Eve", "rating": 9}),
            "INVALID_RATING",
            None,
        ),
        (
            json!({"visitorName": "Eve", "visitorEmail": "no address"}),
            "INVALID_REQUEST_DATA",
            Some("visitorEmail"),
        ),
        (
            json!({"visitorName": 7}),
            "INVALID_REQUEST_DATA",
            Some("visitorName"),
        ),
        (
            json!({"visitorName": "Eve", "feedback": []}),
            "INVALID_REQUEST_DATA",
            Some("feedback"),
        ),
        (
            json!({"visitorName": "Eve", "metadata": "text"}),
            "INVALID_REQUEST_DATA",
            Some("metadata"),
        ),
    ];
    for (changes, code, param) in table {
        let problem = client
            .patch(&path, &changes)
            .await
            .assert_problem(400, Some(code));
        if param.is_some() {
            assert_eq!(problem["param"].as_str(), param, "{problem}");
        }
    }
    assert_eq!(metadata(&organization).await, before);
}

#[tokio::test]
async fn body_that_is_not_a_json_object_is_refused() {
    let (organization, path) = conversation().await;
    for (body, code) in [
        ("{", "INVALID_JSON"),
        ("", "INVALID_JSON"),
        ("[]", "INVALID_REQUEST_DATA"),
    ] {
        let request = organization
            .client()
            .request(Method::PATCH, &path)
            .header("content-type", "application/json");
        let answer = Answer::read(request.body(body).send().await.unwrap())
            .await
            .unwrap();
        answer.assert_problem(400, Some(code));
    }
}

#[tokio::test]
async fn rating_must_be_a_json_number_from_1_to_5() {
    let (organization, path) = conversation().await;
    let client = organization.client();
    let bad = [
        json!("5"),
        json!(true),
        Value::Null,
        json!([5]),
        json!({}),
        json!(-1),
        json!(0),
        json!(0.99),
        json!(5.01),
        json!(6),
    ];
    for rating in bad {
        let answer = client.patch(&path, &json!({"rating": rating})).await;
        answer.assert_problem(400, Some("INVALID_RATING"));
    }
    for good in [json!(1.0), json!(3.5), json!(5)] {
        let answer = client.patch(&path, &json!({"rating": good})).await;
        answer.assert_status(200);
        assert_eq!(metadata(&organization).await["rating"], good);
    }
}
