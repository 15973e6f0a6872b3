//! The one file that prints: lines, tables and JSON for people and their scripts.

use std::io::{self, Write};

use serde_json::Value;

/// Prints a text and ends its line. A reader that is gone is no fault.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a fault where faults are looked for.
pub fn fault(text: &str) {
    let _ = writeln!(io::stderr().lock(), "parallax: {text}");
}

/// Prints a value as indented JSON.
pub fn json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Prints rows under titles, each column as wide as its widest cell.
pub fn table(titles: &[&str], rows: &[Vec<String>]) {
    line(&drawn(titles, rows));
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
}
