//! `switchboard route --replay`: a changed team replayed on its past messages.

use serde_json::{Value, json};

use crate::support::{Organization, OrganizationDocument, PATIENCE, SharedService, eventually};

const BILLING: &str = "Invoices, refunds, payments and billing questions";
const TECHNICAL: &str = "Technical problems, crashes, installation and error messages";
const ASKED: &str = "I want a refund for my last invoice";

fn team(routing: &str, billing: &str, technical: &str) -> Value {
    json!({"routing": routing, "defaultAgent": "general", "members": [
        {"agent": "billing", "specialization": billing}, {"agent": "technical", "specialization": technical}
    ]})
}

async fn desk(routing: &str) -> Organization {
    let document = OrganizationDocument::new()
        .agent("billing", json!({}))
        .agent("technical", json!({}));
    document
        .agent("general", json!({}))
        .team("front", team(routing, BILLING, TECHNICAL))
        .apply_to_shared()
        .await
}

/// Stores a conversation whose first message asks for a refund.
async fn recorded(organization: &Organization) {
    for message in [ASKED, "42"] {
        organization.team_chat("s", message).await.complete();
    }
    let stored = format!(
        "/api/admin/organizations/{}/conversations?team={}",
        organization.id,
        organization.team("front")
    );
    let admin = organization.service().admin();
    eventually("both turns are stored", PATIENCE, async || {
        let listed = admin.get(&stored).await.json();
        (listed["items"][0]["messageCount"] == 4).then_some(())
    })
    .await;
}

fn replay(organization: &Organization, further: &[&str]) -> (bool, String) {
    let service = organization.service();
    let url = service.admin_urls().remove(0);
    let mut arguments = vec![
        "route",
        "--replay",
        "--team",
        "front",
        "--url",
        &url,
        "--organization",
        &organization.id,
    ];
    arguments.extend(further);
    let (status, output) = service.command(&arguments);
    (status.success(), output)
}

#[tokio::test]
async fn unchanged_team_reports_no_changes() {
    let organization = desk("intent").await;
    recorded(&organization).await;
    let (ok, output) = replay(&organization, &[]);
    assert!(
        ok && output.contains("messages: 2, would change: 0"),
        "{output}"
    );
    assert!(
        output.contains("decided by words: 1, by meaning: 0, by continuity: 1"),
        "{output}"
    );
}

#[tokio::test]
async fn organization_is_optional_for_a_unique_team() {
    let service = SharedService::get().await;
    // The slug is unique to this run.
    let slug = format!("desk-{}", std::process::id());
    let document = OrganizationDocument::new().agent("billing", json!({}));
    let document = document
        .agent("technical", json!({}))
        .agent("general", json!({}));
    document
        .team(&slug, team("intent", BILLING, TECHNICAL))
        .apply_to_shared()
        .await;
    for _ in 0..2 {
        desk("intent").await;
    }
    let url = service.admin_urls().remove(0);
    let tried = |team: &str| service.command(&["route", "--replay", "--team", team, "--url", &url]);
    let (status, output) = tried(&slug);
    assert!(
        status.success() && output.contains("messages: 0, would change: 0"),
        "{output}"
    );
    let (status, output) = tried("front");
    assert!(
        !status.success() && output.contains("choose one with --organization"),
        "{output}"
    );
}

#[tokio::test]
async fn replayed_document_lists_rerouted_messages_without_text() {
    let organization = desk("intent").await;
    recorded(&organization).await;
    let mut swapped = team("intent", TECHNICAL, BILLING);
    swapped["slug"] = "front".into();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("changed.json");
    std::fs::write(
        &file,
        json!({"organizations": [{"slug": "o", "teams": [swapped]}]}).to_string(),
    )
    .unwrap();
    let file = file.to_string_lossy();
    let (ok, output) = replay(&organization, &["-f", &file]);
    assert!(
        ok && output.contains("messages: 2, would change: 1"),
        "{output}"
    );
    let row = output
        .lines()
        .find(|line| line.contains("billing -> technical: "))
        .unwrap_or_else(|| panic!("{output}"));
    assert!(
        row.starts_with("msg_") && row.contains("refund"),
        "the reason names what the member says: {row}"
    );
    assert!(!output.contains(ASKED), "{output}");
    let (_, output) = replay(&organization, &["-f", &file, "--show-text"]);
    assert!(output.contains(ASKED), "{output}");
    let reply = organization.team_chat("another", ASKED).await;
    reply.complete();
    assert_eq!(
        reply.required_header("x-agent-id"),
        organization.agent("billing"),
        "nothing was changed by trying"
    );
}

#[tokio::test]
async fn impossible_replay_is_explained() {
    let organization = desk("round-robin").await;
    let (ok, output) = replay(&organization, &[]);
    assert!(
        !ok && output.contains("does not route by intent"),
        "{output}"
    );
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("other.json");
    std::fs::write(
        &file,
        json!({"organizations": [{"teams": [{"slug": "back"}]}]}).to_string(),
    )
    .unwrap();
    let (ok, output) = replay(&organization, &["-f", &file.to_string_lossy()]);
    assert!(
        !ok && output.contains("contains neither the team"),
        "{output}"
    );
}
