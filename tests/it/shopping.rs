//! Shopping with an agent that shows its products: what is found stands in the header before the first byte, whole in the
//! `ui` event and in the history, and whatever goes wrong with a tool never fails the reply.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    Organization, OrganizationDocument, PATIENCE, Profile, Raw, Reply, Script, ScriptedModel,
    SharedService, TestService, eventually,
};

fn product(title: &str, price: &str) -> Value {
    let name = title.to_lowercase().replace(' ', "-");
    json!({"title": title, "price": price, "image": format!("https://shop.example/{name}.jpg"), "url": format!("https://shop.example/{name}")})
}

fn catalogue() -> Vec<Value> {
    let lamps = [
        ("Desk Lamp", "$39"),
        ("Floor Lamp", "$89"),
        ("Reading Lamp", "$25"),
    ];
    let others = [
        ("Oak Table", "$240"),
        ("Blue Chair", "$75"),
        ("Lamp „Süd“ ☕", "19,90 €"),
    ];
    lamps
        .into_iter()
        .chain(others)
        .map(|(title, price)| product(title, price))
        .collect()
}

async fn shop(service: &TestService, products: Vec<Value>) -> Organization {
    let ecommerce = json!({"enabled": true, "products": products});
    OrganizationDocument::new()
        .continuing()
        .agent("shop", json!({ "ecommerce": ecommerce }))
        .apply(service)
        .await
}

fn titles(spec: &Value) -> Vec<&str> {
    assert_eq!(spec["type"], "product-grid", "{spec}");
    spec["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card["title"].as_str().unwrap())
        .collect()
}

fn header(reply: &Reply) -> Option<Value> {
    reply
        .header("x-ui-spec")
        .map(|text| serde_json::from_str(text).unwrap())
}

/// What the model was told of its calls in its last request.
fn tool_results(organization: &Organization) -> Vec<String> {
    let request = ScriptedModel::get()
        .requests(&organization.model)
        .pop()
        .unwrap();
    request
        .messages
        .into_iter()
        .filter(|(role, _)| role == "tool")
        .map(|(_, text)| text)
        .collect()
}

#[tokio::test]
async fn a_shopping_dialogue_shows_what_each_turn_found() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
    let (client, agent) = (organization.client(), organization.shop());
    organization.script_for("greet", Script::says("Hello! What are you looking for?"));
    organization.script_for(
        "lamps",
        Script::in_turn(vec![
            Script::searches("lamp"),
            Script::says("Four lamps, from $19.90."),
        ]),
    );
    let cheap = Raw::call(
        0,
        "search_products",
        &json!({"query": "lamp", "price_max": "30"}),
    );
    let cheap = Script::raw(vec![
        Raw::text("Let me look."),
        cheap,
        Raw::Finish("tool_calls"),
    ]);
    organization.script_for(
        "cheap",
        Script::in_turn(vec![cheap, Script::says("Two are under $30.")]),
    );
    organization.script_for("second", Script::says("The second one is the Lamp „Süd“."));
    organization.script_for(
        "sofa",
        Script::in_turn(vec![
            Script::searches("sofa"),
            Script::says("We have no sofas."),
        ]),
    );

    let greeting = client.chat(agent, "s", "hi [[greet]]").await;
    assert_eq!(
        (greeting.complete().as_str(), header(&greeting)),
        ("Hello! What are you looking for?", None)
    );
    let lamps = client.chat(agent, "s", "show me lamps [[lamps]]").await;
    assert_eq!(lamps.complete(), "Four lamps, from $19.90.");
    let shown = header(&lamps).unwrap();
    assert_eq!(
        titles(&shown),
        ["Desk Lamp", "Floor Lamp", "Reading Lamp", "Lamp „Süd“ ☕"]
    );
    assert_eq!(shown["data"][0], catalogue()[0]);
    let told = tool_results(&organization).remove(0);
    assert!(
        titles(&shown).iter().all(|title| told.contains(title)) && !told.contains("Oak Table"),
        "{told}"
    );

    let cheap = client.chat_events(agent, "s", "under 30? [[cheap]]").await;
    assert_eq!(titles(cheap.only("ui")), ["Reading Lamp", "Lamp „Süd“ ☕"]);
    assert_eq!(cheap.text(), "Let me look.\n\nTwo are under $30.");
    let tools: Vec<_> = cheap
        .events
        .iter()
        .filter(|(name, ..)| name == "tool")
        .map(|(.., data)| data.clone())
        .collect();
    let status = |status: &str| json!({"name": "search_products", "status": status});
    assert_eq!(tools, [status("started"), status("finished")]);
    let place = |wanted: &str| {
        cheap
            .names()
            .iter()
            .position(|name| *name == wanted)
            .unwrap()
    };
    assert!(
        place("start") < place("ui") && place("ui") < place("delta"),
        "{:?}",
        cheap.names()
    );

    let second = client.chat(agent, "s", "the second one? [[second]]").await;
    assert_eq!(
        (second.complete().as_str(), header(&second)),
        ("The second one is the Lamp „Süd“.", None)
    );
    let asked = ScriptedModel::get()
        .requests(&organization.model)
        .pop()
        .unwrap();
    assert!(
        asked.messages[0].1.contains("Reading Lamp"),
        "the model knows what is shown: {:?}",
        asked.messages[0]
    );
    let sofa = client.chat_json(agent, "s", "a sofa? [[sofa]]").await;
    assert_eq!(
        (sofa.header("x-ui-spec"), sofa.json().get("uiSpec")),
        (None, None),
        "{}",
        sofa.text
    );

    let history = client.history(agent, "s").await;
    let answers: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .collect();
    let kept: Vec<_> = answers
        .iter()
        .map(|answer| answer.get("uiSpec").map(titles).unwrap_or_default().len())
        .collect();
    assert_eq!(kept, [0, 4, 2, 0, 0]);
    assert_eq!(answers[1]["uiSpec"], shown);
}

