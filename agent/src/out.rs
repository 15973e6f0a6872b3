//! The one place that prints: what commands say on standard output and standard error.

use crate::error::Error;
use std::io::{self, Write};

/// Prints a line for the person or script that gave the command. A reader that has gone away is no fault.
///
/// # Errors
/// [`Error::Output`] where it could not be written: a script would take silence for an answer.
pub(crate) fn say(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    unless_gone(writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush())).map_err(Error::Output)
}

/// Prints what the command line's parser has to say, help or a fault, and gives the exit code: 1 where a help that was
/// asked for could not be written.
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

/// Prints why a command failed.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "parallax-agent: {}", text.trim_end());
}
