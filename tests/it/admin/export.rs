//! Export of conversations as JSON lines and CSV: list filters, all messages, and no spreadsheet
//! formulas.

use serde_json::{Value, json};

use crate::support::{Client, Organization, OrganizationDocument, Script, shop_saying};

const HOSTILE: &str = "=HYPERLINK(\"http://evil.example\";\"x\"), \"quoted\"\nsecond line";

async fn talked() -> Organization {
    let organization = OrganizationDocument::new()
        .shop(json!({}))
        .agent("help", json!({}))
        .apply_to_shared()
        .await;
    organization.script(Script::says("an answer"));
    for (agent, session, message) in [
        ("shop", "one", HOSTILE),
        ("help", "two", "plain"),
        ("shop", "three", "@SUM(A1)"),
    ] {
        let body = json!({"message": message, "sessionId": session, "visitorName": "=cmd|' /C calc'!A0", "stream": false});
        let path = format!("/api/public/agents/{}/chat", organization.agent(agent));
        assert_eq!(organization.client().post(&path, &body).await.status, 200);
    }
    organization
}

async fn file(
    admin: &Client,
    organization: &Organization,
    query: &str,
    media_type: &str,
) -> String {
    let answer = admin
        .get(&organization.admin_path(&format!("/conversations/export?{query}")))
        .await;
    answer.assert_status(200);
    assert_eq!(answer.header("content-type"), Some(media_type));
    assert!(
        answer
            .header("content-disposition")
            .unwrap()
            .starts_with("attachment; filename=")
    );
    answer.text
}

#[tokio::test]
async fn json_lines_hold_every_filtered_conversation_in_full() {
    let organization = talked().await;
    let query = format!("format=jsonl&agent={}", organization.shop());
    let text = file(
        &organization.service().admin(),
        &organization,
        &query,
        "application/x-ndjson",
    )
    .await;
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "conversation",
            "message",
            "message",
            "conversation",
            "message",
            "message"
        ]
    );
    assert_eq!(
        (&lines[0]["sessionId"], &lines[3]["sessionId"]),
        (&json!("three"), &json!("one"))
    );
    assert_eq!(lines[4]["content"], HOSTILE);
    assert_eq!(
        (&lines[5]["role"], &lines[5]["content"]),
        (&json!("assistant"), &json!("an answer"))
    );
    assert!(
        lines[4..]
            .iter()
            .all(|line| line["conversationId"] == lines[3]["id"])
    );
}

#[tokio::test]
async fn csv_has_a_row_for_each_message_and_no_formula_cells() {
    let organization = talked().await;
    let text = file(
        &organization.service().admin(),
        &organization,
        "format=csv",
        "text/csv; charset=utf-8",
    )
    .await;
    let rows: Vec<&str> = text
        .trim_start_matches('\u{feff}')
        .split("\r\n")
        .filter(|row| !row.is_empty())
        .collect();
    assert_eq!(rows.len(), 1 + 6, "{text}");
    assert!(
        rows[0].starts_with("conversationId,agentId,") && rows[0].ends_with(",content,attachments")
    );
    let quoted = HOSTILE.replace('"', "\"\"");
    assert!(text.contains(&format!("\"'{quoted}\"")), "{text}");
    for start in ["\"=", "\"+", "\"@", "\"-"] {
        let cells = text.replace("\"\"", "");
        assert!(!cells.contains(&format!(",{start}")), "{start} in {text}");
    }
}

#[tokio::test]
async fn export_is_streamed_and_audited() {
    let organization = shop_saying("ok").await;
    let (client, admin) = (organization.client(), organization.service().admin());
    // More messages than the export holds in memory.
    for _ in 0..55 {
        client
            .chat(organization.shop(), "long", "hi")
            .await
            .complete();
    }
    client
        .settled_history(organization.shop(), "long", 100)
        .await;
    let text = file(
        &admin,
        &organization,
        "visitorEmail=canary@example.com",
        "application/x-ndjson",
    )
    .await;
    assert_eq!(text, "");
    let text = file(&admin, &organization, "", "application/x-ndjson").await;
    assert_eq!(text.lines().count(), 1 + 110);
    let log = admin
        .get(&organization.admin_path("/audit?action=export"))
        .await;
    assert_eq!(log.json()["items"].as_array().unwrap().len(), 2);
    assert!(!log.text.contains("canary"));
    let wrong = admin
        .get(&organization.admin_path("/conversations/export?format=xls"))
        .await;
    assert_eq!(
        wrong.assert_problem(400, Some("INVALID_REQUEST_DATA"))["param"],
        "format"
    );
}
