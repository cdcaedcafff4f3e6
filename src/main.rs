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

use clap::{Parser, Subcommand};
use rustix::fs::Mode;

use crate::{
    commands::{
        admin_link::AdminCommand, apply::ApplyArguments, dead_letters::DeadLetterCommand,
        route::RouteReplayArguments,
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
#[command(version, about)]
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
    Serve(ServeArguments),
    /// Create or update organizations, agents, teams and keys from a YAML or JSON file.
    Apply(ApplyArguments),
    /// Create missing topics, keyspace and tables.
    Migrate,
    /// Print the effective configuration with secrets hidden.
    Config,
    /// List, show and replay dead letters: records that could not be handled.
    Dlq {
        #[command(subcommand)]
        command: DeadLetterCommand,
    },
    /// Replay recorded messages of a team and print routing decisions that would change.
    Route(RouteReplayArguments),
    /// Commands for administrators, such as a sign-in link.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Exit with status 0 if the local service is ready for traffic.
    Healthcheck,
}

fn main() -> ExitCode {
    // Databases and secrets are readable by their owner only, also in a shared directory.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let arguments = CliArguments::parse();
    let config = match ServiceConfig::load(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            terminal::print_error(&error);
            return ExitCode::from(EXIT_CONFIGURATION);
        }
    };
    match run(
        arguments
            .command
            .unwrap_or(CliCommand::Serve(ServeArguments::default())),
        config,
    ) {
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
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
        CliCommand::Healthcheck => runtime.block_on(commands::healthcheck::run(&config)),
    }
}