#[tokio::test]
async fn what_the_catalogue_says_of_products_is_told_to_the_model_and_not_shown() {
    let service = SharedService::get().await;
    let organization = shop(&service, Vec::new()).await;
    let (client, agent) = (organization.client(), organization.shop());
    let path = format!(
        "/api/admin/organizations/{}/agents/{agent}/products",
        organization.id
    );
    let csv = "title;price;link;description;weight;waterproof\n\
        Alpine tent;99 EUR;https://shop.example/alpine;<p>Two doors,</p> see https://shop.example/manual.;2 kg;yes\n\
        Beach tent;49 EUR;https://shop.example/beach;;1 kg;no\n";
    let upload = service
        .admin()
        .request(reqwest::Method::PUT, &path)
        .header("content-type", "text/csv")
        .body(csv);
    assert_eq!(upload.send().await.unwrap().status(), 200);
    organization.script(Script::in_turn(vec![
        Script::searches("tent"),
        Script::says("The alpine tent is."),
    ]));
    let reply = client.chat(agent, "s", "which tent is waterproof?").await;
    assert_eq!(reply.complete(), "The alpine tent is.");
    let shown = header(&reply).unwrap();
    assert!(
        titles(&shown).len() == 2 && !shown.to_string().contains("waterproof"),
        "{shown}"
    );

    let told = tool_results(&organization).remove(0);
    let (result, note) = told.split_once("\n\nThe visitor sees exactly").unwrap();
    assert!(
        !note.contains("waterproof") && !told.contains("https://"),
        "{told}"
    );
    let mut result: Value = serde_json::from_str(result).unwrap();
    let told = result["products"].as_array_mut().unwrap();
    told.sort_by_key(|product| product["title"].to_string());
    let alpine = json!({
        "title": "Alpine tent", "price": "99 EUR", "description": "Two doors, see",
        "attributes": {"weight": "2 kg", "waterproof": "yes"}
    });
    let beach = json!({
        "title": "Beach tent", "price": "49 EUR", "attributes": {"weight": "1 kg", "waterproof": "no"}
    });
    assert_eq!(*told, [alpine, beach]);

    client.chat(agent, "s", "and now?").await.complete();
    let asked = ScriptedModel::get()
        .requests(&organization.model)
        .pop()
        .unwrap();
    let instructions = &asked.messages[0].1;
    assert!(
        instructions.contains("Beach tent") && !instructions.contains("waterproof"),
        "{instructions}"
    );
}

#[tokio::test]
async fn a_price_limit_that_a_model_writes_among_the_words_is_one_and_is_told() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
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
        let told = tool_results(&organization).remove(0);
        let told: Value = serde_json::from_str(told.split("\n\n").next().unwrap()).unwrap();
        assert_eq!(
            (told["price_min"].as_f64(), told["price_max"].as_f64()),
            limits,
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_grid_that_is_too_large_for_the_headers_is_whole_everywhere_else() {
    let service = SharedService::get().await;
    let products: Vec<_> = (0..40)
        .map(|number| product(&format!("Lamp number {number} {}", "é".repeat(60)), "$1"))
        .collect();
    let organization = shop(&service, products).await;
    let (client, agent) = (organization.client(), organization.shop());
    let call = Raw::call(0, "search_products", &json!({"query": "lamp", "limit": 20}));
    let search = Script::raw(vec![call, Raw::Finish("tool_calls")]);
    organization.script(Script::in_turn(vec![search, Script::says("Many lamps.")]));
    let reply = client.chat(agent, "s", "lamps").await;
    assert_eq!(reply.complete(), "Many lamps.");
    let ours: usize = reply
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    assert!(ours < 4 << 10, "{ours} bytes of headers");
    assert_eq!(reply.header("x-ui-spec-truncated"), Some("true"));
    assert!(
        reply
            .header("x-ui-spec")
            .unwrap()
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte))
    );
    let history = client.history(agent, "s").await;
    let whole = &history["messages"][1]["uiSpec"];
    assert_eq!(titles(whole).len(), 20);
    let shown = header(&reply).unwrap();
    assert!(!titles(&shown).is_empty() && titles(whole).starts_with(&titles(&shown)));
}

