//! The binary `parallax`: reads the command line, runs it, and gives its exit code.

use std::process::ExitCode;

use clap::Parser;
use parallax_coordinator::cli::{self, Cli};
use parallax_coordinator::out;

fn main() -> ExitCode {
    // Fails only where a provider is installed already, which then is this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(out::usage(&error)),
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(cli));
            // A snapshot that is still being written is not waited for: it has no name yet, and the next one removes it.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            out::fault(&format!("the runtime can't start: {error}"));
            ExitCode::FAILURE
        }
    }
}
