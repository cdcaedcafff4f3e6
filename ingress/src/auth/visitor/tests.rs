//! Tests of visitor tokens over embedded backends: issuing, access, isolation and limits.

mod issue;
mod limits;
mod use_of_tokens;

use serde_json::{Value, json};
use switchboard_schemas::{
    time::Timestamp,
    visitor_token::{CredentialKind, OriginHash, VisitorClaims, new_visitor_id},
};

use crate::testing::{Answer, World, agent_id, org_id, secret};

const TOKEN_ROUTE: &str = "/api/widget/token";
const ORIGIN: &str = "https://shop.example";
const CHAT: &str = r#"{"message":"hi","sessionId":"s"}"#;

impl World {
    /// Requests a token like a page, with these fields beside the agent id.
    async fn ask_for_token(&self, headers: &[(&str, &str)], fields: Value) -> Answer {
        let mut body = json!({ "agentId": agent_id() });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        self.send_with("POST", TOKEN_ROUTE, headers, body.to_string())
            .await
    }

    /// Returns the token response for a new visitor of a page.
    async fn new_visitor(&self) -> Value {
        let answer = self.ask_for_token(&[("origin", ORIGIN)], json!({})).await;
        answer.expect(200)
    }

    /// Sends a request of a page with a token.
    async fn send_as(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("origin", ORIGIN),
        ];
        self.send_with(method, path, &headers, body.to_owned())
            .await
    }
}

/// Returns the claims of a page's token that lives for one minute.
fn claims() -> VisitorClaims {
    VisitorClaims {
        org_id: org_id(),
        agent_id: agent_id(),
        visitor_id: new_visitor_id(),
        key_id: None,
        origin: Some(OriginHash::from_origin(
            &secret(),
            "https://shop.example:443",
        )),
        expires_at: Timestamp::now().after(std::time::Duration::from_secs(60)),
    }
}

fn token_of(claims: &VisitorClaims) -> String {
    claims
        .sign(CredentialKind::Token, &secret())
        .expose()
        .to_owned()
}

fn text<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer[field]
        .as_str()
        .unwrap_or_else(|| panic!("no {field} in {answer}"))
}

fn problem(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}
