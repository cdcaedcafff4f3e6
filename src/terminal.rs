//! Output on the terminal: the summary of a started service, and errors.

use std::{fmt::Display, io::Write};

use switchboard_schemas::ids::AgentId;

/// Facts about a started service, for the summary on the terminal.
pub(crate) struct StartSummary<'a> {
    /// Base URL of the public API.
    pub(crate) public_url: &'a str,
    pub(crate) dashboard_url: &'a str,
    /// Base URL of the admin API; none without an admin token.
    pub(crate) admin_url: Option<&'a str>,
    /// Address of the private port.
    pub(crate) ops_address: std::net::SocketAddr,
    /// Data directory of the embedded profile.
    pub(crate) data_dir: &'a std::path::Path,
    /// Access to the demo organization, if it exists.
    pub(crate) demo: Option<DemoAccess>,
    /// Name of the default model; none: the built-in demo responder.
    pub(crate) model: Option<&'a str>,
    /// An API key for a model is set, but no model is named.
    pub(crate) has_only_key: bool,
}

/// Access to the demo organization: ids, key and sign-in link.
pub(crate) struct DemoAccess {
    pub(crate) agent_id: String,
    /// Id of the shop agent, which the demo page shows.
    pub(crate) shop_id: AgentId,
    /// API key of the demo organization.
    pub(crate) key: String,
    /// Single-use sign-in link for the first account; none if that account cannot sign in, or if
    /// the output is no terminal.
    pub(crate) sign_in_link: Option<String>,
}

/// Prints the summary of a started service. A closed standard output is ignored.
pub(crate) fn print_summary(facts: &StartSummary<'_>) {
    let mut text = format!(
        "\nSwitchboard is running.\n\n  Public API   {}/api/public\n  API docs     {}/docs\n  Dashboard    {}/dashboard\n",
        facts.public_url, facts.public_url, facts.dashboard_url,
    );
    if let Some(url) = facts.admin_url {
        text.push_str(&format!("  Admin API    {url}/api/admin\n"));
    }
    text.push_str(&format!(
        "  Health       http://{}/readyz   (metrics: /metrics)\n  Data         {}\n",
        facts.ops_address,
        facts.data_dir.display(),
    ));
    match facts.model {
        Some(model) => text.push_str(&format!("  Model        {model}\n")),
        None if facts.has_only_key => text.push_str(
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
        facts
            .demo
            .as_ref()
            .and_then(|demo| demo.sign_in_link.as_deref()),
    ));
    text.push('\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn sign_in_lines(link: Option<&str>) -> String {
    match link {
        Some(link) => format!("\nSign in to the dashboard (works once):\n\n  {link}\n"),
        None => "\nCreate a sign-in link with: switchboard admin link\n".to_owned(),
    }
}

fn curl_line(options: &str, public_url: &str, agent_id: &str, key: &str, message: &str) -> String {
    format!(
        "  curl {options} {public_url}/api/public/agents/{agent_id}/chat \\\n    -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n    -d '{{\"message\": \"{message}\", \"sessionId\": \"demo-1\"}}'\n",
    )
}

pub(crate) fn print_output(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints an error on the standard error stream.
pub(crate) fn print_error(error: &impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "switchboard: {error}");
}
