//! Output of commands on standard output and standard error; no other module prints.

use crate::error::AgentError;
use std::io::{self, Write};

/// Prints a line for the caller of the command. A closed pipe is not an error.
///
/// # Errors
/// [`AgentError::Output`] if it could not be written: a script would take silence for a result.
pub(crate) fn print_line(text: &str) -> Result<(), AgentError> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush())).map_err(AgentError::Output)
}

/// Prints the message of the command line's parser, help or an error, and returns the exit code: 1 if
/// requested help could not be written.
pub(crate) fn print_usage(error: &clap::Error) -> u8 {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match ignore_broken_pipe(printed) {
        Ok(()) => u8::try_from(error.exit_code()).unwrap_or(2),
        Err(written) => {
            print_error(&AgentError::Output(written).to_string());
            1
        }
    }
}

fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints the error of a failed command.
pub(crate) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "parallax-agent: {}", text.trim_end());
}
