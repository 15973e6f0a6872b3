//! Measures Parallax and prints figures: see `tests/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    parallax_tests::bench::main()
}
