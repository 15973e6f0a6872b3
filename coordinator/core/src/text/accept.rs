//! The request header `Accept` (RFC 9110, section 12.5.1): media ranges and their weights.

/// A media range of the header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediaRange<'a> {
    /// Type and subtype as sent, such as `text/plain` or `*/*`.
    pub media: &'a str,
    /// Version parameter of the range.
    pub version: Option<&'a str>,
    /// Weight from 0 (not acceptable) to 1; an invalid weight is 0.
    pub weight: f32,
}

impl MediaRange<'_> {
    /// Returns true if the range is exactly that type and subtype.
    pub fn is(&self, media: &str) -> bool {
        self.media.eq_ignore_ascii_case(media)
    }
}

/// Parses the media ranges of the header's values, in order.
pub fn media_ranges<'a>(values: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = MediaRange<'a>> {
    values.into_iter().flat_map(|value| value.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().filter(|media| media.contains('/'))?;
        let (mut version, mut weight) = (None, 1.0);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("version") {
                version = Some(value.trim().trim_matches('"'));
            } else if name.trim().eq_ignore_ascii_case("q") {
                let read = value.trim().parse::<f32>().ok();
                weight = read.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0);
            }
        }
        Some(MediaRange { media, version, weight })
    })
}

/// The weight of a media type: that of the most specific matching range, 0 without a match. An empty or
/// missing header accepts everything.
pub fn weight<'a>(values: impl IntoIterator<Item = &'a str>, media: &str) -> f32 {
    let (mut best, mut is_empty) = (None::<(u8, f32)>, true);
    let family = media.split_once('/').map_or(media, |(family, _)| family);
    for range in media_ranges(values) {
        is_empty = false;
        let precision = if range.is(media) {
            2
        } else if range.media.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(family)) {
            1
        } else if range.is("*/*") {
            0
        } else {
            continue;
        };
        if best.is_none_or(|(known, weight)| (precision, range.weight) > (known, weight)) {
            best = Some((precision, range.weight));
        }
    }
    if is_empty { 1.0 } else { best.map_or(0.0, |(_, weight)| weight) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_counts() {
        for (accept, expected) in [
            ("", 1.0),
            ("text/plain", 1.0),
            ("TEXT/Plain; q=0.5, */*", 0.5),
            ("text/*;q=0.3, */*;q=0.9", 0.3),
            ("*/*;q=0.2", 0.2),
            ("text/plain;q=0, */*", 0.0),
            ("text/plain;version=0.0.4;q=0.7", 0.7),
            ("text/plain;q=x", 0.0),
            ("text/plain;q=2", 0.0),
            ("application/json", 0.0),
            ("nonsense, , ;q=1", 1.0),
        ] {
            assert_eq!(weight([accept], "text/plain"), expected, "{accept}");
        }
        assert_eq!(weight([], "text/plain"), 1.0);
        assert_eq!(weight(["application/json", "text/*"], "text/plain"), 1.0, "over several headers");
    }

    #[test]
    fn a_range_names_its_version() {
        let ranges: Vec<_> = media_ranges(["a/b;version=1.0.0;q=0.5, c/d; Version=\"2\", e/f"]).collect();
        let versions: Vec<_> = ranges.iter().map(|range| (range.version, range.weight)).collect();
        assert_eq!(versions, [(Some("1.0.0"), 0.5), (Some("2"), 1.0), (None, 1.0)]);
    }
}
