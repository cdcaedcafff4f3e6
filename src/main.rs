//! The `switchboard` program: command line, configuration and the choice of a command.

mod commands;
mod config;
mod data_dir;
mod demo_organization;
mod installation;
mod log_writer;
mod ops_server;
mod serve;
mod supervisor;
mod telemetry;
mod terminal;

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use rustix::fs::Mode;

use crate::{
    commands::{
        admin_link::AdminCommand, apply::ApplyArguments, dead_letters::DeadLetterCommand,
        read_file::ReadFileArguments, route::RouteReplayArguments,
    },
    config::ServiceConfig,
    serve::ServeArguments,
};

/// Allocator for many small allocations on many threads, which replies cause.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code for an invalid configuration (`EX_CONFIG` of sysexits.h).
const EXIT_CONFIGURATION: u8 = 78;

/// Hosts AI agents behind a public chat API.
#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "Examples:\n  switchboard\n  switchboard --config switchboard.toml serve\n  switchboard apply -f organization.yaml --dry-run"
)]
struct CliArguments {
    /// TOML file that overrides the defaults; `switchboard config` prints the effective settings.
    #[arg(long, global = true, env = "SWITCHBOARD_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Run the service or one of its roles (the default command).
    #[command(
        after_help = "Examples:\n  switchboard serve\n  SWITCHBOARD__PROFILE=cluster switchboard serve --role ingress"
    )]
    Serve(ServeArguments),
    /// Create or update organizations, agents, teams and keys from a YAML or JSON file.
    #[command(
        after_help = "Examples:\n  switchboard apply -f organization.yaml --dry-run\n  switchboard apply -f organization.yaml\n  generate-document | switchboard apply -f - --url https://chat.example"
    )]
    Apply(ApplyArguments),
    /// Create missing topics, keyspace and tables.
    #[command(after_help = "Examples:\n  SWITCHBOARD__PROFILE=cluster switchboard migrate")]
    Migrate,
    /// Print the effective configuration with secrets hidden.
    #[command(
        after_help = "Examples:\n  switchboard config\n  switchboard --config switchboard.toml config"
    )]
    Config,
    /// List, show and replay dead letters: records that could not be handled.
    #[command(
        after_help = "Examples:\n  switchboard dlq list\n  switchboard dlq show 3 1204\n  switchboard dlq replay 3 1204"
    )]
    Dlq {
        #[command(subcommand)]
        command: DeadLetterCommand,
    },
    /// Replay recorded messages of a team and print routing decisions that would change.
    #[command(
        after_help = "Examples:\n  switchboard route --team front --replay\n  switchboard route --team front --replay -f changed-team.yaml"
    )]
    Route(RouteReplayArguments),
    /// Commands for administrators, such as a sign-in link.
    #[command(after_help = "Examples:\n  switchboard admin link")]
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Exit with status 0 if the local service is ready for traffic.
    #[command(after_help = "Examples:\n  switchboard healthcheck && echo ready")]
    Healthcheck,
    /// Print a completion script for a shell.
    #[command(
        after_help = "Examples:\n  switchboard completions bash > /etc/bash_completion.d/switchboard\n  switchboard completions zsh > \"${fpath[1]}/_switchboard\"\n  switchboard completions fish > ~/.config/fish/completions/switchboard.fish"
    )]
    Completions {
        /// The shell that reads the script.
        shell: Shell,
    },
    /// Read a file of a visitor from the standard input (used by workers).
    #[command(
        hide = true,
        after_help = "Examples:\n  switchboard read-file --type text/plain < notes.txt"
    )]
    ReadFile(ReadFileArguments),
}

fn main() -> ExitCode {
    // Databases and secrets are readable by their owner only, also in a shared directory.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let arguments = CliArguments::parse();
    // Packages build the scripts where no service is configured.
    if let Some(CliCommand::Completions { shell }) = arguments.command {
        return exit_code(commands::completions::run(
            &mut CliArguments::command(),
            shell,
        ));
    }
    // The child of a worker: nothing of this process may be set up before its limits.
    if let Some(CliCommand::ReadFile(arguments)) = &arguments.command {
        return exit_code(commands::read_file::run(arguments));
    }
    let config = match ServiceConfig::load(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            terminal::print_error(&error);
            return ExitCode::from(EXIT_CONFIGURATION);
        }
    };
    for warning in &config.warnings {
        terminal::print_error(&format_args!("warning: {warning}"));
    }
    let command = arguments.command.unwrap_or_else(default_command);
    exit_code(run(command, config))
}

/// Returns `serve` with the role of the environment.
fn default_command() -> CliCommand {
    CliCommand::Serve(ServeArguments::from_environment())
}

fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: CliCommand, config: ServiceConfig) -> anyhow::Result<()> {
    // Two dependencies enable different TLS providers, and the first connection fails unless one is
    // chosen.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        anyhow::bail!("another TLS provider is installed already");
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads(processors))
        .enable_all()
        .build()?;
    match command {
        CliCommand::Serve(arguments) => serve::run(&runtime, config, &arguments),
        CliCommand::Apply(arguments) => runtime.block_on(commands::apply::run(&config, &arguments)),
        CliCommand::Migrate => runtime.block_on(commands::migrate::run(&config)),
        CliCommand::Config => terminal::print_output(&config.to_toml()),
        CliCommand::Dlq { command } => {
            runtime.block_on(commands::dead_letters::run(&config, command))
        }
        CliCommand::Route(arguments) => runtime.block_on(commands::route::run(&config, &arguments)),
        CliCommand::Admin {
            command: AdminCommand::Link(arguments),
        } => runtime.block_on(commands::admin_link::run(&config, &arguments)),
        CliCommand::Completions { shell } => {
            commands::completions::run(&mut CliArguments::command(), shell)
        }
        CliCommand::ReadFile(arguments) => commands::read_file::run(&arguments),
        CliCommand::Healthcheck => runtime.block_on(commands::healthcheck::run(&config)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_examples(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let first = help.lines().nth(1).unwrap_or_default();
        assert!(
            help.starts_with("Examples:\n") && first.contains("switchboard"),
            "{path} has no example: {help:?}"
        );
        for inner in command.get_subcommands() {
            check_examples(inner, &path);
        }
    }

    #[test]
    fn help_of_every_command_has_examples() {
        CliArguments::command().debug_assert();
        check_examples(&CliArguments::command(), "");
    }
}
