//! The binary `parallax`: parses the command line, runs the command, and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use parallax_coordinator::cli::{self, Cli};
use parallax_coordinator::console;

fn main() -> ExitCode {
    // Fails only if a provider is already installed, which is then this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(console::usage(&error)),
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(cli));
            // A snapshot in progress is not awaited: it has no final name yet, and the next snapshot removes it.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            console::error(&format!("the async runtime can't start: {error}"));
            ExitCode::FAILURE
        }
    }
}
