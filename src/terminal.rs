//! What a person sees on the terminal: where the service is, and a line to paste.

use std::{fmt::Display, io::Write};

use switchboard_schemas::ids::AgentId;

/// Facts that the first screen shows.
pub(crate) struct Welcome<'a> {
    /// Base URL of the public API.
    pub(crate) public_url: &'a str,
    /// Where a browser reaches the dashboard.
    pub(crate) dashboard_url: &'a str,
    /// Base URL of the admin API; none where no token opens it.
    pub(crate) admin_url: Option<&'a str>,
    /// Address of the private port.
    pub(crate) ops: std::net::SocketAddr,
    /// Where the data lie.
    pub(crate) data_dir: &'a std::path::Path,
    /// The demo organization, if it is there.
    pub(crate) demo: Option<DemoLine>,
    /// The model that answers; none: the built-in demo.
    pub(crate) model: Option<&'a str>,
    /// Whether there is a key for a model that nobody has named.
    pub(crate) has_key_alone: bool,
}

/// What can be tried without configuring anything.
pub(crate) struct DemoLine {
    /// The demo agent.
    pub(crate) agent_id: String,
    /// The agent of the demo page.
    pub(crate) shop_id: AgentId,
    /// Its key.
    pub(crate) key: String,
    /// Signs in to its first account, once.
    pub(crate) sign_in: Option<String>,
}

/// Prints the first screen; a closed standard output is not a fault of the service.
pub(crate) fn welcome(facts: &Welcome<'_>) {
    let mut text = format!(
        "\nSwitchboard is running.\n\n  Public API   {}/api/public\n  API docs     {}/docs\n  Dashboard    {}/dashboard\n",
        facts.public_url, facts.public_url, facts.dashboard_url,
    );
    if let Some(url) = facts.admin_url {
        text.push_str(&format!("  Admin API    {url}/api/admin\n"));
    }
    text.push_str(&format!(
        "  Health       http://{}/readyz   (metrics: /metrics)\n  Data         {}\n",
        facts.ops,
        facts.data_dir.display(),
    ));
    match facts.model {
        Some(model) => text.push_str(&format!("  Model        {model}\n")),
        None if facts.has_key_alone => text.push_str(
            "  Model        built-in demo responder (not a language model):\n               OPENAI_API_KEY is set, but OPENAI_MODEL is not\n",
        ),
        None => text.push_str(
            "  Model        built-in demo responder (not a language model);\n               set OPENAI_API_KEY and OPENAI_MODEL to use a real one\n               (and OPENAI_BASE_URL for other providers)\n",
        ),
    }
    match &facts.demo {
        Some(demo) => {
            text.push_str(&format!("  Demo page    {}/demo\n", facts.public_url));
            text.push_str("\nChat with the demo guide:\n\n");
            text.push_str(&curl_line(
                "-N",
                facts.public_url,
                &demo.agent_id,
                &demo.key,
                "Hello! What can you do?",
            ));
            text.push_str(
                "\nChat with the demo shop, which replies with products (header X-UI-Spec):\n\n",
            );
            text.push_str(&curl_line(
                "-iN",
                facts.public_url,
                demo.shop_id.as_str(),
                &demo.key,
                "Do you have tea?",
            ));
        }
        None => text
            .push_str("\nCreate organizations, agents and keys with: switchboard apply -f FILE\n"),
    }
    text.push_str(&sign_in_lines(
        facts.demo.as_ref().and_then(|demo| demo.sign_in.as_deref()),
    ));
    text.push('\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn sign_in_lines(link: Option<&str>) -> String {
    match link {
        Some(link) => format!("\nSign in to the dashboard (works once):\n\n  {link}\n"),
        None => {
            "\nCreate a sign-in link with: switchboard admin link --organization SLUG\n".to_owned()
        }
    }
}

fn curl_line(options: &str, public_url: &str, agent_id: &str, key: &str, message: &str) -> String {
    format!(
        "  curl {options} {public_url}/api/public/agents/{agent_id}/chat \\\n    -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n    -d '{{\"message\": \"{message}\", \"sessionId\": \"demo-1\"}}'\n",
    )
}

/// Prints data on the standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints what went wrong on the error stream.
pub(crate) fn complain(error: &impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "switchboard: {error}");
}
