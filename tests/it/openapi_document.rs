//! The OpenAPI document compared with the service: its examples are sent, and every response is
//! checked against it.

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder, header::HeaderMap};
use serde_json::{Map, Value, json};

use crate::support::{
    Client, Events, Organization, OrganizationDocument, Reply, Script, SharedService, send,
};

const SESSION: &str = "documented";
/// A form with a file.
const FORM: &str = "multipart/form-data; boundary=form";
const UPLOAD: &str = "--form\r\nContent-Disposition: form-data; name=\"file\"; filename=\"notes.txt\"\r\n\
    Content-Type: text/plain\r\n\r\nnotes\r\n--form--\r\n";
/// Headers that need no description in the document: plain HTTP, CORS and browser security.
const COMMON_HEADERS: [&str; 16] = [
    "content-type",
    "content-length",
    "transfer-encoding",
    "date",
    "vary",
    "cache-control",
    "connection",
    "x-accel-buffering",
    "x-content-type-options",
    "referrer-policy",
    "content-security-policy",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "strict-transport-security",
    "permissions-policy",
    "cross-origin-resource-policy",
];

/// The OpenAPI document of the service.
struct Document(Value);

struct Operation<'a> {
    id: &'a str,
    method: Method,
    path: &'a str,
    value: &'a Value,
}

impl Operation<'_> {
    fn is_upload(&self) -> bool {
        self.value["requestBody"]["content"]["multipart/form-data"].is_object()
    }
}

impl Document {
    async fn read(client: &Client) -> Self {
        let answer = client.get("/api/public/openapi.json").await;
        answer.assert_status(200);
        Self(answer.json())
    }

    fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().unwrap();
        let all = paths
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |one| (path, one)));
        let all = all.map(|(path, (method, value))| Operation {
            id: value["operationId"].as_str().unwrap(),
            method: method.to_uppercase().parse().unwrap(),
            path,
            value,
        });
        all.collect()
    }

    fn operation(&self, id: &str) -> Operation<'_> {
        self.operations()
            .into_iter()
            .find(|operation| operation.id == id)
            .unwrap_or_else(|| panic!("no {id}"))
    }

    #[track_caller]
    fn check(&self, what: &str, schema: &Value, instance: &Value) {
        let whole = json!({ "allOf": [schema], "components": self.0["components"] });
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&whole)
            .unwrap();
        let errors: Vec<_> = validator
            .iter_errors(instance)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}\n{instance}");
    }

    /// Compares status, media type, headers and body of a response with the document.
    #[track_caller]
    fn check_answer(
        &self,
        operation: &Operation<'_>,
        status: u16,
        headers: &HeaderMap,
        body: &str,
    ) {
        let what = format!("{} {status}", operation.id);
        let response = &operation.value["responses"][status.to_string()];
        assert!(
            response.is_object(),
            "{what} is not in the document: {body}"
        );
        for name in headers.keys().map(reqwest::header::HeaderName::as_str) {
            let described = response["headers"].as_object().unwrap();
            let known = COMMON_HEADERS.contains(&name)
                || described
                    .keys()
                    .any(|known| known.eq_ignore_ascii_case(name));
            assert!(
                known,
                "{what} has a header that is not in the document: {name}"
            );
        }
        assert!(headers.contains_key("x-request-id"), "{what}");
        let media_type = headers["content-type"]
            .to_str()
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let schema = &response["content"][media_type]["schema"];
        assert!(
            schema.is_object(),
            "{what} is not {media_type} in the document"
        );
        let is_json = media_type.ends_with("json");
        let instance = if is_json {
            serde_json::from_str(body).unwrap()
        } else {
            Value::from(body)
        };
        self.check(&what, schema, &instance);
    }
}

/// Values for the placeholders of the document.
struct Ids {
    agent: String,
    team: String,
    message: String,
    file: String,
}

impl Ids {
    fn fill(&self, path: &str) -> String {
        let path = path
            .replace("{agentId}", &self.agent)
            .replace("{teamId}", &self.team);
        let path = path.replace("{fileId}", &self.file);
        path.replace("{messageId}", &self.message)
            .replace("{sessionId}", SESSION)
    }

    /// Creates a request to an operation with the examples of its parameters outside the path.
    fn request(
        &self,
        client: &Client,
        operation: &Operation<'_>,
        body: Option<&Value>,
    ) -> RequestBuilder {
        let mut request = client.request(operation.method.clone(), &self.fill(operation.path));
        for parameter in operation.value["parameters"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
            let text = example
                .as_str()
                .map_or_else(|| example.to_string(), str::to_owned);
            // Different requests need different idempotency keys.
            let is_fit =
                !example.is_null() && !["Idempotency-Key", "Last-Event-ID"].contains(&name);
            match parameter["in"].as_str().unwrap() {
                "query" if is_fit => request = request.query(&[(name, text)]),
                "header" if is_fit => request = request.header(name, text),
                _ => {}
            }
        }
        match body {
            Some(body) => request.json(&self.fill_body(body)),
            None if operation.is_upload() => request.header("content-type", FORM).body(UPLOAD),
            None => request,
        }
    }

    /// Returns the example body with the agent id of this test.
    fn fill_body(&self, body: &Value) -> Value {
        let mut body = body.clone();
        if let Some(agent) = body.get_mut("agentId") {
            *agent = self.agent.as_str().into();
        }
        body
    }
}

