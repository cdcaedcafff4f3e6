//! Section "6. PATCH /api/public/agents/{agentId}/conversations/{sessionId}".

use serde_json::{Value, json};

use crate::support::{Answer, Organization, shop_saying};

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
