//! Analytics totals equal a recount of every conversation over the admin API.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{Days, Utc};
use serde_json::{Value, json};

use crate::support::{
    Client, End, Organization, OrganizationDocument, PATIENCE, Reply, Script, TestService,
    eventually, send,
};

/// Recounted totals of an agent, a team or the organization.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecountedTotals {
    conversations: u64,
    messages: u64,
    by_status: BTreeMap<String, u64>,
    prompt_tokens: u64,
    completion_tokens: u64,
    response_times_ms: Vec<u64>,
    ratings: Vec<u64>,
}

/// Recounted totals of an organization.
#[derive(Default)]
struct Recount {
    all: RecountedTotals,
    by_agent: BTreeMap<String, RecountedTotals>,
    by_team: BTreeMap<String, RecountedTotals>,
}

impl Recount {
    /// Reads all conversations with their messages.
    async fn of(admin: &Client, organization: &Organization) -> Self {
        let mut recount = Self::default();
        for conversation in organization.conversations(admin).await.unwrap() {
            recount.add_conversation(&conversation);
        }
        recount
    }

    fn add_conversation(&mut self, conversation: &Value) {
        let messages = conversation["messages"]["items"].as_array().unwrap();
        let own_agent = conversation["agentId"].as_str();
        let team = conversation["teamId"].as_str();
        for (number, message) in messages.iter().enumerate() {
            if message["role"] != "user" {
                continue;
            }
            let reply = messages
                .get(number + 1)
                .filter(|next| next["role"] == "assistant");
            let agent = reply
                .and_then(|reply| reply["agentId"].as_str())
                .or(own_agent);
            self.change(agent, team, |counted| {
                counted.messages += 1;
                counted.add_reply(reply);
                if number == 0 {
                    counted.conversations += 1;
                    let rating = conversation["metadata"]["rating"].as_f64();
                    counted
                        .ratings
                        .extend(rating.map(|rating| (rating * 100.0).round() as u64));
                }
            });
        }
    }

    fn change(
        &mut self,
        agent: Option<&str>,
        team: Option<&str>,
        change: impl Fn(&mut RecountedTotals),
    ) {
        change(&mut self.all);
        agent
            .into_iter()
            .for_each(|agent| change(self.by_agent.entry(agent.to_owned()).or_default()));
        team.into_iter()
            .for_each(|team| change(self.by_team.entry(team.to_owned()).or_default()));
    }
}

impl RecountedTotals {
    fn add_reply(&mut self, reply: Option<&Value>) {
        let status = reply.map_or("failed", |reply| reply["status"].as_str().unwrap());
        *self.by_status.entry(status.to_owned()).or_default() += 1;
        if let Some(reply) = reply {
            self.prompt_tokens += reply["usage"]["promptTokens"].as_u64().unwrap();
            self.completion_tokens += reply["usage"]["completionTokens"].as_u64().unwrap();
            self.response_times_ms
                .push(reply["responseTime"].as_u64().unwrap());
        }
    }

    /// Asserts that the reported totals equal the recount.
    #[track_caller]
    fn assert_reported(mut self, report: &Value) {
        assert_eq!(report["conversations"], self.conversations, "{report:#}");
        assert_eq!(report["messages"], self.messages, "{report:#}");
        for status in ["completed", "incomplete", "failed", "cancelled"] {
            let counted = self.by_status.get(status).copied().unwrap_or_default();
            assert_eq!(report["replies"][status], counted, "{status} of {report:#}");
        }
        assert_eq!(report["tokens"]["prompt"], self.prompt_tokens, "{report:#}");
        assert_eq!(
            report["tokens"]["completion"], self.completion_tokens,
            "{report:#}"
        );
        self.response_times_ms.sort_unstable();
        assert_times(&report["responseTime"], &self.response_times_ms);
        // A transcript has no start time of the text; it lies before its end.
        let (first, whole) = (&report["firstTextTime"], &report["responseTime"]);
        assert!(
            first["count"].as_u64() <= whole["count"].as_u64(),
            "{report:#}"
        );
        assert!(
            first["averageMs"].as_u64() <= whole["p95Ms"].as_u64().map(|ms| ms + ms / 128),
            "{report:#}"
        );
        let sum: u64 = self.ratings.iter().sum();
        let count = self.ratings.len() as u64;
        let average = (sum + count / 2)
            .checked_div(count)
            .map(|hundredths| hundredths as f64 / 100.0);
        assert_eq!(
            (&report["ratings"]["count"], &report["ratings"]["average"]),
            (&json!(count), &json!(average))
        );
    }
}