#[tokio::test]
async fn a_grid_whose_first_product_is_too_large_for_the_headers_is_left_out_of_them() {
    let service = SharedService::get().await;
    let mut long = product("Lamp lamp", "$1");
    long["url"] = format!("https://shop.example/{}", "a".repeat(1_950)).into();
    let organization = shop(&service, vec![long, product("Floor Lamp", "$89")]).await;
    organization.script(Script::in_turn(vec![
        Script::searches("lamp"),
        Script::says("Lamps."),
    ]));
    let reply = organization
        .client()
        .chat(organization.shop(), "s", "lamps")
        .await;
    let headers = (header(&reply), reply.header("x-ui-spec-truncated"));
    let history = organization
        .client()
        .history(organization.shop(), "s")
        .await;
    let whole = &history["messages"][1]["uiSpec"];
    assert_eq!(titles(whole), ["Lamp lamp", "Floor Lamp"]);
    assert_eq!(headers, (None, Some("true")));
}

#[tokio::test]
async fn calls_by_several_indexes_run_side_by_side_and_are_shown_together() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
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
    let reply = organization
        .client()
        .chat(organization.shop(), "s", "table and chair")
        .await;
    assert_eq!(reply.complete(), "A table and a chair.");
    assert_eq!(
        titles(&header(&reply).unwrap()),
        ["Oak Table", "Blue Chair"]
    );
    assert_eq!(tool_results(&organization).len(), 2);
}