async fn world() -> (Organization, Ids) {
    let product = json!({"title": "Lamp", "price": "$9", "image": "https://shop.example/l.png", "url": "https://shop.example/l"});
    let organization = OrganizationDocument::new()
        .shop(json!({"features": {"enableFileUpload": true}, "ecommerce": {"enabled": true, "products": [product]}}))
        .team("front", json!({"defaultAgent": "shop", "members": [{"agent": "shop", "specialization": "everything"}]}))
        .apply_to_shared().await;
    organization.script(Script::says("Yes, we ship to Norway."));
    let reply = organization.chat(SESSION, "Do you ship?").await;
    reply.complete();
    let (agent, team) = (
        organization.shop().to_owned(),
        organization.team("front").to_owned(),
    );
    let message = reply.required_header("x-message-id");
    let upload = organization
        .client()
        .request(Method::POST, &organization.path("/files"))
        .header("content-type", FORM)
        .body(UPLOAD);
    let file = send(upload).await.json()["fileId"]
        .as_str()
        .unwrap()
        .to_owned();
    (
        organization,
        Ids {
            agent,
            team,
            message,
            file,
        },
    )
}

fn bodies<'a>(operation: &Operation<'a>) -> Vec<Option<&'a Value>> {
    let examples =
        operation.value["requestBody"]["content"]["application/json"]["examples"].as_object();
    examples.map_or_else(
        || vec![None],
        |examples| {
            examples
                .values()
                .map(|example| Some(&example["value"]))
                .collect()
        },
    )
}

#[tokio::test]
async fn every_example_is_answered_as_documented() {
    let (organization, ids) = world().await;
    let client = organization.client();
    let document = Document::read(&client).await;
    for operation in document.operations() {
        let status = if operation.is_upload() { "201" } else { "200" };
        let good = operation.value["responses"][status]["content"]
            .as_object()
            .unwrap();
        // A file has one type, that of the upload.
        let types = good
            .keys()
            .filter(|kind| operation.id != "getFile" || *kind == "text/plain");
        for media_type in types {
            for body in bodies(&operation) {
                let request = ids
                    .request(&client, &operation, body)
                    .header("accept", media_type);
                let reply = Reply::read(request.send().await.unwrap()).await;
                assert_eq!(reply.status.to_string(), status, "{}", reply.text());
                let text = reply.text();
                document.check_answer(&operation, reply.status, &reply.headers, &text);
                let is_streamed = body.is_none_or(|body| body["stream"].is_null());
                let answered = reply.required_header("content-type");
                assert!(
                    !is_streamed || answered.starts_with(media_type.as_str()),
                    "{}: {answered}",
                    operation.id
                );
            }
        }
    }
}

#[tokio::test]
async fn asynchronous_requests_are_answered_as_documented() {
    let (organization, ids) = world().await;
    let client = organization.client();
    let document = Document::read(&client).await;
    for id in ["chatWithAgent", "chatWithTeam"] {
        let operation = document.operation(id);
        let request = ids
            .request(&client, &operation, bodies(&operation)[0])
            .header("prefer", "respond-async");
        let reply = Reply::read(request.send().await.unwrap()).await;
        assert_eq!(reply.status, 202);
        document.check_answer(&operation, 202, &reply.headers, &reply.text());
    }
}

#[tokio::test]
async fn every_event_is_as_documented() {
    let (organization, ids) = world().await;
    let client = organization.client();
    let document = Document::read(&client).await;
    let schemas: Map<String, Value> = [
        "start:StartEvent",
        "delta:DeltaEvent",
        "ui:UiSpec",
        "tool:ToolEvent",
        "done:DoneEvent",
        "error:Problem",
    ]
    .iter()
    .filter_map(|pair| pair.split_once(':'))
    .map(|(event, schema)| {
        (
            event.to_owned(),
            json!({ "$ref": format!("#/components/schemas/{schema}") }),
        )
    })
    .collect();
    organization.script_for("refuse", Script::says("").refuses_times(9, 400, None));
    let mut seen = BTreeSet::new();
    for message in ["Show me a lamp", "[[refuse]]"] {
        let events = client.chat_events(&ids.agent, "events", message).await;
        assert!(!events.events.is_empty() && events.ended_cleanly);
        check_events(&document, &schemas, &events);
        seen.extend(events.events.into_iter().map(|(name, ..)| name));
    }
    for name in ["start", "delta", "done", "error"] {
        assert!(seen.contains(name), "{name} is not among {seen:?}");
    }
}

fn check_events(document: &Document, schemas: &Map<String, Value>, events: &Events) {
    for (name, _, data) in &events.events {
        let schema = schemas
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the document"));
        document.check(name, schema, data);
    }
}

#[tokio::test]
async fn errors_are_as_documented() {
    let (organization, ids) = world().await;
    let (client, nobody) = (organization.client(), organization.service().client());
    let document = Document::read(&client).await;
    let strange = Ids {
        agent: "agt_x".into(),
        team: "team_x".into(),
        message: "msg_x".into(),
        file: "file_x".into(),
    };
    for operation in document
        .operations()
        .into_iter()
        .filter(|operation| operation.id != "getOpenApi")
    {
        let body = bodies(&operation)[0];
        let bad = body.map(|_| json!([]));
        for request in [
            ids.request(&nobody, &operation, body),
            ids.request(&client.with_key("svc_live_wrong"), &operation, body),
            strange.request(&client, &operation, body),
        ]
        .into_iter()
        .chain(
            bad.as_ref()
                .map(|bad| ids.request(&client, &operation, Some(bad))),
        ) {
            let reply = Reply::read(request.send().await.unwrap()).await;
            assert!(reply.status >= 400, "{} {}", operation.id, reply.status);
            document.check_answer(&operation, reply.status, &reply.headers, &reply.text());
        }
    }
}

#[tokio::test]
async fn documentation_page_needs_no_key_on_any_ingress() {
    let service = SharedService::get().await;
    for url in service.public_urls() {
        let client = Client::new(&url);
        let page = client.get("/docs").await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        let document = client.get("/api/public/openapi.json").await;
        assert_eq!(document.json()["openapi"], "3.1.0");
    }
}
