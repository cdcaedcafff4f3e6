//! Tool calls of a shopping agent: several at once, failing ones, and the bounds of the tool loop.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{catalog, header, product, shop, titles, tool_results};
use crate::support::{OrganizationDocument, PATIENCE, Raw, Reply, Script, eventually};

#[tokio::test]
async fn price_limit_within_the_query_is_applied_and_reported() {
    let organization = shop(catalog()).apply_to_shared().await;
    let (client, agent) = (organization.client(), organization.shop());
    for (session, words, shown, limits) in [
        (
            "max",
            "lamp under 30 EUR",
            &["Reading Lamp", "Lamp „Süd“ ☕"][..],
            (None, Some(30.0)),
        ),
        (
            "both",
            "Lamp zwischen 30 und 50 €",
            &["Desk Lamp"],
            (Some(30.0), Some(50.0)),
        ),
        ("nothing", "lamp below $5", &[], (None, Some(5.0))),
    ] {
        organization.script_for(
            session,
            Script::in_turn(vec![Script::searches(words), Script::says("Look.")]),
        );
        let reply = client
            .chat(agent, session, &format!("a lamp? [[{session}]]"))
            .await;
        assert_eq!(
            header(&reply).as_ref().map(titles).unwrap_or_default(),
            shown,
            "{words}"
        );
        let result = tool_results(&organization).remove(0);
        let result: Value = serde_json::from_str(result.split("\n\n").next().unwrap()).unwrap();
        assert_eq!(
            (result["price_min"].as_f64(), result["price_max"].as_f64()),
            limits,
            "{result}"
        );
    }
}

#[tokio::test]
async fn parallel_tool_calls_are_shown_together() {
    let organization = shop(catalog()).apply_to_shared().await;
    let empty = |index: u32| json!({"index": index, "id": format!("c{index}"), "type": "function", "function": {"name": "search_products", "arguments": ""}});
    let interleaved = Script::raw(vec![
        Raw::Delta(json!({"role": "assistant", "content": null, "tool_calls": [empty(0)]})),
        Raw::Delta(json!({"tool_calls": [empty(1)]})),
        Raw::arguments(0, "{\"que"),
        Raw::arguments(1, "{\"query\":\"chair"),
        Raw::arguments(0, "ry\":\"table\"}"),
        Raw::arguments(1, "\"}"),
        Raw::Finish("tool_calls"),
    ]);
    organization.script(Script::in_turn(vec![
        interleaved,
        Script::says("A table and a chair."),
    ]));
    let reply = organization.chat("s", "table and chair").await;
    assert_eq!(reply.complete(), "A table and a chair.");
    assert_eq!(
        titles(&header(&reply).unwrap()),
        ["Oak Table", "Blue Chair"]
    );
    assert_eq!(tool_results(&organization).len(), 2);
}

