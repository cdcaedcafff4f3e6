//! Section "6. PATCH /api/public/agents/{agentId}/conversations/{sessionId}".

use serde_json::{Value, json};

use crate::support::{Answer, Endpoint, Endpoints, Organization, shop_saying};

struct UpdateAnswer {
    organization: Organization,
    path: String,
}

impl UpdateAnswer {
    async fn prepare() -> Self {
        let organization = shop_saying("ok").await;
        organization.chat("s", "hi").await.complete();
        let path = organization.path("/conversations/s");
        Self { organization, path }
    }

    async fn patch(&self, changes: &Value) -> Answer {
        self.organization.client().patch(&self.path, changes).await
    }

    async fn metadata(&self) -> Value {
        self.organization
            .client()
            .history(self.organization.shop(), "s")
            .await["metadata"]
            .clone()
    }
}

#[tokio::test]
async fn all_fields_are_optional() {
    let updated = UpdateAnswer::prepare().await;
    let before = updated.metadata().await;
    let answer = updated.patch(&json!({})).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"success": true, "updated": {}}))
    );
    assert_eq!(updated.metadata().await, before);
}

#[tokio::test]
async fn only_supplied_fields_are_updated() {
    let updated = UpdateAnswer::prepare().await;
    let everything = json!({
        "visitorEmail": "ada@example.org", "visitorName": "Ada", "rating": 4, "feedback": "good", "metadata": {"a": 1}
    });
    assert_eq!(updated.patch(&everything).await.status, 200);
    let mut expected = updated.metadata().await;
    assert_eq!(updated.patch(&json!({"rating": 2})).await.status, 200);
    expected["rating"] = json!(2);
    assert_eq!(updated.metadata().await, expected);
}

#[tokio::test]
async fn visitor_email_must_have_a_valid_format() {
    let updated = UpdateAnswer::prepare().await;
    for bad in [
        "none",
        "@example.org",
        "ada@",
        "ada lovelace@example.org",
        "",
    ] {
        let problem = updated
            .patch(&json!({"visitorEmail": bad}))
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
        assert_eq!(problem["param"], "visitorEmail", "{bad}");
    }
    assert_eq!(
        updated
            .patch(&json!({"visitorEmail": "ada@example.org"}))
            .await
            .status,
        200
    );
    assert_eq!(updated.metadata().await["visitorEmail"], "ada@example.org");
}

#[tokio::test]
async fn visitor_name_and_feedback_are_text() {
    let updated = UpdateAnswer::prepare().await;
    assert_eq!(
        updated
            .patch(&json!({"visitorName": "Åda ☕", "feedback": "well\ndone"}))
            .await
            .status,
        200
    );
    let metadata = updated.metadata().await;
    assert_eq!(
        (&metadata["visitorName"], &metadata["feedback"]),
        (&json!("Åda ☕"), &json!("well\ndone"))
    );
    for field in ["visitorName", "feedback"] {
        updated
            .patch(&json!({field: 7}))
            .await
            .assert_problem(400, Some("INVALID_REQUEST_DATA"));
    }
}

#[tokio::test]
async fn rating_is_a_number_between_1_and_5() {
    let updated = UpdateAnswer::prepare().await;
    for good in [json!(1), json!(3.5), json!(5)] {
        assert_eq!(
            updated.patch(&json!({"rating": good})).await.status,
            200,
            "{good}"
        );
        assert_eq!(updated.metadata().await["rating"], good);
    }
    for bad in [json!(0), json!(0.99), json!(5.01), json!(6)] {
        updated
            .patch(&json!({"rating": bad}))
            .await
            .assert_problem(400, Some("INVALID_RATING"));
    }
}

#[tokio::test]
async fn metadata_is_arbitrary_key_value_json() {
    let updated = UpdateAnswer::prepare().await;
    let attached = json!({"plan": "pro", "depth": {"a": [1, null, true]}, "count": 7});
    assert_eq!(
        updated.patch(&json!({"metadata": attached})).await.status,
        200
    );
    let metadata = updated.metadata().await;
    for (key, value) in attached.as_object().unwrap() {
        assert_eq!(&metadata[key], value, "{metadata}");
    }
}

#[tokio::test]
async fn response_has_success_and_the_updated_values() {
    let updated = UpdateAnswer::prepare().await;
    let changes = json!({
        "visitorEmail": "ada@example.org", "visitorName": "Ada", "rating": 4.5, "feedback": "good",
        "metadata": {"plan": "pro", "depth": {"a": [1, null, true]}}
    });
    let answer = updated.patch(&changes).await;
    answer.assert_status(200);
    assert_eq!(answer.json(), json!({"success": true, "updated": changes}));
}

#[tokio::test]
async fn errors_are_the_five_listed_ones() {
    let endpoints = Endpoints::prepare().await;
    let listed = [
        (400, "INVALID_RATING"),
        (400, "INVALID_JSON"),
        (401, "MISSING_API_KEY"),
        (404, "AGENT_NOT_FOUND"),
        (404, "CONVERSATION_NOT_FOUND"),
    ];
    endpoints
        .assert_errors(Endpoint::ConversationUpdate, &listed)
        .await;
}