#[track_caller]
fn assert_times(reported: &Value, sorted: &[u64]) {
    let count = sorted.len() as u64;
    assert_eq!(reported["count"], count, "{reported}");
    let average = (sorted.iter().sum::<u64>() + count / 2).checked_div(count);
    assert_eq!(reported["averageMs"], json!(average), "{reported}");
    for (name, percent) in [("p50Ms", 50), ("p95Ms", 95)] {
        let Some(last) = sorted.len().checked_sub(1) else {
            continue;
        };
        let exact = sorted[(sorted.len() * percent)
            .div_ceil(100)
            .saturating_sub(1)
            .min(last)];
        let reported = reported[name].as_u64().unwrap();
        assert!(
            reported.abs_diff(exact) * 128 <= exact,
            "{name}: {reported} for {exact}"
        );
    }
}

/// Returns the totals from yesterday to tomorrow, so that no midnight falls between them and the
/// recount.
async fn report(admin: &Client, organization: &Organization, query: &str) -> Value {
    let (from, to) = (Utc::now() - Days::new(1), Utc::now() + Days::new(1));
    let range = format!(
        "?from={}&to={}",
        from.format("%Y-%m-%d"),
        to.format("%Y-%m-%d")
    );
    let answer = admin
        .get(&organization.admin_path(&format!("/analytics{range}{query}")))
        .await;
    answer.assert_status(200);
    answer.json()
}

/// Asserts that the totals of the dashboard equal a recount of the stored conversations.
pub(crate) async fn assert_figures_equal_a_recount(admin: &Client, organization: &Organization) {
    let recount = Recount::of(admin, organization).await;
    let reported = report(admin, organization, "").await;
    recount.all.assert_reported(&reported["totals"]);
    for (list, id, counted) in [
        ("agents", "agentId", recount.by_agent),
        ("teams", "teamId", recount.by_team),
    ] {
        let reported = reported[list].as_array().unwrap();
        let ids: BTreeSet<_> = reported
            .iter()
            .map(|report| report[id].as_str().unwrap())
            .collect();
        assert_eq!(ids, counted.keys().map(String::as_str).collect(), "{list}");
        for (owner, counted) in counted {
            counted.assert_reported(
                reported
                    .iter()
                    .find(|report| report[id] == owner.as_str())
                    .unwrap(),
            );
        }
    }
}

async fn rate(client: &Client, agent: &str, session: &str, rating: Value) {
    let path = format!("/api/public/agents/{agent}/conversations/{session}");
    assert_eq!(
        client
            .patch(&path, &json!({ "rating": rating }))
            .await
            .status,
        200
    );
}

/// Creates two agents and a team with messages of every outcome.
async fn busy_shop() -> Organization {
    let members = json!([{"agent": "tea", "specialization": "tea"}, {"agent": "coffee", "specialization": "coffee"}]);
    let organization = OrganizationDocument::new()
        .agent("tea", json!({}))
        .agent("coffee", json!({}))
        .team(
            "front",
            json!({"routing": "round-robin", "members": members}),
        )
        .apply_to_shared()
        .await;
    organization.script(Script::says("We have some."));
    organization.script_for("fails", Script::refuses(400));
    organization.script_for("breaks", Script::counts(9, Duration::ZERO).ends(End::Cut));
    let client = organization.client();
    let (tea, coffee) = (organization.agent("tea"), organization.agent("coffee"));
    for (agent, session, message) in [
        (tea, "one", "hi"),
        (tea, "one", "and green?"),
        (tea, "two", "[[fails]]"),
        (tea, "two", "again"),
        (coffee, "three", "hi"),
        (coffee, "three", "[[breaks]]"),
    ] {
        client.chat(agent, session, message).await;
    }
    for (session, message) in [("four", "hi"), ("five", "hello"), ("four", "thanks")] {
        organization.team_chat(session, message).await.complete();
    }
    organization
}

