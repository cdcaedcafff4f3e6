//! `switchboard completions`: prints a script that completes commands and options in a shell.

use clap::Command;
use clap_complete::Shell;

use crate::terminal;

/// Prints the script for `shell`.
pub(crate) fn run(command: &mut Command, shell: Shell) -> anyhow::Result<()> {
    terminal::print_output(&script(command, shell))
}

fn script(command: &mut Command, shell: Shell) -> String {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::CliArguments;

    #[test]
    fn script_of_each_shell_completes_nested_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(&mut CliArguments::command(), shell);
            for word in ["healthcheck", "dry-run", "replay"] {
                assert!(script.contains(word), "{shell}: {word} is missing");
            }
        }
    }
}
