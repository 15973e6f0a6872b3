//! The one place that prints: what commands say on standard output and standard error.

use std::io::Write;

/// Prints a line for the person or script that gave the command.
pub(crate) fn say(text: &str) {
    // A reader that has gone away needs no answer.
    let _ = writeln!(std::io::stdout().lock(), "{}", text.trim_end());
}

/// Prints why a command failed.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "parallax-agent: {}", text.trim_end());
}