async fn repeat_a_message(client: &Client, agent: &str) {
    for _ in 0..3 {
        let path = format!("/api/public/agents/{agent}/chat");
        let request = client
            .request(reqwest::Method::POST, &path)
            .header("idempotency-key", "once");
        let request = request.json(&json!({"message": "hi", "sessionId": "six"}));
        Reply::read(request.send().await.unwrap()).await.complete();
    }
}

async fn stop_a_reply(organization: &Organization, agent: &str) {
    organization.script_for("long", Script::counts(200, Duration::from_millis(50)));
    let client = organization.client();
    let mut response = client
        .open_chat(agent, &json!({"message": "[[long]]", "sessionId": "seven"}))
        .await;
    let mut reply = Reply::begin(&response);
    reply.read_at_least(&mut response, 12).await;
    let message = reply.required_header("x-message-id");
    assert_eq!(client.cancel(&message).await.status, 200);
    eventually("the reply is cancelled", PATIENCE, async || {
        (client.message(&message).await["status"] == "cancelled").then_some(())
    })
    .await;
}

#[tokio::test]
async fn totals_equal_a_recount_of_every_conversation() {
    let organization = busy_shop().await;
    let (admin, client) = (organization.service().admin(), organization.client());
    let tea = organization.agent("tea");
    assert_figures_equal_a_recount(&admin, &organization).await;
    repeat_a_message(&client, tea).await;
    stop_a_reply(&organization, tea).await;
    rate(&client, tea, "one", json!(2)).await;
    assert_figures_equal_a_recount(&admin, &organization).await;
    rate(&client, tea, "one", json!(4.5)).await;
    rate(&client, tea, "two", json!(1)).await;
    rate(&client, organization.agent("coffee"), "three", json!(5)).await;
    rate(&client, organization.agent("coffee"), "three", json!(3)).await;
    assert_figures_equal_a_recount(&admin, &organization).await;
    let reported = report(&admin, &organization, "").await["totals"].clone();
    let replies = json!({"completed": 8, "incomplete": 1, "failed": 1, "cancelled": 1});
    assert_eq!(
        (
            &reported["conversations"],
            &reported["messages"],
            &reported["replies"]
        ),
        (&json!(7), &json!(11), &replies)
    );
    assert_eq!(
        reported["ratings"],
        json!({"count": 3, "average": 2.83, "stars": [1, 0, 1, 0, 1]})
    );
}

