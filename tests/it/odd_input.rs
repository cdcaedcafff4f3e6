//! Input that is legal and odd, or not legal at all: each has one answer, and none of them is a fault of ours.

use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, End, Organization, OrganizationDocument, Reply, Script, SharedService,
};

/// An organization, a caller and the path of its agent.
async fn shop(service: &SharedService) -> (Organization, Client, String) {
    let organization = Organization::with_agent(service, Script::says("ok")).await;
    let path = format!("/api/public/agents/{}", organization.shop());
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
    organization
        .client()
        .history(organization.shop(), session)
        .await["metadata"]
        .clone()
}

#[tokio::test]
async fn json_that_only_some_parsers_take_is_invalid_json() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn of_a_repeated_field_the_last_one_counts_and_any_number_of_unknown_ones_is_ignored() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn a_compressed_body_is_not_unfolded() {
    let service = SharedService::get().await;
    let (_, client, path) = shop(&service).await;
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
async fn metadata_keys_are_text_and_never_more() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn numbers_come_back_as_they_were_written() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn ratings_in_other_spellings_are_numbers_and_numbers_out_of_range_are_not_ratings() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn what_is_no_address_is_refused_by_both_routes_that_take_one() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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
async fn unknown_fields_of_a_change_are_ignored() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
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

#[tokio::test]
async fn of_a_repeated_query_parameter_the_first_one_counts() {
    let service = SharedService::get().await;
    let (organization, client, path) = shop(&service).await;
    client.chat(organization.shop(), "s", "hi").await.complete();
    for (query, limit, offset) in [
        ("limit=1&limit=2", 1, 0),
        ("offset=1&offset=0", 50, 1),
        ("limit=99999999999999999999999", 100, 0),
        (
            "offset=1000000000000000000",
            50,
            1_000_000_000_000_000_000_u64,
        ),
        ("limit=%31", 1, 0),
        ("limit=+1", 50, 0),
        ("limit=1e1", 50, 0),
        ("limit[]=1", 50, 0),
        ("&&limit=2&", 2, 0),
        ("=&limit", 50, 0),
    ] {
        let answer = client.get(&format!("{path}/conversations/s?{query}")).await;
        let page = answer.json();
        assert_eq!(
            (answer.status, &page["limit"], &page["offset"]),
            (200, &json!(limit), &json!(offset)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_key_is_found_in_any_legal_spelling_of_its_header_and_in_no_other() {
    let service = SharedService::get().await;
    let (organization, _, path) = shop(&service).await;
    let key = organization.key_text("all");
    let value = |text: String| HeaderValue::from_bytes(text.as_bytes()).unwrap();
    let table = [
        (vec![("authorization", format!("Bearer  {key}"))], None),
        (vec![("authorization", format!("Bearer\t{key}"))], None),
        (vec![("authorization", format!("Bearer {key} "))], None),
        (
            vec![
                ("authorization", format!("Bearer {key}")),
                ("authorization", format!("Bearer {key}")),
            ],
            None,
        ),
        (
            vec![
                ("authorization", "Basic dTpw".into()),
                ("x-api-key", key.into()),
            ],
            None,
        ),
        (
            vec![("authorization", String::new())],
            Some("MISSING_API_KEY"),
        ),
        (
            vec![("authorization", "Bearer".into())],
            Some("MISSING_API_KEY"),
        ),
        (
            vec![("authorization", key.to_owned())],
            Some("MISSING_API_KEY"),
        ),
        (
            vec![("authorization", format!("Basic {key}"))],
            Some("MISSING_API_KEY"),
        ),
        (vec![("x-api-key", " ".into())], Some("MISSING_API_KEY")),
        (
            vec![("authorization", format!("Bearer {key} {key}"))],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("authorization", format!("Bearer \"{key}\""))],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("authorization", format!("Bearer {key}é"))],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("authorization", "Bearer c3ZjX2xpdmVf".into())],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("x-api-key", format!("Bearer {key}"))],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("x-api-key", key.into()), ("x-api-key", "other".into())],
            Some("INVALID_API_KEY"),
        ),
        (
            vec![("x-api-key", format!("{key},{key}"))],
            Some("INVALID_API_KEY"),
        ),
    ];
    for (headers, code) in table {
        let mut request = service.client().request(Method::GET, &path);
        for (name, text) in &headers {
            request = request.header(*name, value(text.clone()));
        }
        let answer = Answer::read(request.send().await.unwrap()).await.unwrap();
        match code {
            None => assert_eq!(answer.status, 200, "{headers:?}: {}", answer.text),
            Some(code) => drop(answer.assert_problem(401, Some(code))),
        }
    }
}

#[tokio::test]
async fn an_origin_that_only_looks_like_a_listed_one_is_refused() {
    let service = SharedService::get().await;
    let listed = json!({"allowedDomains": ["https://good.example", "xn--mnchen-3ya.example"]});
    let organization = OrganizationDocument::new()
        .agent("shop", listed)
        .apply(&service)
        .await;
    let path = format!("/api/public/agents/{}/chat", organization.shop());
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
async fn whatever_a_model_says_arrives_and_is_kept_byte_for_byte() {
    let service = SharedService::get().await;
    let organization = Organization::with_agent(&service, Script::says("unused")).await;
    let client = organization.client();
    let sayings = [
        "nul \0 and \u{1}\u{7f} controls",
        "\u{1b}[31mred\u{1b}[0m and \u{1b}]0;title\u{7}",
        "line\r\nline\rline\u{2028}line\u{2029}line\n\n\ndata: no event\nevent: done\n\n",
        "👩‍👩‍👧‍👦 e\u{301} \u{202e}txt\u{202c} \u{feff} \u{fffd} \u{10ffff}",
        "<script>alert(1)</script> HTTP/1.1 200 OK\r\n\r\n0\r\n\r\n",
    ];
    for (number, saying) in sayings.into_iter().enumerate() {
        organization.script(Script::says(saying).chunk_chars(1));
        let session = format!("s{number}");
        assert_eq!(
            client
                .chat(organization.shop(), &session, "hi")
                .await
                .complete(),
            saying
        );
        assert_eq!(
            client.history(organization.shop(), &session).await["messages"][1]["content"],
            saying
        );
        let events = client
            .chat_events(organization.shop(), &format!("e{number}"), "hi")
            .await;
        assert_eq!(
            (events.text().as_str(), events.names().last()),
            (saying, Some(&"done"))
        );
    }
}

#[tokio::test]
async fn one_enormous_piece_of_text_is_bounded_like_many_small_ones() {
    let service = SharedService::get().await;
    let script = Script::says(&"é".repeat(500_000))
        .chunk_chars(500_000)
        .ends(End::Finish("stop"));
    let organization = Organization::with_agent(&service, script).await;
    let answer = organization
        .client()
        .chat_json(organization.shop(), "s", "hi")
        .await;
    assert_eq!(
        (answer.status, &answer.json()["finishReason"]),
        (200, &json!("length"))
    );
    assert!(answer.json()["content"].as_str().unwrap().len() <= 64 * 1024);
}

#[tokio::test]
async fn an_idempotency_key_is_one_short_printable_text_of_any_script() {
    let service = SharedService::get().await;
    let (_, client, path) = shop(&service).await;
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
