//! Every text, list and number of a request has a bound in the document, and the bound holds.

use serde_json::{Value, json};

use crate::{
    admin::api_document::admin_document,
    testing::{World, org_path as of},
};

/// A bound of the document: the path of its field, and the bound.
struct FieldBound {
    path: String,
    limit: Limit,
}

#[derive(Clone, Copy)]
enum Limit {
    /// Characters of a text.
    Chars(u64),
    /// Items of a list.
    Items(u64),
    /// A number.
    Number(f64),
}

/// Returns the bounds of a request, and appends the paths of fields without one to `missing`.
fn bounds_of(document: &Value, name: &str, missing: &mut Vec<String>) -> Vec<FieldBound> {
    let mut bounds = Vec::new();
    let schema = &document["components"]["schemas"][name];
    collect(document, schema, "", &mut bounds, missing);
    bounds
}

fn collect(
    document: &Value,
    schema: &Value,
    path: &str,
    bounds: &mut Vec<FieldBound>,
    missing: &mut Vec<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
        return collect(document, schema, path, bounds, missing);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            collect(document, part, path, bounds, missing);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let below = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        collect(document, field, &below, bounds, missing);
    }
    let is = |kind: &str| {
        let types = &schema["type"];
        types == kind
            || types
                .as_array()
                .is_some_and(|all| all.contains(&kind.into()))
    };
    let has_form = ["enum", "const", "format", "pattern"]
        .iter()
        .any(|key| schema.get(key).is_some());
    let limit = if is("string") {
        schema["maxLength"].as_u64().map(Limit::Chars)
    } else if is("array") {
        let items = format!("{path}[0]");
        collect(document, &schema["items"], &items, bounds, missing);
        schema["maxItems"].as_u64().map(Limit::Items)
    } else if is("integer") || is("number") {
        schema["maximum"].as_f64().map(Limit::Number)
    } else {
        return;
    };
    match limit {
        Some(limit) => bounds.push(FieldBound {
            path: path.to_owned(),
            limit,
        }),
        None if is("string") && has_form => {}
        None => missing.push(path.to_owned()),
    }
}

impl FieldBound {
    /// Returns the body with a value that exceeds the bound by `excess`.
    fn exceeded(&self, body: &Value, excess: u64) -> Value {
        let mut body = body.clone();
        let pointer = format!("/{}", self.path.replace('.', "/").replace("[0]", "/0"));
        let field = field_of(&mut body, &pointer);
        *field = match self.limit {
            Limit::Chars(max) => {
                let current = field.as_str().unwrap_or_default();
                let address = current.starts_with("https://").then_some(current);
                let text = address.unwrap_or_default();
                let length = usize::try_from(max + excess).unwrap();
                format!("{text}{}", "x".repeat(length - text.len())).into()
            }
            Limit::Items(max) => {
                let item = field[0].clone();
                (0..max + excess)
                    .map(|number| numbered(&item, number))
                    .collect()
            }
            Limit::Number(max) if max.fract() == 0.0 => json!(max as u64 + excess),
            Limit::Number(max) => json!(max + 1.0),
        };
        body
    }
}

/// Returns the field at a pointer, which is created in objects.
fn field_of<'a>(body: &'a mut Value, pointer: &str) -> &'a mut Value {
    let mut field = body;
    for part in pointer.split('/').skip(1) {
        field = match field {
            Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
            Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
            other => panic!("{pointer} is below {other}"),
        };
    }
    field
}

/// Returns an item that differs from others in its identifying field.
fn numbered(item: &Value, number: u64) -> Value {
    let mut item = item.clone();
    for name in ["slug", "agent", "name"] {
        if let Some(field) = item.get_mut(name) {
            *field = format!("item{number}").into();
        }
    }
    item
}

fn agent() -> Value {
    let field = json!({ "name": "mail", "label": "Mail", "type": "select", "options": ["a"] });
    json!({
        "slug": "shop", "name": "Shop", "provider": null, "allowedDomains": ["shop.example"],
        "ecommerce": {
            "products": [{ "title": "Tea", "image": "https://a.example/", "url": "https://a.example/" }],
            "feed": { "url": "https://a.example/" },
        },
        "leadForm": {
            "consent": { "text": "Yes", "link": "https://a.example/" }, "trigger": "after-replies",
            "afterReplies": 1, "fields": [field],
        },
        "disclosure": { "privacyLink": "https://a.example/" },
        "files": { "types": ["image/png"] },
        "theme": {}, "limits": {}, "widget": {},
    })
}

