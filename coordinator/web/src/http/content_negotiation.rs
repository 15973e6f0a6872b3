//! Content negotiation (RFC 9110, section 12.5): reads `Accept` and `Accept-Encoding`.

use ::http::HeaderMap;
use ::http::header::ACCEPT;
use parallax_core::text::accept::media_ranges;

use super::response::header_values;

/// Returns true for a browser's page load. Programs accept anything and get JSON.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
}

/// Returns true if the client lists Markdown and prefers it at least as much as HTML (RFC 9110, 12.5.1). Browsers
/// don't list it.
pub(super) fn prefers_markdown(headers: &HeaderMap) -> bool {
    values_prefer_markdown(header_values(headers, &ACCEPT))
}

/// Like [`prefers_markdown`], for values of `accept`.
pub(super) fn values_prefer_markdown<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut markdown, mut html) = (0.0, 0.0);
    for range in media_ranges(accepted) {
        if range.is("text/markdown") {
            markdown = range.weight;
        } else if range.is("text/html") {
            html = range.weight;
        }
    }
    markdown > 0.0 && markdown >= html
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
    Plain,
}

/// Chooses the smallest encoding that these values of `accept-encoding` allow (RFC 9110, 12.5.3); a weight of 0
/// excludes an encoding.
pub(super) fn encoding<'a>(accepted: impl Iterator<Item = &'a str>) -> Encoding {
    let (mut brotli, mut gzip) = (false, false);
    for one in accepted.flat_map(|value| value.split(',')) {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        let is_taken = weight.is_ok_and(|weight| weight > 0.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("br") => brotli = is_taken,
            name if name.eq_ignore_ascii_case("gzip") => gzip = is_taken,
            _ => {}
        }
    }
    match (brotli, gzip) {
        (true, _) => Encoding::Brotli,
        (false, true) => Encoding::Gzip,
        (false, false) => Encoding::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_for_clients_that_list_it_and_do_not_prefer_html() {
        for (accepted, expected) in [
            ("text/markdown", true),
            ("text/markdown, text/html, */*", true),
            ("text/html;q=0.9, Text/Markdown;q=0.9", true),
            ("text/html, text/markdown;q=0.8", false),
            ("text/markdown;q=0", false),
            ("text/markdown;q=x", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = [(ACCEPT, accepted.parse().unwrap())].into_iter().collect();
            assert_eq!(prefers_markdown(&headers), expected, "{accepted}");
        }
    }

    #[test]
    fn a_client_gets_the_smallest_encoding_it_accepts() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", Encoding::Brotli),
            ("GZIP;q=0.5", Encoding::Gzip),
            ("br;q=0, gzip", Encoding::Gzip),
            ("br; q=0.0", Encoding::Plain),
            ("identity", Encoding::Plain),
            ("gzip;q=x", Encoding::Plain),
            ("", Encoding::Plain),
        ] {
            assert_eq!(encoding([accepted].into_iter()), expected, "{accepted}");
        }
        assert_eq!(encoding([].into_iter()), Encoding::Plain);
        assert_eq!(encoding(["gzip", "br"].into_iter()), Encoding::Brotli);
    }
}
