//! Benchmarks of Parallax, printed as figures: see `tests/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    parallax_tests::bench::main()
}
