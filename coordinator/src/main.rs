//! Entry point of the program `parallax`.

use std::process::ExitCode;

fn main() -> ExitCode {
    parallax_coordinator::cli::main()
}
