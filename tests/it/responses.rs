//! Properties of every response on every route.

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::support::{
    Answer, Endpoint, Endpoints, OrganizationDocument, Reply, Script, send, shop_saying, shop_with,
};

#[tokio::test]
async fn all_six_endpoints_succeed_with_200() {
    let endpoints = Endpoints::prepare().await;
    for endpoint in Endpoint::ALL {
        let answer = endpoints.succeed(endpoint).await;
        assert_eq!(answer.status, 200, "{endpoint:?}: {}", answer.text);
    }
}

#[tokio::test]
async fn every_error_of_every_route_has_the_same_shape() {
    let organization = shop_with(Script::refuses(400)).await;
    let (client, nobody) = (organization.client(), organization.service().client());
    let chat = organization.path("/chat");
    let hi = json!({"message": "hi", "sessionId": "s"});
    let table: [(RequestBuilder, u16, Option<&str>); 9] = [
        (nobody.request(Method::GET, "/"), 404, Some("NOT_FOUND")),
        (
            nobody.request(Method::GET, "/api/public/nothing"),
            404,
            Some("NOT_FOUND"),
        ),
        (
            nobody.request(Method::DELETE, &chat),
            405,
            Some("METHOD_NOT_ALLOWED"),
        ),
        (
            nobody.request(Method::POST, &chat),
            401,
            Some("MISSING_API_KEY"),
        ),
        (
            client
                .request(Method::POST, &chat)
                .header("content-type", "text/plain")
                .body("x"),
            415,
            Some("UNSUPPORTED_MEDIA_TYPE"),
        ),
        (
            client
                .request(Method::POST, &chat)
                .body("x".repeat(300_000)),
            413,
            Some("PAYLOAD_TOO_LARGE"),
        ),
        (
            client.request(Method::POST, &chat).json(&hi),
            502,
            Some("MODEL_ERROR"),
        ),
        (
            client
                .request(Method::POST, "/api/public/teams/nope/chat")
                .json(&hi),
            404,
            None,
        ),
        (
            nobody
                .request(Method::POST, "/api/admin/apply")
                .json(&json!({})),
            401,
            Some("MISSING_API_KEY"),
        ),
    ];
    for (request, status, code) in table {
        send(request).await.assert_problem(status, code);
    }
}

#[tokio::test]
async fn every_response_has_a_unique_request_id_found_in_the_logs() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    let path = organization.path("/chat");
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let answers = [
            client.get("/nothing").await,
            client.post(&path, &json!(null)).await,
            client
                .post(&path, &json!({"message": "hi", "sessionId": "s"}))
                .await,
            organization.chat_json("s", "hi").await,
            client.get(&organization.path("")).await,
        ];
        for answer in answers {
            let id = answer
                .header("x-request-id")
                .expect("X-Request-Id")
                .to_owned();
            assert!(id.starts_with("req_"), "{id}");
            assert!(ids.insert(id), "an id twice");
        }
    }
    crate::support::eventually(
        "the logs hold every id",
        crate::support::PATIENCE,
        async || {
            let logs = organization.service().logs();
            ids.iter()
                .all(|id| logs.contains(id.as_str()))
                .then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn ids_are_prefixed_and_at_most_64_ascii_characters() {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .team(
            "front",
            json!({"members": [{"agent": "shop", "specialization": "all"}]}),
        )
        .apply_to_shared()
        .await;
    let reply = organization.chat("s", "hi").await;
    let history = organization.history("s").await;
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let ids = [
        ("org_", organization.id.clone()),
        ("agt_", organization.shop().to_owned()),
        ("team_", organization.team("front").to_owned()),
        (
            "key_",
            text(&organization.answer["organizations"][0]["keys"][0]["id"]),
        ),
        ("conv_", reply.required_header("x-conversation-id")),
        ("msg_", reply.required_header("x-message-id")),
        ("msg_", text(&history["messages"][0]["id"])),
        ("req_", reply.required_header("x-request-id")),
    ];
    for (prefix, id) in ids {
        assert!(
            id.starts_with(prefix) && id.len() <= 64 && id.is_ascii(),
            "{id}"
        );
    }
}

#[tokio::test]
async fn every_reply_format_passes_proxies_unbuffered_uncompressed() {
    let organization = shop_saying("a reply in three shapes").await;
    let path = organization.path("/chat");
    for accept in ["text/plain", "application/json", "text/event-stream"] {
        let request = organization
            .client()
            .request(Method::POST, &path)
            .header("accept", accept);
        let request = request.header("accept-encoding", "gzip, br, deflate, zstd");
        let body = json!({"message": "hi", "sessionId": accept});
        let reply = Reply::read(request.json(&body).send().await.unwrap()).await;
        assert_eq!(reply.status, 200, "{accept}");
        assert!(reply.required_header("content-type").starts_with(accept));
        assert_eq!(reply.required_header("x-accel-buffering"), "no", "{accept}");
        assert_eq!(
            reply.required_header("cache-control"),
            "no-store, no-transform",
            "{accept}"
        );
        assert_eq!(reply.header("content-encoding"), None, "{accept}");
        assert!(
            reply.required_header("x-message-id").starts_with("msg_"),
            "{accept}"
        );
        assert!(
            reply
                .required_header("x-conversation-id")
                .starts_with("conv_"),
            "{accept}"
        );
    }
}

#[tokio::test]
async fn text_and_json_name_the_model_and_the_generation() {
    let organization = shop_saying("ok").await;
    let text = organization.chat("s", "hi").await.into_answer();
    let json = organization.chat_json("s", "hi").await;
    for answer in [text, json] {
        assert_eq!(answer.header("x-model"), Some(organization.model.as_str()));
        assert!(generation(&answer) > 0, "{:?}", answer.headers);
    }
}

fn generation(answer: &Answer) -> u64 {
    answer
        .header("x-reply-generation")
        .expect("X-Reply-Generation")
        .parse()
        .expect("a number")
}