#[tokio::test]
async fn totals_by_agent_team_and_csv_agree_with_the_whole() {
    let organization = busy_shop().await;
    let admin = organization.service().admin();
    let whole = report(&admin, &organization, "").await;
    for (parameter, list, id) in [
        ("agent", "agents", organization.agent("coffee")),
        ("team", "teams", organization.team("front")),
    ] {
        let part = report(&admin, &organization, &format!("&{parameter}={id}")).await;
        let reported = whole[list].as_array().unwrap().iter();
        let mut reported = reported
            .clone()
            .find(|report| report[format!("{parameter}Id")] == id)
            .unwrap()
            .clone();
        let fields = reported.as_object_mut().unwrap();
        fields.retain(|name, _| {
            *name != format!("{parameter}Id") && *name != format!("{parameter}Name")
        });
        assert_eq!(part["totals"], reported, "{parameter}");
    }
    let range = format!(
        "?from={}&to={}",
        whole["from"].as_str().unwrap(),
        whole["to"].as_str().unwrap()
    );
    let table = admin
        .get(&organization.admin_path(&format!("/analytics{range}&format=csv")))
        .await;
    assert_eq!(
        table.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    let file = table.header("content-disposition").unwrap();
    assert!(
        file.starts_with("attachment; filename=") && file.ends_with(".csv\""),
        "{file}"
    );
    for (accept, is_csv) in [
        ("text/csv", true),
        ("*/*", false),
        ("text/html, text/csv", false),
    ] {
        let path = organization.admin_path(&format!("/analytics{range}"));
        let request = admin.request(reqwest::Method::GET, &path);
        let answer = send(request.header("accept", accept)).await;
        assert_eq!(
            answer.text == table.text,
            is_csv,
            "{accept}: {}",
            answer.text
        );
    }
    let mut lines = table.text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for (name, reported) in [
        ("messages", &whole["totals"]["messages"]),
        ("failed", &whole["totals"]["replies"]["failed"]),
        ("completionTokens", &whole["totals"]["tokens"]["completion"]),
        ("conversations", &whole["totals"]["conversations"]),
    ] {
        let sum: u64 = rows
            .iter()
            .map(|row| row[column(name)].parse::<u64>().unwrap())
            .sum();
        assert_eq!(*reported, sum, "{name}");
    }
    for (list, id) in [
        ("teams", organization.team("front")),
        ("agents", organization.agent("coffee")),
    ] {
        let path = organization.admin_path(&format!("/{list}/{id}"));
        assert_eq!(admin.delete(&path).await.status, 204);
    }
    let without = report(&admin, &organization, "").await;
    assert_eq!(without["totals"], whole["totals"], "deleted agents count");
    let agents = without["agents"].as_array().unwrap();
    assert!(
        agents.iter().any(|agent| agent["agentName"].is_null()),
        "{agents:?}"
    );
}

#[tokio::test]
async fn another_organization_sees_none_of_the_totals() {
    let organization = busy_shop().await;
    let service = organization.service();
    let other = OrganizationDocument::new()
        .shop(json!({}))
        .apply(service)
        .await;
    let agent = format!("&agent={}", organization.agent("tea"));
    for query in ["", &agent] {
        let reported = report(&service.admin(), &other, query).await;
        assert_eq!(
            (&reported["totals"]["messages"], &reported["agents"]),
            (&json!(0), &json!([]))
        );
    }
}

#[tokio::test]
async fn totals_equal_a_recount_after_workers_are_killed_mid_reply() {
    const TALKS: usize = 6;
    let service = TestService::start().await;
    let organization = OrganizationDocument::new()
        .continuing()
        .shop(json!({}))
        .apply(&service)
        .await;
    organization.script(Script::counts(40, Duration::from_millis(50)).continues_prefix());
    let (client, agent) = (organization.client(), organization.shop().to_owned());
    client.chat(&agent, "before", "hi").await.complete();
    assert_figures_equal_a_recount(&service.admin(), &organization).await;
    let talks = (0..TALKS).map(|number| {
        let (client, agent) = (client.clone(), agent.clone());
        async move {
            let body = json!({"message": "go", "sessionId": format!("s{number}")});
            let mut response = client.open_chat(&agent, &body).await;
            Reply::begin(&response)
                .read_at_least(&mut response, 8)
                .await;
            response
        }
    });
    let open = futures::future::join_all(talks).await;
    service.kill_and_restart_workers().await;
    drop(open);
    let client = organization.client_at(&service.public_urls()[0]);
    for number in 0..TALKS {
        client
            .settled_history(&agent, &format!("s{number}"), 2)
            .await;
    }
    let admin = service.admin();
    // The cluster stores a message and its fact side by side.
    eventually("all of them are counted", PATIENCE, async || {
        (report(&admin, &organization, "").await["totals"]["messages"] == 1 + TALKS).then_some(())
    })
    .await;
    assert_figures_equal_a_recount(&admin, &organization).await;
}
