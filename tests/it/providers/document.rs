//! Renders `docs/providers.md`.

use std::fmt::Write as _;

use super::script_file::ProviderFile;

const HEAD: &str = "\
# Model providers

An agent can use any endpoint that speaks OpenAI's chat completions or its Responses API. This page is made from `tests/providers`: each line under
*Tested* is a script of what the provider sends or refuses, and runs with every `make test`. The scripts follow the providers'
documents and reports of their users; they are no proof that a provider has not changed since.

You give a base URL, a key and a model: in the dashboard (Settings, Providers), in the admin API, or in a file, in which agents
name their provider:

```yaml
organizations:
  - slug: acme
    name: Acme
    providers:
      - {slug: gemini, baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai', apiKey: …, model: gemini-3.8-flash}
    agents:
      - {slug: shop, name: Shop, provider: gemini}
```

`OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` set the provider of agents that name none (`SWITCHBOARD__MODEL__API=responses` its
dialect). While none of them is set, such agents use the first provider of their organization by slug, and without one the built-in
demo model. A new provider is used at once.

- **Base URL**: as in the table. A `/` or `/chat/completions` at its end is accepted; without its path the provider answers 404. An
  address in a private network must be applied by the operator, or allowed for members with
  `SWITCHBOARD__WORKERS__PROVIDER_PRIVATE_NETWORKS=10.0.0.0/8`.
- **Test connection** in the dashboard, or `POST …/providers/{id}/test`, says in plain words what works and what the provider said. It
  uses the model of the provider; an agent with a model, temperature or effort of its own is tested in the playground.
- **A chat fails with `MODEL_ERROR`**: test the connection, or read what the provider said in the transcript or in the playground.
  Visitors never see it.
- **What a model refuses is learned**: a request that is refused because of a parameter is sent again without it, or in its other
  form, and later requests to this model begin that way for an hour.
- **Slow models**: a model may be silent for 45 s before its first word, or for as long as `firstTokenTimeoutMs` of its provider says.
  Thoughts are signs of life. They are never shown or stored.

";

pub(super) fn render(providers: &[ProviderFile]) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| provider | base URL | model, for example | key |\n|---|---|---|---|\n");
    for provider in providers {
        let ProviderFile {
            name,
            base_url,
            model,
            key,
            ..
        } = provider;
        writeln!(
            text,
            "| [{name}](#{}) | `{base_url}` | `{model}` | {key} |",
            anchor(name)
        )
        .unwrap();
    }
    for provider in providers {
        writeln!(text, "\n## {}\n", provider.name).unwrap();
        for note in &provider.notes {
            writeln!(text, "- {}", note.trim_end()).unwrap();
        }
        if !provider.notes.is_empty() {
            text.push('\n');
        }
        text.push_str("Tested:\n\n");
        for script in &provider.scripts {
            writeln!(text, "- {}", script.name).unwrap();
        }
    }
    text
}

/// Returns the anchor that viewers of Markdown give a heading.
fn anchor(name: &str) -> String {
    let kept = name
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
