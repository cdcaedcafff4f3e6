//! Switchboard: one program, whose argument says which part of the service it is.

mod banner;
mod commands;
mod config;
mod data_dir;
mod demo;
mod lifecycle;
mod open;
mod ops;
mod serve;
mod telemetry;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{
    commands::{
        admin_link::AdminCommand, apply::ApplyArguments, dead_letters::DeadLetterCommand,
        route::RouteArguments,
    },
    config::Config,
    serve::ServeArguments,
};

/// Replies are made of many small allocations on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code of a configuration that cannot be used (sysexits.h, EX_CONFIG).
const EXIT_CONFIGURATION: u8 = 78;

/// Hosts AI agents behind a public chat API.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// TOML file that overrides the defaults; `switchboard config` prints the effective settings.
    #[arg(long, global = true, env = "SWITCHBOARD_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
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
    Route(RouteArguments),
    /// Commands for administrators, such as a sign-in link.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Exit with status 0 if the local service is ready for traffic.
    Healthcheck,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load(arguments.config.as_deref()) {
        Ok(config) => config,
        Err(mistakes) => {
            banner::complain(&mistakes);
            return ExitCode::from(EXIT_CONFIGURATION);
        }
    };
    match run(
        arguments
            .command
            .unwrap_or(Command::Serve(ServeArguments::default())),
        config,
    ) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            banner::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, config: Config) -> anyhow::Result<()> {
    // Two libraries each bring their own default; naming one keeps the first TLS connection from failing.
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
        Command::Serve(arguments) => serve::run(&runtime, config, &arguments),
        Command::Apply(arguments) => runtime.block_on(commands::apply::run(&config, &arguments)),
        Command::Migrate => runtime.block_on(commands::migrate::run(&config)),
        Command::Config => banner::print(&config.to_toml()),
        Command::Dlq { command } => runtime.block_on(commands::dead_letters::run(&config, command)),
        Command::Route(arguments) => runtime.block_on(commands::route::run(&config, &arguments)),
        Command::Admin {
            command: AdminCommand::Link(arguments),
        } => runtime.block_on(commands::admin_link::run(&config, &arguments)),
        Command::Healthcheck => runtime.block_on(commands::healthcheck::run(&config)),
    }
}
