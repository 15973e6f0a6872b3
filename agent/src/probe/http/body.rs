//! Reading a body for a keyword, piece by piece and no further than needed.

use http::header;
use http_body_util::BodyExt;
use parallax_protocol::result::{Failure, Phase};
use tokio::time::{Instant, timeout_at};

use super::{
    exchange::{self, Answer},
    judge::Search,
};

/// Bytes of a body that are read at most: 2 MiB.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// Looks for `keyword`, byte by byte as UTF-8, and stops as soon as it is found.
///
/// # Errors
/// Why the body could not be read to its end.
pub(super) async fn search(mut answer: Answer, keyword: &str, deadline: Instant) -> Result<Search, Failure> {
    let codings = answer.head.headers.get_all(header::CONTENT_ENCODING);
    if codings.iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(Search::Encoded);
    }
    let mut scan = Scan::new(keyword.as_bytes());
    let mut left = MAX_BODY;
    loop {
        let frame = match timeout_at(deadline, answer.body.frame()).await {
            Err(_) => return Err(Failure::Timeout { phase: Phase::Transfer }),
            Ok(None) => return Ok(Search::Missing),
            Ok(Some(Err(error))) => return Err(exchange::failure(&error)),
            Ok(Some(Ok(frame))) => frame,
        };
        let Some(data) = frame.data_ref() else { continue };
        if scan.feed(data.get(..left).unwrap_or(data)) {
            return Ok(Search::Found);
        }
        if data.len() > left {
            return Ok(Search::MissingSoFar);
        }
        left -= data.len();
    }
}

/// Looks for a needle in a stream (Knuth, Morris and Pratt): each byte is looked at once, wherever the stream is cut,
/// and a body made for the purpose can't make it slow.
struct Scan<'a> {
    needle: &'a [u8],
    /// For each length matched, how much of the needle's start is also the end of that much.
    borders: Vec<usize>,
    matched: usize,
}

impl<'a> Scan<'a> {
    fn new(needle: &'a [u8]) -> Self {
        let mut scan = Self { needle, borders: vec![0; 2.min(needle.len() + 1)], matched: 0 };
        let mut border = 0;
        for byte in needle.iter().skip(1) {
            border = scan.step(border, *byte);
            scan.borders.push(border);
        }
        scan
    }

    /// Whether the needle has been seen by the end of `piece`.
    fn feed(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            if self.matched == self.needle.len() {
                break;
            }
            self.matched = self.step(self.matched, *byte);
        }
        self.matched == self.needle.len()
    }

    /// The length matched after one more byte.
    fn step(&self, mut matched: usize, byte: u8) -> usize {
        loop {
            if self.needle.get(matched) == Some(&byte) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.borders.get(matched).copied().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(needle: &str, pieces: &[&[u8]]) -> bool {
        let mut scan = Scan::new(needle.as_bytes());
        pieces.iter().any(|piece| scan.feed(piece))
    }

    #[test]
    fn a_keyword_is_found_across_pieces() {
        assert!(found("all fine", &[b"<p>all", b" ", b"fine</p>"]));
        assert!(found("aab", &[b"aa", b"ab"]));
        assert!(found("abab", &[b"aba", b"", b"cabab"]));
        assert!(found("f\u{fc}r", &[b"f\xc3", b"\xbcr"]));
        assert!(!found("all fine", &[b"all", b"fine"]));
        assert!(!found("x", &[]));
        assert!(found("x", &[b"x"]));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_answer_of_the_whole(
            needle in "[ab]{1,6}",
            text in "[ab]{0,40}",
            cuts in proptest::collection::vec(0usize..40, 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(found(&needle, &pieces), text.contains(&needle));
        }
    }
}
