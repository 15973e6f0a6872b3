//! CSV files (RFC 4180) for people, who open them in a spreadsheet: read part by part, so that a long one needs no memory.

use std::convert::Infallible;
use std::future::Future;

use ::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parallax_core::csv::write_cell;

use super::error::{ApiError, HandlerResult};
use super::response::HttpResponse;

/// Media type of a CSV file.
pub(super) const CSV: &str = "text/csv; charset=utf-8";
/// Parts that are read before the reply begins: a shorter file is whole.
const PARTS_AT_ONCE: usize = 10;
/// Last line of a file that could not be read to its end.
const BROKEN: &str = "The export ended early. Try again.\r\n";

/// Source of a file's lines after the first, in parts.
pub(super) trait CsvParts: Send + Sized + 'static {
    /// Reads the next part; none after the last.
    ///
    /// # Errors
    /// If it can't be read: the file ends there.
    fn next_part(&mut self) -> impl Future<Output = Result<Option<String>, ApiError>> + Send;
}

/// Replies with a file to save under that name, which begins with the names of its columns.
///
/// # Errors
/// Those of the first parts.
pub(super) async fn reply<const N: usize>(name: &str, columns: [&str; N], mut parts: impl CsvParts) -> HandlerResult {
    let mut text = line(columns.map(str::to_owned));
    for _ in 0..PARTS_AT_ONCE {
        match parts.next_part().await? {
            Some(part) => text.push_str(&part),
            None => return Ok(file(name, text)),
        }
    }
    let rest = stream::unfold(Some(parts), |parts| async move {
        let mut parts = parts?;
        match parts.next_part().await {
            Ok(part) => part.map(|part| (Ok::<_, Infallible>(Bytes::from(part)), Some(parts))),
            Err(_) => Some((Ok(Bytes::from(BROKEN)), None)),
        }
    });
    Ok(file(name, text).with_stream(rest.boxed()))
}

fn file(name: &str, text: String) -> HttpResponse {
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}.csv\""));
    HttpResponse::bytes(CSV, text)
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with(CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment")))
}

/// Writes a line of cells.
pub(super) fn line<const N: usize>(cells: [String; N]) -> String {
    format!("{}\r\n", cells.map(|text| write_cell(&text)).join(","))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use parallax_service::ServiceError;

    use super::*;

    /// Numbered lines; the part with the number `fails_at` can't be read.
    struct NumberedParts {
        read: usize,
        count: usize,
        fails_at: Option<usize>,
    }

    impl CsvParts for NumberedParts {
        async fn next_part(&mut self) -> Result<Option<String>, ApiError> {
            if self.fails_at == Some(self.read) {
                return Err(ServiceError::NotFound.into());
            }
            let part = (self.read < self.count).then(|| line([self.read.to_string()]));
            self.read += 1;
            Ok(part)
        }
    }

    async fn text(count: usize, fails_at: Option<usize>) -> Result<String, ApiError> {
        let reply = reply("numbers", ["number"], NumberedParts { read: 0, count, fails_at }).await?;
        let whole = reply.into_warp().into_body().collect().await.unwrap().to_bytes();
        Ok(String::from_utf8(whole.to_vec()).unwrap())
    }

    fn numbers(count: usize) -> String {
        (0..count).fold("number\r\n".to_owned(), |text, number| format!("{text}{number}\r\n"))
    }

    #[tokio::test]
    async fn a_file_has_all_parts_also_those_after_the_reply_began() {
        for count in [0, 1, PARTS_AT_ONCE - 1, PARTS_AT_ONCE, PARTS_AT_ONCE + 1, 3 * PARTS_AT_ONCE] {
            assert_eq!(text(count, None).await.unwrap(), numbers(count), "{count}");
        }
    }

    #[tokio::test]
    async fn a_part_that_fails_is_an_error_at_first_and_the_last_line_later() {
        for early in [0, PARTS_AT_ONCE - 1] {
            assert!(text(20, Some(early)).await.is_err(), "{early}");
        }
        for late in [PARTS_AT_ONCE, PARTS_AT_ONCE + 5] {
            assert_eq!(text(20, Some(late)).await.unwrap(), format!("{}{BROKEN}", numbers(late)), "{late}");
        }
    }
}
