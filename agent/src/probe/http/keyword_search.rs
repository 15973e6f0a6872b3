//! Search for a text in a stream.

/// Searches a stream for a needle (Knuth-Morris-Pratt): each byte is read once, however the stream is split,
/// and a malicious body can't slow it down.
pub(super) struct KeywordSearch {
    needle: Vec<u8>,
    /// For each length matched, the length of the needle's prefix that is also a suffix of the match.
    borders: Vec<usize>,
    matched: usize,
}

impl KeywordSearch {
    pub(super) fn new(needle: &[u8]) -> Self {
        let mut scan = Self { needle: needle.to_vec(), borders: vec![0; 2.min(needle.len() + 1)], matched: 0 };
        let mut border = 0;
        for byte in needle.iter().skip(1) {
            border = scan.step(border, *byte);
            scan.borders.push(border);
        }
        scan
    }

    /// Returns true if the needle occurred by the end of `piece`.
    pub(super) fn feed(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            if self.matched == self.needle.len() {
                break;
            }
            self.matched = self.step(self.matched, *byte);
        }
        self.matched == self.needle.len()
    }

    /// Resets the search.
    pub(super) fn restart(&mut self) {
        self.matched = 0;
    }

    /// Returns the length matched after one more byte.
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
        let mut scan = KeywordSearch::new(needle.as_bytes());
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
        fn any_split_gives_the_same_result(
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