/// Returns the requests of the test: method, path, schema and a valid body.
async fn requests(world: &World) -> Vec<(&'static str, String, &'static str, Value)> {
    let team = json!({ "slug": "front", "name": "Front", "members": [{ "agent": "shop" }] });
    let provider = json!({ "slug": "main", "baseUrl": "https://a.example/", "apiKey": "k" });
    let key = json!({ "name": "k", "scopes": ["chat"], "limits": {} });
    let mut requests = Vec::new();
    for (kind, schema, body) in [
        ("agents", "AgentFields", agent()),
        ("teams", "TeamFields", team.clone()),
        ("providers", "ProviderFields", provider.clone()),
        ("keys", "KeyFields", key.clone()),
    ] {
        let path = of(&format!("/{kind}"));
        let created = world.admin("POST", &path, &[], body.clone()).await.json();
        let id = created["id"].as_str().or(created["details"]["id"].as_str());
        let id = id.unwrap_or_else(|| panic!("{created}"));
        requests.push(("PUT", format!("{path}/{id}"), schema, body));
    }
    let user = json!({ "email": "a@example.org", "role": "viewer" });
    let run = json!({ "message": "m", "history": [{ "role": "user", "content": "m", "attachments": [] }] });
    let organization = json!({
        "slug": "acme", "name": "Acme", "providers": [{ "slug": "a" }],
        "agents": [{ "slug": "a", "name": "A" }], "teams": [{ "slug": "a", "name": "A" }],
        "keys": [{ "name": "a" }],
    });
    let shop = requests[0].1.clone();
    requests.extend([
        (
            "PUT",
            of(""),
            "OrganizationFields",
            json!({ "slug": "acme", "name": "Acme" }),
        ),
        ("POST", of("/users"), "NewUser", user),
        ("POST", of("/erasures"), "ErasedVisitor", json!({})),
        ("POST", format!("{shop}/try"), "PlaygroundRunRequest", run),
        (
            "POST",
            "/api/admin/apply/plan".to_owned(),
            "ApplyDocument",
            json!({ "organizations": [organization] }),
        ),
    ]);
    requests
}

/// Returns true if a text of the greatest length has the form of the field as well.
fn takes_any_text(path: &str) -> bool {
    let has_form = [
        "theme.",
        "allowedDomains[",
        "provider",
        "fallbackProvider",
        "defaultAgent",
    ];
    let is_name = path.ends_with("slug") || path.ends_with("agent") || path.ends_with("email");
    !(has_form.iter().any(|form| path.starts_with(form)) || is_name)
}

#[tokio::test]
async fn every_text_list_and_number_has_a_bound_that_holds() {
    let (world, document) = (World::new().await, admin_document());
    let (mut missing, mut tried) = (Vec::new(), 0);
    for (method, path, schema, body) in requests(&world).await {
        for bound in bounds_of(&document, schema, &mut missing) {
            // A document has the fields of its resources, which are tried by themselves.
            if schema == "ApplyDocument" && !matches!(bound.limit, Limit::Items(_))
                || bound.path.contains("agents[0].")
                // Ids and references to files have tests of their own.
                || bound.path.ends_with("agentId")
                || bound.path.contains("attachments")
            {
                continue;
            }
            let refused = world
                .admin(method, &path, &[], bound.exceeded(&body, 1))
                .await;
            let param = refused.json()["param"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let names_it = param == bound.path || param.starts_with(&format!("{}[", bound.path));
            assert!(
                refused.status == 400 && names_it,
                "{schema} {} above its bound: {}",
                bound.path,
                refused.text
            );
            tried += 1;
            if method == "PUT"
                && !matches!(bound.limit, Limit::Items(_))
                && takes_any_text(&bound.path)
            {
                let taken = world
                    .admin(method, &path, &[], bound.exceeded(&body, 0))
                    .await;
                assert_eq!(taken.status, 200, "{schema} {}: {}", bound.path, taken.text);
            }
        }
    }
    assert_eq!(missing, [] as [String; 0], "fields without a bound");
    assert!(tried > 60, "{tried} bounds");
}
