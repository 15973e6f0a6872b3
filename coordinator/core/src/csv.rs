//! Cells of CSV (RFC 4180): written so that no spreadsheet runs a text as a formula, and read back as they were.

use crate::validation::Rule;

/// Maximum number of cells of a line.
const MAX_CELLS: usize = 100;
/// First characters of a text that a spreadsheet runs as a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];
/// Character before such a text.
const GUARD: char = '\'';

/// Writes a cell. A formula gets an apostrophe before it; so does a text that already looks like a guarded one, so that
/// `unguarded` returns every text as it was.
pub fn write_cell(text: &str) -> String {
    let guard = if has_formula(text) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r', ';']) || text.starts_with(' ') {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

/// Returns a cell's text without the apostrophe that [`write_cell`] put before it.
pub(crate) fn unguarded(text: &str) -> &str {
    text.strip_prefix(GUARD).filter(|rest| has_formula(rest)).unwrap_or(text)
}

fn has_formula(text: &str) -> bool {
    text.trim_start_matches(GUARD).starts_with(FORMULA_STARTS)
}

/// Splits a line into cells; without a separator it is one cell. Quotes end on their line.
pub(crate) fn read_cells(line: &str, separator: Option<char>) -> Result<Vec<String>, Rule> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.trim().is_empty() => {
                cell.clear();
                is_quoted = true;
            }
            char if !is_quoted && Some(char) == separator => {
                cells.push(std::mem::take(&mut cell));
                if cells.len() >= MAX_CELLS {
                    return Err(format!("must have at most {MAX_CELLS} cells"));
                }
            }
            char => cell.push(char),
        }
    }
    if is_quoted {
        return Err("must close its quotes on the same line".to_owned());
    }
    cells.push(cell);
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, expected) in [
            ("ann@example.com", "ann@example.com"),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1@example.com", "'+1@example.com"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("=1,\"2\"", "\"'=1,\"\"2\"\"\""),
            ("Cart; API", "\"Cart; API\""),
            ("'=1", "''=1"),
            ("o'neil", "o'neil"),
            ("", ""),
        ] {
            assert_eq!(write_cell(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let texts = ["=1", "+a@example.com", "'+a@example.com", "''@x", "'quoted'", "a, \"b\"; c", " x", "", "@", "'"];
        let line = texts.map(write_cell).join(",");
        let read = read_cells(&line, Some(',')).unwrap();
        let read: Vec<&str> = read.iter().map(|cell| unguarded(cell)).collect();
        assert_eq!(read, texts, "{line}");
    }

    #[test]
    fn a_line_has_a_hundred_cells() {
        assert_eq!(read_cells(&",".repeat(99), Some(',')).unwrap().len(), 100);
        assert_eq!(read_cells(&",".repeat(100), Some(',')), Err("must have at most 100 cells".to_owned()));
        assert_eq!(read_cells(&",".repeat(100), None).unwrap().len(), 1);
    }
}