#[tokio::test]
async fn failing_tool_never_fails_the_reply() {
    let organization = shop(catalog()).apply_to_shared().await;
    let raw_call = |name: &str, arguments: &str| {
        let call =
            json!({"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}});
        Script::raw(vec![
            Raw::Delta(json!({ "tool_calls": [call] })),
            Raw::Finish("tool_calls"),
        ])
    };
    for (session, call, message) in [
        (
            "unknown",
            raw_call("delete_everything", "{}"),
            "no such tool",
        ),
        (
            "broken",
            raw_call("search_products", "{\"query\":"),
            "do not fit",
        ),
        (
            "argument",
            raw_call("search_products", "{\"query\":\"lamp\",\"color\":\"red\"}"),
            "color",
        ),
        (
            "schema",
            raw_call("search_products", "{\"query\":{\"sql\":1}}"),
            "do not fit",
        ),
        (
            "price",
            raw_call("search_products", "{\"price_max\":\"cheap\"}"),
            "do not fit",
        ),
    ] {
        organization.script(Script::in_turn(vec![
            call,
            Script::says("Sorry, I could not look."),
        ]));
        let events = organization.chat_events(session, "lamps").await;
        assert_eq!(events.text(), "Sorry, I could not look.", "{session}");
        assert_eq!(events.names().last(), Some(&"done"), "{session}");
        assert!(!events.names().contains(&"ui"), "{session}");
        let results = tool_results(&organization);
        assert!(
            results[0].contains("error") && results[0].contains(message),
            "{session}: {results:?}"
        );
        assert!(
            !events
                .events
                .iter()
                .any(|(.., data)| data["name"] == "delete_everything"),
            "a model's words are no event"
        );
    }
}

#[tokio::test]
async fn five_tool_rounds_run_and_a_sixth_is_refused() {
    let organization = shop(catalog()).apply_to_shared().await;
    let (client, agent) = (organization.client(), organization.shop());
    let mut scripts = vec![Script::searches("lamp"); 5];
    scripts.push(Script::says("Enough of lamps."));
    organization.script(Script::in_turn(scripts));
    let reply = client.chat(agent, "answers", "lamps").await;
    assert_eq!(reply.complete(), "Enough of lamps.");
    assert!(header(&reply).is_some());
    assert_eq!(organization.requests().len(), 6);
    assert_eq!(tool_results(&organization).len(), 5);

    organization.script(Script::searches("lamp"));
    let reply = client.chat(agent, "never", "lamps for ever").await;
    let listed =
        "- Desk Lamp, $39\n- Floor Lamp, $89\n- Reading Lamp, $25\n- Lamp „Süd“ ☕, 19,90 €";
    assert_eq!(
        (
            reply.complete().as_str(),
            titles(&header(&reply).unwrap()).len()
        ),
        (listed, 4)
    );
    let requests = organization.requests().split_off(6);
    assert_eq!(
        requests.len(),
        6,
        "a model that only calls is asked no seventh time"
    );
    assert_eq!(requests[5].body["tool_choice"], "none");
    assert!(
        requests[..5]
            .iter()
            .all(|request| request.body.get("tool_choice").is_none())
    );
}

#[tokio::test]
async fn tool_loop_without_text_or_products_is_an_error() {
    let organization = shop(catalog()).apply_to_shared().await;
    organization.script(Script::searches("sofa"));
    let reply = organization.chat("never", "sofas for ever").await;
    reply.into_answer().assert_problem(502, Some("MODEL_ERROR"));
}

#[tokio::test]
async fn later_search_reports_the_products_shown_so_far() {
    let organization = shop(catalog()).apply_to_shared().await;
    let rounds = ["lamp", "table", "sofa"].map(Script::searches);
    organization.script(Script::in_turn(
        [&rounds[..], &[Script::says("An oak table.")]].concat(),
    ));
    let reply = organization.chat("s", "a lamp, a table and a sofa").await;
    assert_eq!(titles(&header(&reply).unwrap()), ["Oak Table"]);
    let results = tool_results(&organization);
    let sees: Vec<_> = results
        .iter()
        .map(|result| result.contains("The visitor sees"))
        .collect();
    assert_eq!(sees, [false, false, true], "{results:?}");
    let (_, shown) = results[2].rsplit_once('\n').unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(shown).unwrap(),
        json!([{"title": "Oak Table", "price": "$240"}])
    );
}

#[tokio::test]
async fn search_tool_is_limited_to_ecommerce_agents_and_their_goods() {
    let sells =
        |products: Vec<Value>| json!({"ecommerce": {"enabled": true, "products": products}});
    let organization = OrganizationDocument::new()
        .shop(sells(catalog()))
        .agent("other", sells(vec![product("Garden Lamp", "$5")]))
        .agent(
            "off",
            json!({"ecommerce": {"enabled": false, "products": catalog()}}),
        )
        .apply_to_shared()
        .await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("done"),
    ]));
    let client = organization.client();
    let other = client.chat(organization.agent("other"), "s", "lamps").await;
    assert_eq!(titles(&header(&other).unwrap()), ["Garden Lamp"]);
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("done"),
    ]));
    let off = client.chat(organization.agent("off"), "s", "lamps").await;
    assert_eq!(off.header("x-ui-spec"), None);
    let requests = organization.requests();
    let offered: BTreeSet<_> = requests
        .iter()
        .map(|request| request.body["tools"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(offered, BTreeSet::from([0, 1]));
}

#[tokio::test]
async fn cancel_during_the_tool_loop_stops_the_model() {
    let organization = shop(catalog()).apply_to_shared().await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::silent(),
    ]));
    let (client, agent) = (organization.client(), organization.shop());
    let path = format!("/api/public/agents/{agent}/chat");
    let body = json!({"message": "lamps", "sessionId": "s"});
    let request = client
        .request(reqwest::Method::POST, &path)
        .header("prefer", "respond-async")
        .json(&body);
    let accepted = Reply::read(request.send().await.unwrap())
        .await
        .into_answer();
    let message = accepted.json()["messageId"].as_str().unwrap().to_owned();
    let asked = || organization.requests();
    eventually("the model has its results", PATIENCE, async || {
        (asked().len() == 2).then_some(())
    })
    .await;
    let cancelled = client.cancel(&message).await;
    cancelled.assert_status(200);
    eventually("the model is let go", PATIENCE, async || {
        (!asked()[1].is_open()).then_some(())
    })
    .await;
    let history = client.settled_history(agent, "s", 1).await;
    assert_eq!(
        history["messages"].as_array().unwrap().len(),
        1,
        "{history}"
    );
}