#[tokio::test]
async fn a_failing_tool_never_fails_the_reply() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
    let raw_call = |name: &str, arguments: &str| {
        let call =
            json!({"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}});
        Script::raw(vec![
            Raw::Delta(json!({ "tool_calls": [call] })),
            Raw::Finish("tool_calls"),
        ])
    };
    for (session, call, told) in [
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
        let events = organization
            .client()
            .chat_events(organization.shop(), session, "lamps")
            .await;
        assert_eq!(events.text(), "Sorry, I could not look.", "{session}");
        assert_eq!(events.names().last(), Some(&"done"), "{session}");
        assert!(!events.names().contains(&"ui"), "{session}");
        let results = tool_results(&organization);
        assert!(
            results[0].contains("error") && results[0].contains(told),
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
async fn five_rounds_of_tools_run_and_a_sixth_is_refused() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
    let (client, agent) = (organization.client(), organization.shop());
    let mut scripts = vec![Script::searches("lamp"); 5];
    scripts.push(Script::says("Enough of lamps."));
    organization.script(Script::in_turn(scripts));
    let reply = client.chat(agent, "answers", "lamps").await;
    assert_eq!(reply.complete(), "Enough of lamps.");
    assert!(header(&reply).is_some());
    assert_eq!(ScriptedModel::get().requests(&organization.model).len(), 6);
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
    let requests = ScriptedModel::get()
        .requests(&organization.model)
        .split_off(6);
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
async fn a_model_that_never_speaks_and_found_nothing_is_an_error() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
    organization.script(Script::searches("sofa"));
    let reply = organization
        .client()
        .chat(organization.shop(), "never", "sofas for ever")
        .await;
    reply.into_answer().assert_problem(502, Some("MODEL_ERROR"));
}

#[tokio::test]
async fn a_model_that_searches_again_is_told_what_the_visitor_sees_by_now() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
    let rounds = ["lamp", "table", "sofa"].map(Script::searches);
    organization.script(Script::in_turn(
        [&rounds[..], &[Script::says("An oak table.")]].concat(),
    ));
    let reply = organization
        .client()
        .chat(organization.shop(), "s", "a lamp, a table and a sofa")
        .await;
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
async fn only_agents_with_ecommerce_have_the_tool_and_only_their_own_products() {
    let service = SharedService::get().await;
    let sells =
        |products: Vec<Value>| json!({"ecommerce": {"enabled": true, "products": products}});
    let organization = OrganizationDocument::new()
        .agent("shop", sells(catalogue()))
        .agent("other", sells(vec![product("Garden Lamp", "$5")]))
        .agent(
            "off",
            json!({"ecommerce": {"enabled": false, "products": catalogue()}}),
        )
        .apply(&service)
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
    let requests = ScriptedModel::get().requests(&organization.model);
    let offered: BTreeSet<_> = requests
        .iter()
        .map(|request| request.body["tools"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(offered, BTreeSet::from([0, 1]));
}

#[tokio::test]
async fn models_decide_no_links_and_bad_links_are_not_shown() {
    let service = SharedService::get().await;
    let mut products = catalogue();
    products.push(product("<b>Odd</b> Lamp", "$2"));
    (products[6]["url"], products[6]["image"]) = ("https://shop.example/odd".into(), "".into());
    let organization = shop(&service, products).await;
    let mut bad = catalogue();
    bad[0]["url"] = "javascript:alert(1)".into();
    let document = organization.changed_agent(
        "shop",
        json!({"ecommerce": {"enabled": true, "products": bad}}),
    );
    assert_eq!(
        service
            .admin()
            .post("/api/admin/apply", &document)
            .await
            .status,
        400,
        "such a link is never kept"
    );
    let spec = r#"X-UI-Spec: {"type":"product-grid","data":[{"title":"Free","url":"https://evil.example"}]}"#;
    organization.script_for("claims", Script::says(spec));
    let claims = organization
        .client()
        .chat(organization.shop(), "s", "hi [[claims]]")
        .await;
    assert_eq!((claims.complete().as_str(), header(&claims)), (spec, None));
    organization.script_for(
        "lamps",
        Script::in_turn(vec![Script::searches("lamp"), Script::says("Lamps.")]),
    );
    let reply = organization
        .client()
        .chat(organization.shop(), "s", "hi [[lamps]]")
        .await;
    let shown = header(&reply).unwrap();
    assert!(
        titles(&shown).contains(&"Odd Lamp") && !shown.to_string().contains('<'),
        "{shown}"
    );
    assert!(
        !tool_results(&organization)[0].contains("https://"),
        "a model that knows no link writes none"
    );
}

#[tokio::test]
async fn a_reply_whose_worker_dies_keeps_its_products_and_searches_once() {
    let service = TestService::start().await;
    let organization = shop(&service, catalogue()).await;
    let text: String = (0..60).map(|word| format!("w{word:02} ")).collect();
    let (answer, gate) = Script::says(&text)
        .chunk_chars(4)
        .continues_prefix()
        .gated();
    // An embedded process takes the text that was said with it: the reply is made anew, its search included.
    let made = if service.profile == Profile::Embedded {
        2
    } else {
        1
    };
    organization.script(Script::in_turn(
        vec![[Script::searches("lamp"), answer]; made].concat(),
    ));
    let (client, agent) = (organization.client(), organization.shop());
    let body = json!({"message": "lamps", "sessionId": "s"});
    gate.open(10);
    let mut response = client.open_chat(agent, &body).await;
    let mut begun = Reply::begin(&response);
    assert_eq!(titles(&header(&begun).unwrap()).len(), 4);
    begun.read_at_least(&mut response, 20).await;
    for name in service.inference_processes() {
        service.with_process(&name, |process| process.kill());
    }
    for name in service.inference_processes() {
        service.restart(&name).await;
    }
    gate.open(1_000);
    let history = client.settled_history(agent, "s", 2).await;
    let answer = &history["messages"][1];
    assert_eq!(titles(&answer["uiSpec"]).len(), 4, "{answer}");
    assert!(
        text.starts_with(answer["content"].as_str().unwrap()),
        "{answer}"
    );
    assert!(answer["content"].as_str().unwrap().len() >= 20);
    let requests = ScriptedModel::get().requests(&organization.model);
    let searches = requests.iter().filter(|request| {
        request
            .messages
            .last()
            .is_some_and(|(role, _)| role == "user")
    });
    assert_eq!(
        searches.count(),
        made,
        "no tool runs again for a text that is gone on with"
    );
}

#[tokio::test]
async fn a_cancel_while_the_model_answers_its_tools_stops_it() {
    let service = SharedService::get().await;
    let organization = shop(&service, catalogue()).await;
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
    let asked = || ScriptedModel::get().requests(&organization.model);
    eventually("the model has its results", PATIENCE, async || {
        (asked().len() == 2).then_some(())
    })
    .await;
    let cancelled = client
        .post(
            &format!("/api/public/messages/{message}/cancel"),
            &json!({}),
        )
        .await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
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
