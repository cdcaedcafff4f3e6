//! Forty faults of providers and their tool calls, each with the visitor's view and the stored
//! message (`make provider-faults` prints the table). None is a clean end with missing text.

mod table;

use std::{collections::BTreeSet, fmt};

use futures::future::join_all;
use serde_json::json;
use switchboard_scripted_model::RecordedRequest;

use self::table::{Row, TextEvent, rows};
use crate::support::{Organization, OrganizationDocument, Reply, report};

/// Outcome for the visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// This complete text with a clean end.
    Says(String),
    /// This complete text with products.
    Shows(String, Vec<String>),
    /// A clean end after exactly this many bytes.
    Bounded(usize),
    /// A visible cut; this text is stored as incomplete.
    Cut(String),
    /// An error with this status and code.
    Refused(u16, String),
}

impl Outcome {
    /// Returns a description of the stored message.
    fn stored_message(&self) -> String {
        match self {
            Self::Says(text) | Self::Shows(text, _) => format!("completed, {} bytes", text.len()),
            Self::Bounded(bytes) => format!("completed, {bytes} bytes"),
            Self::Cut(text) => format!("incomplete, {} bytes", text.len()),
            Self::Refused(..) => "the question alone".to_owned(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says(text) => write!(formatter, "says {text:?}"),
            Self::Shows(text, titles) => {
                write!(formatter, "says {text:?}, shows {}", titles.join(", "))
            }
            Self::Bounded(bytes) => write!(formatter, "ends after {bytes} bytes"),
            Self::Cut(text) => write!(formatter, "visible cut after {text:?}"),
            Self::Refused(status, code) => write!(formatter, "{status} {code}"),
        }
    }
}

/// Longer texts are compared by their length.
const SHORT_BYTES_MAX: usize = 1_000;

async fn outcome(organization: &Organization, row: &Row) -> Outcome {
    organization.script_for(row.name, row.script.clone());
    let (client, agent) = (
        organization.client(),
        organization.agent(if row.tools { "shop" } else { "plain" }),
    );
    let reply = client
        .chat(agent, row.name, &format!("please [[{}]]", row.name))
        .await;
    if reply.status != 200 {
        let answer = reply.into_answer();
        let code = answer.json()["code"].as_str().unwrap().to_owned();
        answer.assert_problem(answer.status, Some(&code));
        let history = client.settled_history(agent, row.name, 1).await;
        assert_eq!(
            history["totalMessages"], 1,
            "{}: a failure is no message: {history}",
            row.name
        );
        return Outcome::Refused(answer.status, code);
    }
    let history = client.settled_history(agent, row.name, 2).await;
    let stored = &history["messages"][1];
    let content = stored["content"].as_str().unwrap();
    if !reply.ended_cleanly {
        assert!(
            content.starts_with(&reply.text()),
            "{}: what was shown is a prefix of what is stored",
            row.name
        );
        assert_eq!(stored["status"], "incomplete", "{}", row.name);
        return Outcome::Cut(content.to_owned());
    }
    assert_eq!(
        (stored["status"].as_str(), reply.text().as_str()),
        (Some("completed"), content),
        "{}",
        row.name
    );
    match titles(&reply) {
        titles if !titles.is_empty() => Outcome::Shows(content.to_owned(), titles),
        _ if content.len() > SHORT_BYTES_MAX => Outcome::Bounded(content.len()),
        _ => Outcome::Says(content.to_owned()),
    }
}

/// Returns the titles of the products that a reply shows.
pub(crate) fn titles(reply: &Reply) -> Vec<String> {
    let Some(spec) = reply.header("x-ui-spec") else {
        return Vec::new();
    };
    let spec: serde_json::Value = serde_json::from_str(spec).unwrap();
    let cards = spec["data"].as_array().unwrap().iter();
    cards
        .map(|card| card["title"].as_str().unwrap().to_owned())
        .collect()
}

/// Dialects with the JSON around the text of a text event.
const DIALECTS: [(&str, TextEvent); 2] = [
    (
        "chat-completions",
        (r#"{"choices":[{"delta":{"content":""#, r#""}}]}"#),
    ),
    (
        "responses",
        (r#"{"type":"response.output_text.delta","delta":""#, r#""}"#),
    ),
];

/// Runs all rows in one dialect. Returns each with its outcome and the number of calls.
async fn outcomes(api: &str, text_event: TextEvent) -> Vec<(Row, Outcome, usize)> {
    let product =
        |title: &str, url: &str| json!({"title": title, "price": "$9", "image": "", "url": url});
    let products = [
        product("Desk Lamp", "https://shop.example/desk"),
        product("Blue Chair", "https://shop.example/chair"),
    ];
    let organization = OrganizationDocument::new()
        .api(api)
        .agent("plain", json!({}))
        .shop(json!({"ecommerce": {"enabled": true, "products": products}}))
        .apply_to_shared()
        .await;
    let rows = rows(text_event);
    let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
    assert_eq!((rows.len(), names.len()), (40, 40));
    let outcomes = join_all(rows.iter().map(|row| outcome(&organization, row))).await;
    let requests = organization.requests();
    let calls = |row: &Row| {
        let marker = format!("[[{}]]", row.name);
        let mut questions = requests.iter().map(RecordedRequest::question);
        questions
            .by_ref()
            .filter(|question| question.contains(&marker))
            .count()
    };
    let rows = rows.into_iter().zip(outcomes);
    rows.map(|(row, outcome)| {
        let calls = calls(&row);
        (row, outcome, calls)
    })
    .collect()
}

#[tokio::test]
async fn forty_provider_faults_have_forty_known_outcomes() {
    let tables = DIALECTS.map(async |(api, text_event)| (api, outcomes(api, text_event).await));
    let mut wrong = Vec::new();
    for (api, table) in join_all(tables).await {
        report(&format!(
            "provider fault  # {:42} calls  {:22} client ({api})",
            "provider", "stored"
        ));
        for (number, (row, outcome, calls)) in table.iter().enumerate() {
            report(&format!(
                "provider fault {:2} {:42} {calls:5}  {:22} {outcome}",
                number + 1,
                row.name,
                outcome.stored_message()
            ));
            if *outcome != row.outcome || *calls != row.calls {
                wrong.push(format!(
                    "{api}, {}: {outcome} after {calls} calls, not {} after {}",
                    row.name, row.outcome, row.calls
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
