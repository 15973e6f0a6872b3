//! The one file that prints: lines, tables and JSON for people and their scripts.

use std::io::{self, Write};

use serde_json::Value;

/// Prints a text and ends its line. A reader that is gone is no fault.
///
/// # Errors
/// Where the text could not be written: what is shown once, such as a key, must not be lost in silence.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_gone(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints what is good to know of a program that goes on whether or not it could be written.
pub fn notice(text: &str) {
    let _ = line(text);
}

/// Prints a fault where faults are looked for.
pub fn fault(text: &str) {
    let _ = writeln!(io::stderr().lock(), "parallax: {text}");
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As for [`line()`].
pub fn json(value: &Value) -> io::Result<()> {
    line(&format!("{value:#}"))
}

/// Prints rows under titles, each column as wide as its widest cell.
///
/// # Errors
/// As for [`line()`].
pub fn table(titles: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    line(&drawn(titles, rows))
}

fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn drawn(titles: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = titles.iter().map(|title| heading(title)).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let drawn = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// A field's name as a heading: `createdAt` as `CREATED AT`.
fn heading(name: &str) -> String {
    let mut heading = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_uppercase() {
            heading.push(' ');
        }
        heading.extend(letter.to_uppercase());
    }
    heading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["fra1".to_owned(), "europe".to_owned()], vec!["a".to_owned(), String::new()]];
        assert_eq!(drawn(&["name", "region"], &rows), "NAME  REGION\nfra1  europe\na");
        assert_eq!(heading("lastUsedAt"), "LAST USED AT");
    }

    #[test]
    fn only_a_reader_that_is_gone_is_no_fault() {
        assert!(unless_gone(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert!(unless_gone(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
