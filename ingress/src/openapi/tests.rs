//! Tests of the public document: its references resolve, its examples match its schemas, and it
//! describes exactly the routes that are served.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document;
use crate::{http::ErrorCode, server::router::public_routes, testing::World};

const METHODS: [&str; 7] = ["GET", "POST", "PATCH", "PUT", "DELETE", "TRACE", "QUERY"];
const ROUTER: &str = include_str!("../server/router.rs");

struct Operation {
    path: String,
    value: Value,
}

fn public_document() -> Value {
    serde_json::to_value(document(public_routes().into_openapi())).unwrap()
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut found = vec![];
    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap().values();
        found.extend(operations.map(|value| Operation {
            path: path.clone(),
            value: value.clone(),
        }));
    }
    assert!(found.len() >= 9, "only {} operations", found.len());
    found
}

/// Visits each part of the document with its path.
fn walk<'a>(at: &str, value: &'a Value, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(at, value);
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| walk(&format!("{at}/{name}"), value, visit)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, value)| walk(&format!("{at}/{n}"), value, visit)),
        _ => {}
    }
}

/// Returns the errors of `instance` under a schema of the document.
fn schema_errors(document: &Value, schema: &Value, instance: &Value) -> Vec<String> {
    let whole = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap();
    validator
        .iter_errors(instance)
        .map(|error| error.to_string())
        .collect()
}

/// Returns the path with a value for each parameter.
fn with_parameters(path: &str) -> String {
    ["agentId", "teamId", "messageId", "sessionId"]
        .iter()
        .fold(path.to_owned(), |path, name| {
            path.replace(&format!("{{{name}}}"), "x")
        })
}

#[test]
fn references_resolve() {
    let document = public_document();
    walk("", &document, &mut |at, value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference
                .strip_prefix('#')
                .expect("a reference into this document");
            assert!(
                document.pointer(pointer).is_some(),
                "{at} refers to {reference}"
            );
        }
    });
}

#[test]
fn examples_match_their_schemas() {
    let document = public_document();
    let mut seen = 0;
    walk("", &document, &mut |at, value| {
        let Some(schema) = value.get("schema") else {
            return;
        };
        let named = value.get("examples").and_then(Value::as_object);
        let named = named
            .into_iter()
            .flat_map(|examples| examples.values())
            .filter_map(|example| example.get("value"));
        for example in value.get("example").into_iter().chain(named) {
            seen += 1;
            assert_eq!(
                schema_errors(&document, schema, example),
                Vec::<String>::new(),
                "{at}: {example}"
            );
        }
    });
    assert!(seen > 100, "only {seen} examples");
}

#[test]
fn operation_has_a_unique_id_and_a_request_id_header() {
    let document = public_document();
    let tags: BTreeSet<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tag| tag["name"].as_str())
        .collect();
    let mut names = BTreeSet::new();
    for Operation { path, value, .. } in operations(&document) {
        assert!(
            names.insert(value["operationId"].as_str().unwrap().to_owned()),
            "{path}"
        );
        assert!(
            value["summary"].is_string() && value["description"].is_string(),
            "{path}"
        );
        assert!(
            value["tags"]
                .as_array()
                .unwrap()
                .iter()
                .all(|tag| tags.contains(tag.as_str().unwrap())),
            "{path}"
        );
        for (status, response) in value["responses"].as_object().unwrap() {
            assert!(
                response["headers"]["X-Request-Id"].is_object(),
                "{path} {status}"
            );
            let is_error = status.as_str() >= "400";
            let has_problem = response["content"]["application/problem+json"].is_object();
            assert_eq!(is_error, has_problem, "{path} {status}");
        }
    }
}

#[test]
fn every_error_code_is_documented() {
    let mut shown_codes = BTreeSet::new();
    let document = public_document();
    walk("", &document["paths"], &mut |_, value| {
        let codes = value
            .pointer("/code/enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        shown_codes.extend(codes.filter_map(Value::as_str));
    });
    for code in ErrorCode::ALL {
        // No operation has this error, because it is about other methods.
        assert_eq!(
            shown_codes.contains(code.name()),
            *code != ErrorCode::MethodNotAllowed,
            "{}",
            code.name()
        );
    }
}

#[tokio::test]
async fn documented_methods_are_the_served_methods() {
    let world = World::new().await;
    let document = public_document();
    for path in document["paths"].as_object().unwrap().keys() {
        for method in METHODS {
            let is_shown = document["paths"][path].get(method.to_lowercase()).is_some();
            let answer = world
                .send_with(method, &with_parameters(path), &[], "")
                .await;
            let (status, code) = answer.problem();
            if !is_shown {
                assert_eq!(
                    (status, code.as_str()),
                    (405, "METHOD_NOT_ALLOWED"),
                    "{method} {path}"
                );
            } else if path.ends_with("/openapi.json") {
                assert_eq!(status, 200);
            } else {
                assert_eq!(
                    (status, code.as_str()),
                    (401, "MISSING_API_KEY"),
                    "{method} {path}"
                );
            }
        }
    }
}

/// A router does not list its routes, so that this test reads the only file that adds them.
#[test]
fn served_routes_are_documented() {
    let added = ROUTER
        .split(".route(")
        .skip(1)
        .filter_map(|rest| rest.split('"').nth(1));
    let added: Vec<&str> = added.collect();
    assert!(
        added.contains(&"/api/public/agents//chat"),
        "the routes are found: {added:?}"
    );
    for path in added {
        let has_empty_id = path.contains("//") || path.ends_with('/');
        assert!(
            !path.starts_with("/api/public") || has_empty_id,
            "{path} is served and not in `public_routes`"
        );
    }
}

#[tokio::test]
async fn openapi_document_needs_no_key_and_is_cacheable() {
    let world = World::new().await;
    let path = "/api/public/openapi.json";
    let first = world
        .send_with("GET", path, &[("origin", "https://docs.example")], "")
        .await;
    assert_eq!(first.json()["openapi"], "3.1.0");
    assert_eq!(
        first.headers["access-control-allow-origin"],
        "https://docs.example"
    );
    assert_eq!(first.headers["cache-control"], "public, no-cache");
    let etag = first.headers["etag"].to_str().unwrap();
    let again = world
        .send_with("GET", path, &[("if-none-match", etag)], "")
        .await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(again.headers["etag"], etag);
    assert_eq!(
        world
            .send_with("GET", path, &[("if-none-match", "\"other\"")], "")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn docs_page_loads_only_its_own_files() {
    let world = World::new().await;
    let page = world.send_with("GET", "/docs", &[], "").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    for (file, media_type) in [
        ("docs.css", "text/css; charset=utf-8"),
        ("docs.js", "text/javascript; charset=utf-8"),
    ] {
        assert!(
            page.text.contains(&format!("\"docs/{file}\"")),
            "the page uses {file}"
        );
        let answer = world
            .send_with("GET", &format!("/docs/{file}"), &[], "")
            .await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.headers["content-type"].to_str().unwrap()
            ),
            (200, media_type)
        );
        assert!(
            !answer.text.contains("http://") && !answer.text.contains("https://"),
            "{file} names another place"
        );
    }
    for inline in [
        "<style",
        " style=",
        " onclick=",
        " onload=",
        "<script>",
        "http://",
        "https://",
    ] {
        assert!(!page.text.contains(inline), "{inline}");
    }
    assert_eq!(
        world.send_with("GET", "/docs/", &[], "").await.headers["location"],
        "../docs"
    );
    assert_eq!(
        world
            .send_with("GET", "/docs/nothing.js", &[], "")
            .await
            .status,
        404
    );
}
