//! `switchboard read-file`: reads one file for a model, as a child process of a worker. Not for
//! people.

use std::io;

use clap::Args;
use switchboard_schemas::file::FileType;
use switchboard_workers::files::child;

/// Arguments of the child process.
#[derive(Args)]
pub(crate) struct ReadFileArguments {
    /// Media type of the file on the standard input.
    #[arg(long = "type")]
    kind: FileType,
}

/// Reads the standard input and writes the content to the standard output.
pub(crate) fn run(arguments: &ReadFileArguments) -> anyhow::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    Ok(child::run(arguments.kind, &mut input, &mut output)?)
}
