//! CSV files (RFC 4180) for people, who open them in a spreadsheet.

use ::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue};

use super::response::HttpResponse;

/// Media type of a CSV file.
pub(super) const CSV: &str = "text/csv; charset=utf-8";

/// Replies with a file to save under that name.
pub(super) fn file_reply(name: &str, text: String) -> HttpResponse {
    let file = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\""));
    HttpResponse::bytes(CSV, text)
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(CONTENT_DISPOSITION, file.unwrap_or(HeaderValue::from_static("attachment")))
}

/// Writes a line of cells.
pub(super) fn line<const N: usize>(cells: [String; N]) -> String {
    format!("{}\r\n", cells.map(|text| cell(&text)).join(","))
}

/// Writes a cell (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe before it.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r', ';']) || text.starts_with(' ') {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
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
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
