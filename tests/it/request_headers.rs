//! Unusual and malformed values of the request headers that carry keys, origins and idempotency
//! keys.

use reqwest::{Method, header::HeaderValue};
use serde_json::json;

use crate::support::{Answer, Reply, shop_saying, shop_with_settings};

/// Request headers with their values.
type Headers = Vec<(&'static str, String)>;

/// Returns headers with this key and the expected error code, none if the key is accepted.
fn key_spellings(key: &str) -> Vec<(Headers, Option<&'static str>)> {
    let header = |text: String| ("authorization", text);
    let bearer = || header(format!("Bearer {key}"));
    let plain = |text: &str| ("x-api-key", text.to_owned());
    let (missing, invalid) = (Some("MISSING_API_KEY"), Some("INVALID_API_KEY"));
    vec![
        (vec![header(format!("Bearer  {key}"))], None),
        (vec![header(format!("Bearer\t{key}"))], None),
        (vec![header(format!("Bearer {key} "))], None),
        (vec![bearer(), bearer()], None),
        (vec![plain(key)], None),
        (vec![header("Basic dTpw".to_owned()), plain(key)], None),
        (vec![header(String::new())], missing),
        (vec![header("Bearer".to_owned())], missing),
        (vec![header(key.to_owned())], missing),
        (vec![header(format!("Basic {key}"))], missing),
        (vec![plain(" ")], missing),
        (vec![header(format!("Bearer {key} {key}"))], invalid),
        (vec![header(format!("Bearer \"{key}\""))], invalid),
        (vec![header(format!("Bearer {key}é"))], invalid),
        (vec![header("Bearer c3ZjX2xpdmVf".to_owned())], invalid),
        (vec![plain(&format!("Bearer {key}"))], invalid),
        (vec![plain(key), plain("other")], invalid),
        (vec![plain(&format!("{key},{key}"))], invalid),
    ]
}

#[tokio::test]
async fn key_is_read_from_every_legal_header_spelling_only() {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    for (headers, code) in key_spellings(organization.key_text("all")) {
        let mut request = organization.service().client().request(Method::GET, &path);
        for (name, text) in &headers {
            request = request.header(*name, HeaderValue::from_bytes(text.as_bytes()).unwrap());
        }
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        match code {
            None => assert_eq!(answer.status, 200, "{headers:?}: {}", answer.text),
            Some(code) => drop(answer.assert_problem(401, Some(code))),
        }
    }
}

#[tokio::test]
async fn origin_lookalikes_are_refused() {
    let listed = json!({"allowedDomains": ["https://good.example", "xn--mnchen-3ya.example"]});
    let organization = shop_with_settings(listed).await;
    let path = organization.path("/chat");
    let table = [
        (vec!["https://good.example"], true),
        (vec!["HTTPS://Good.Example"], true),
        (vec!["https://xn--mnchen-3ya.example"], true),
        (vec!["https://good.example."], false),
        (vec!["https://good.example.evil.example"], false),
        (vec!["https://evilgood.example"], false),
        (vec!["https://good.example@evil.example"], false),
        (vec!["https://evil.example#good.example"], false),
        (vec!["https://evil.example/good.example"], false),
        (vec!["https://good.example/"], false),
        (vec!["https://münchen.example"], false),
        (vec!["https://gооd.example"], false),
        (vec!["file://"], false),
        (vec!["chrome-extension://good.example"], false),
        (vec!["null"], false),
        (vec![""], false),
        (vec!["https://good.example, https://evil.example"], false),
        (vec!["https://good.example", "https://evil.example"], false),
        (vec!["https://good.example:0443"], true),
        (vec!["https://good.example:444"], false),
    ];
    for (origins, allowed) in table {
        let body = json!({"message": "hi", "sessionId": "s"});
        let mut request = organization
            .client()
            .request(Method::POST, &path)
            .json(&body);
        for origin in &origins {
            request = request.header(
                "origin",
                HeaderValue::from_bytes(origin.as_bytes()).unwrap(),
            );
        }
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        if allowed {
            assert_eq!(answer.status, 200, "{origins:?}: {}", answer.text);
        } else {
            answer.assert_problem(403, Some("DOMAIN_NOT_ALLOWED"));
        }
    }
}

#[tokio::test]
async fn idempotency_key_is_short_printable_text_of_any_script() {
    let organization = shop_saying("ok").await;
    let client = organization.client();
    let path = organization.path("");
    let long = "k".repeat(10_000);
    let table: [(&[&[u8]], u16); 8] = [
        (&[long.as_bytes()], 400),
        (&[b"\xff"], 400),
        (&["a\u{80}b".as_bytes()], 400),
        (&[b" "], 400),
        (&[b"a\tb"], 400),
        (&[b"one", b"two"], 400),
        (&["Schlüssel 🔑".as_bytes()], 200),
        (&[b"../{}|\"'"], 200),
    ];
    for (number, (keys, status)) in table.into_iter().enumerate() {
        let mut request = client.request(Method::POST, &format!("{path}/chat"));
        for key in keys {
            request = request.header("idempotency-key", HeaderValue::from_bytes(key).unwrap());
        }
        let request = request.json(&json!({"message": "hi", "sessionId": format!("s{number}")}));
        let answer = Reply::read(request.send().await.unwrap())
            .await
            .into_answer();
        assert_eq!(answer.status, status, "{}", answer.text);
        if status == 400 {
            assert_eq!(
                answer.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
                "Idempotency-Key"
            );
        }
    }
}
