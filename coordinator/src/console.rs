//! Console output: the one file that prints lines, tables and JSON.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Prints a line. A closed pipe is not an error.
///
/// # Errors
/// Fails if the text could not be written: output that is shown only once, such as a key, must not be lost silently.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints information from a running program; a write error is reported and does not end the program.
pub(crate) fn info(text: &str) {
    if let Err(fault) = line(text) {
        error(&format!("standard output can't be written: {fault}"));
    }
}

/// Prints the command-line parser's help or error, and returns the exit code: 1 if requested help could not be
/// written.
pub(crate) fn usage(usage_error: &clap::Error) -> u8 {
    let printed = usage_error.print().and_then(|()| io::stdout().flush());
    match ignore_broken_pipe(printed) {
        Ok(()) => u8::try_from(usage_error.exit_code()).unwrap_or(2),
        Err(cause) => {
            error(&format!("standard output can't be written: {cause}"));
            1
        }
    }
}

/// This program as the user can run it from this shell: the path it was started with, or its bare name if found
/// through `PATH`.
pub(crate) fn program_path() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).filter(|path| path.components().count() > 1);
    path.map_or_else(|| "parallax".to_owned(), |path| shell_quoted(&path))
}

/// Quotes a path for a shell.
pub(crate) fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%,=".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Prints an error to standard error.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "parallax: {text}");
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As for [`line()`].
pub(crate) fn json(value: &Value) -> io::Result<()> {
    line(&format!("{value:#}"))
}

/// Prints rows under titles, each column as wide as its widest cell.
///
/// # Errors
/// As for [`line()`].
pub(crate) fn table(titles: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    line(&render_table(titles, rows))
}

fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Renders rows under titles, each column as wide as its widest cell.
pub(crate) fn render_table(titles: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = titles.iter().map(|title| heading(title)).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let lines_text = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines_text.collect::<Vec<_>>().join("\n")
}

/// Turns a field name into a heading: `createdAt` to `CREATED AT`.
fn heading(name: &str) -> String {
    let mut heading = String::with_capacity(name.len() + 2);
    for character in name.chars() {
        if character.is_uppercase() {
            heading.push(' ');
        }
        heading.extend(character.to_uppercase());
    }
    heading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["fra1".to_owned(), "europe".to_owned()], vec!["a".to_owned(), String::new()]];
        assert_eq!(render_table(&["name", "region"], &rows), "NAME  REGION\nfra1  europe\na");
        assert_eq!(heading("lastUsedAt"), "LAST USED AT");
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_would_split_it() {
        assert_eq!(shell_quoted(Path::new("target/release/parallax")), "target/release/parallax");
        assert_eq!(shell_quoted(Path::new("/my data/it's")), r"'/my data/it'\''s'");
    }

    #[test]
    fn only_a_broken_pipe_is_no_error() {
        assert!(ignore_broken_pipe(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(ignore_broken_pipe(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
