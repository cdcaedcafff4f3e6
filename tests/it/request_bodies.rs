//! Unusual and malformed request bodies: each has one defined answer, and none is a server error.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Organization, shop_saying};

/// Creates an organization and returns it with a client and the path of its agent.
async fn shop() -> (Organization, Client, String) {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    let client = organization.client();
    (organization, client, path)
}

async fn send_text(
    client: &Client,
    method: Method,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    let request = client
        .request(method, path)
        .header("content-type", "application/json")
        .body(body);
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

async fn metadata(organization: &Organization, session: &str) -> Value {
    organization.history(session).await["metadata"].clone()
}

#[tokio::test]
async fn json_accepted_by_only_some_parsers_is_invalid_json() {
    let (organization, client, path) = shop().await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    let fields = |value: &str| format!(r#"{{"message":"hi","sessionId":"s","x":{value}}}"#);
    let good = fields("1");
    let bodies = [
        format!("\u{feff}{good}"),
        format!("{good}{good}"),
        format!("{good}\0"),
        format!("/* comment */ {good}"),
        fields("NaN"),
        fields("Infinity"),
        fields("1e400"),
        fields("01"),
        fields("+1"),
        fields(".5"),
        fields("0x10"),
        fields("undefined"),
        fields(r#""\x41""#),
        fields(r#""\udc00""#),
        fields("\"a\nb\""),
        fields(&"9".repeat(200_000)),
        fields(&"[".repeat(10_000)),
        fields(&r#"{"a":"#.repeat(10_000)),
        fields(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))),
    ];
    for body in bodies {
        let chat = send_text(&client, Method::POST, &format!("{path}/chat"), body.clone()).await;
        chat.assert_problem(400, Some("INVALID_JSON"));
        let patch = send_text(
            &client,
            Method::PATCH,
            &format!("{path}/conversations/s"),
            body,
        )
        .await;
        patch.assert_problem(400, Some("INVALID_JSON"));
    }
}

#[tokio::test]
async fn last_repeated_field_wins_and_unknown_fields_are_ignored() {
    let (organization, client, path) = shop().await;
    let twice = r#"{"message":"first","sessionId":"a","message":"second","sessionId":"b"}"#;
    assert_eq!(
        send_text(&client, Method::POST, &format!("{path}/chat"), twice)
            .await
            .status,
        200
    );
    assert_eq!(
        client.history(organization.shop(), "b").await["messages"][0]["content"],
        "second"
    );
    let unknown: String = (0..20_000)
        .map(|number| format!("\"{number}\":0,"))
        .collect();
    let crowded = format!(r#"{{{unknown}"message":"hi","sessionId":"c"}}"#);
    assert_eq!(
        send_text(&client, Method::POST, &format!("{path}/chat"), crowded)
            .await
            .text,
        "ok"
    );
    let crowded = format!(r#"{{"message":"hi","sessionId":"c","metadata":{{{unknown}"last":0}}}}"#);
    let refused = send_text(&client, Method::POST, &format!("{path}/chat"), crowded).await;
    assert_eq!(
        refused.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "metadata"
    );
}

#[tokio::test]
async fn compressed_body_is_not_decompressed() {
    let (_, client, path) = shop().await;
    for coding in ["gzip", "br", "deflate", "zstd", "identity, gzip", "GZIP"] {
        let request = client
            .request(Method::POST, &format!("{path}/chat"))
            .header("content-encoding", coding);
        let response = request.body(vec![0x1f, 0x8b, 8, 0]).send().await.unwrap();
        Answer::read(response)
            .await
            .unwrap()
            .assert_problem(415, Some("UNSUPPORTED_MEDIA_TYPE"));
    }
}

#[tokio::test]
async fn metadata_keys_are_plain_text() {
    let (organization, client, path) = shop().await;
    let odd = json!({
        "__proto__": {"polluted": true}, "constructor": {"prototype": 1}, "toString": null, "": "empty",
        "a\u{0}b\r\nc": "control", "$where": "1", "a.b[0]": "path", "🦀": "crab", "\u{202e}": "right to left"
    });
    let body = json!({"message": "hi", "sessionId": "s", "metadata": odd});
    assert_eq!(
        client.post(&format!("{path}/chat"), &body).await.status,
        200
    );
    let kept = metadata(&organization, "s").await;
    for (key, value) in odd.as_object().unwrap() {
        if !value.is_null() {
            assert_eq!(&kept[key], value, "{key:?} in {kept}");
        }
    }
    assert!(kept.get("polluted").is_none());
}

#[tokio::test]
async fn numbers_are_returned_as_written() {
    let (organization, client, path) = shop().await;
    let numbers = [
        "0",
        "-0.0",
        "0.1",
        "4.444444444444445e23",
        "2.2250738585072014e-308",
        "5e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "0.30000000000000004",
        "123456789012345.67",
    ];
    let fields: Vec<String> = numbers
        .iter()
        .map(|number| format!("\"{number}\":{number}"))
        .collect();
    let body = format!(
        r#"{{"message":"hi","sessionId":"s","metadata":{{{}}}}}"#,
        fields.join(",")
    );
    assert_eq!(
        send_text(&client, Method::POST, &format!("{path}/chat"), body)
            .await
            .status,
        200
    );
    let answer = client.get(&format!("{path}/conversations/s")).await;
    for number in numbers {
        let line = answer
            .text
            .split(&format!("\"{number}\":"))
            .nth(1)
            .expect(number);
        let shown = &line[..line.find([',', '}']).unwrap()];
        assert_eq!(
            shown.parse::<f64>().unwrap().to_bits(),
            number.parse::<f64>().unwrap().to_bits(),
            "{number}"
        );
        assert!(
            number.contains(['.', 'e']) || shown == number,
            "{number}: {shown}"
        );
    }
    assert_eq!(
        metadata(&organization, "s")
            .await
            .as_object()
            .unwrap()
            .len(),
        numbers.len() + 2
    );
}

#[tokio::test]
async fn rating_spellings_are_numbers_and_must_be_in_range() {
    let (organization, client, path) = shop().await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    let path = format!("{path}/conversations/s");
    for good in ["1e0", "5.0", "0.5e1", "10e-1", "4.999999999999999999999"] {
        let answer = send_text(
            &client,
            Method::PATCH,
            &path,
            format!("{{\"rating\":{good}}}"),
        )
        .await;
        assert_eq!(answer.status, 200, "{good}: {}", answer.text);
    }
    for bad in [
        "1e99",
        "-1e0",
        "0.9999999999",
        "5.000001",
        "\"\"",
        "\"1e0\"",
        "[1]",
        "{}",
        "false",
    ] {
        let answer = send_text(
            &client,
            Method::PATCH,
            &path,
            format!("{{\"rating\":{bad}}}"),
        )
        .await;
        answer.assert_problem(400, Some("INVALID_RATING"));
    }
}

#[tokio::test]
async fn invalid_email_is_refused_by_both_routes() {
    let (organization, client, path) = shop().await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    let long = format!("{}@shop.example", "a".repeat(300));
    for address in [
        "",
        " ",
        "a",
        "@",
        "a@",
        "@shop.example",
        "a@shop",
        "a@shop..example",
        "a@.example",
        "a@-shop.example",
        "a b@shop.example",
        "a@shop.example ",
        "a@b@shop.example",
        "a@shop.example\r\nBcc: b@shop.example",
        "a@münchen.example",
        "ä@shop.example",
        "a@shop.example\0",
        "<a@shop.example>",
        "a@[127.0.0.1]",
        &long,
    ] {
        let body = json!({"message": "hi", "sessionId": "s", "visitorEmail": address});
        let chat = client.post(&format!("{path}/chat"), &body).await;
        let patch = client
            .patch(
                &format!("{path}/conversations/s"),
                &json!({"visitorEmail": address}),
            )
            .await;
        for answer in [chat, patch] {
            assert_eq!(
                answer.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
                "visitorEmail",
                "{address}"
            );
        }
    }
}

#[tokio::test]
async fn unknown_fields_of_a_patch_are_ignored() {
    let (organization, client, path) = shop().await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    let path = format!("{path}/conversations/s");
    let changes = json!({"rating": 4, "id": "conv_x", "agentId": "x", "ipAddress": "1.2.3.4", "visitorId": "v", "x": 1});
    let answer = client.patch(&path, &changes).await;
    assert_eq!(
        answer.json(),
        json!({"success": true, "updated": {"rating": 4}})
    );
    let kept = metadata(&organization, "s").await;
    assert!(
        kept.get("visitorId").is_none()
            && kept["ipAddress"] != "1.2.3.4"
            && kept.get("x").is_none(),
        "{kept}"
    );
}
