//! CSV files (RFC 4180) for people, who open them in a spreadsheet.

use ::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue};
use parallax_core::csv::write_cell;

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
    format!("{}\r\n", cells.map(|text| write_cell(&text)).join(","))
}
