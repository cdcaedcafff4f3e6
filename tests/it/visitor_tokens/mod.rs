//! Visitor tokens: the credentials that pages hold instead of a key.

mod access;
mod lifecycle;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Organization, Reply, send};

const TOKEN_ROUTE: &str = "/api/widget/token";
const PAGE: &str = "https://shop.example";

/// A visitor of a page with a token, connected to one ingress.
struct Visitor {
    client: Client,
    issued: Value,
    agent: String,
}

impl Visitor {
    /// Issues a token for a new visitor of the agent named `shop`.
    async fn comes_to(client: &Client, organization: &Organization) -> Self {
        Self::asks(client, organization.shop(), json!({})).await
    }

    async fn asks(client: &Client, agent: &str, fields: Value) -> Self {
        let answer = ask(client, agent, Some(PAGE), fields).await;
        answer.assert_status(200);
        let issued = answer.json();
        let client = client.with_key(issued["token"].as_str().unwrap());
        Self {
            client,
            issued,
            agent: agent.to_owned(),
        }
    }

    /// Returns the same visitor connected to another ingress.
    fn at(&self, url: &str) -> Self {
        let client = Client::new(url).with_key(self.issued["token"].as_str().unwrap());
        Self {
            client,
            issued: self.issued.clone(),
            agent: self.agent.clone(),
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/public/agents/{}{rest}", self.agent)
    }

    async fn chat(&self, session: &str, message: &str) -> Reply {
        let body = json!({"message": message, "sessionId": session});
        Reply::read(
            self.as_page(Method::POST, &self.path("/chat"))
                .json(&body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    async fn get(&self, path: &str) -> Answer {
        send(self.as_page(Method::GET, path)).await
    }

    fn as_page(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, path).header("origin", PAGE)
    }
}

async fn ask(client: &Client, agent: &str, origin: Option<&str>, fields: Value) -> Answer {
    let mut body = json!({"agentId": agent});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let request = client.request(Method::POST, TOKEN_ROUTE).json(&body);
    send(
        origin
            .into_iter()
            .fold(request, |request, origin| request.header("origin", origin)),
    )
    .await
}
