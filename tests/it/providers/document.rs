//! Renders `docs/providers.md`.

use std::fmt::Write as _;

use super::script_file::ProviderFile;

const HEAD: &str = "\
# Model providers

An agent can use any endpoint that speaks OpenAI's chat completions. This page is made from `tests/providers`: each line under
*Tested* is a script of what the provider sends or refuses, and runs with every `make test`. The scripts follow the providers'
documents and reports of their users; they are no proof that a provider has not changed since.

You give a base URL, a key and a model (dashboard, Settings, Providers; or `providers` in the file of `switchboard apply`). What a
model refuses is learned: a request that is refused because of a parameter is sent again without it, or in its other form, and
later requests to this model begin that way for an hour. Thoughts of a model are never shown or stored.

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
