//! Output of commands on standard output and standard error; no other module prints.

use crate::error::Error;
use std::io::{self, Write};

/// Prints a line for the caller of the command. A closed pipe is not an error.
///
/// # Errors
/// [`Error::Output`] if it could not be written: a script would take silence for a result.
pub(crate) fn say(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    unless_gone(writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush())).map_err(Error::Output)
}

/// Prints the message of the command line's parser, help or an error, and returns the exit code: 1 if
/// requested help could not be written.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match unless_gone(printed) {
        Ok(()) => u8::try_from(error.exit_code()).unwrap_or(2),
        Err(written) => {
            complain(&Error::Output(written).to_string());
            1
        }
    }
}

fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints the error of a failed command.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "parallax-agent: {}", text.trim_end());
}
