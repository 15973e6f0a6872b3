//! Entry point of the agent's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    parallax_agent::cli::main()
}
