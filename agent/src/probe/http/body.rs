//! Reading of a body for a keyword, in pieces and no further than needed.

use std::io::{self, Write};

use encoding_rs::Decoder;
use parallax_protocol::{check::WireHttpCheck, result::WireOwnFault};
use tokio::time::Instant;

use super::{
    charset::{self, DeclaredCharset},
    coding::{self, DecodeStage},
    exchange::HopResponse,
    judge::KeywordSearchResult,
    keyword_search::KeywordSearch,
};
use crate::probe::{facts::CheckError, memory_budget::MemoryShare};

/// Maximum number of bytes of a body that are read, as sent and as decoded; decompression bombs end there
/// too.
const MAX_BODY: usize = WireHttpCheck::MAX_BODY_BYTES;

/// Searches for `keyword` in the text of the body and stops as soon as it is found. The memory is charged to
/// the account of `share`.
///
/// # Errors
/// The reason why the body could not be read to its end.
pub(super) async fn search(
    mut answer: HopResponse,
    keyword: &str,
    deadline: Instant,
    share: &MemoryShare,
) -> Result<KeywordSearchResult, CheckError> {
    let text = TextStage::new(charset::from_head(&answer.head.headers), keyword);
    let Some(mut first) = coding::decoding_stages(&answer.head.headers, Box::new(text), share) else {
        return Ok(KeywordSearchResult::Undecodable);
    };
    let mut left = MAX_BODY;
    while let Some(data) = answer.next_piece(deadline).await? {
        let piece = data.get(..left).unwrap_or(&data);
        if let Err(error) = first.write_all(piece) {
            return end_of(&error);
        }
        if data.len() > left {
            // Buffered data may still contain it; the error of the missing rest is already known.
            let found = first.end().is_err_and(|error| end_of(&error) == Ok(KeywordSearchResult::Found));
            return Ok(if found { KeywordSearchResult::Found } else { KeywordSearchResult::MissingInPart });
        }
        left -= data.len();
    }
    // An empty body is valid in every coding.
    if left == MAX_BODY {
        return Ok(KeywordSearchResult::Missing);
    }
    first.end().map_or_else(|error| end_of(&error), |()| Ok(KeywordSearchResult::Missing))
}

/// Ends the reading of a body: the keyword is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("found")]
struct KeywordFound;

fn end_of(error: &io::Error) -> Result<KeywordSearchResult, CheckError> {
    if error.get_ref().is_some_and(|inner| inner.is::<KeywordFound>()) {
        return Ok(KeywordSearchResult::Found);
    }
    match error.kind() {
        io::ErrorKind::OutOfMemory => Err(CheckError::Own(WireOwnFault::Overloaded)),
        io::ErrorKind::FileTooLarge => Ok(KeywordSearchResult::MissingInPart),
        _ => Ok(KeywordSearchResult::Undecodable),
    }
}

/// The last stage: decodes bytes to characters and searches them.
struct TextStage {
    keyword_search: KeywordSearch,
    /// `None` until the start of the document has been inspected.
    characters: Option<Decoder>,
    beginning: Vec<u8>,
    undone: usize,
}

impl TextStage {
    fn new(charset: DeclaredCharset, keyword: &str) -> Self {
        let characters = match charset {
            // A byte order mark takes precedence.
            DeclaredCharset::Named(encoding) => Some(encoding.new_decoder()),
            DeclaredCharset::InDocument => None,
        };
        Self { keyword_search: KeywordSearch::new(keyword.as_bytes()), characters, beginning: Vec::new(), undone: 0 }
    }

    fn feed(&mut self, piece: &[u8], is_last: bool) -> io::Result<()> {
        if self.characters.is_some() {
            return self.read(piece, is_last);
        }
        self.beginning.extend(piece);
        // Most keywords have the same bytes in most encodings, so the search can start at once.
        if self.keyword_search.feed(piece) {
            return Err(io::Error::other(KeywordFound));
        }
        if !is_last && self.beginning.len() < charset::PRESCAN {
            return Ok(());
        }
        self.keyword_search.restart();
        let beginning = std::mem::take(&mut self.beginning);
        let prescan = beginning.get(..charset::PRESCAN).unwrap_or(&beginning);
        self.characters = Some(charset::from_document(prescan).new_decoder());
        self.read(&beginning, is_last)
    }

    fn read(&mut self, mut piece: &[u8], is_last: bool) -> io::Result<()> {
        let Some(characters) = self.characters.as_mut() else { return Ok(()) };
        let mut text = [0; 4096];
        loop {
            let (result, read, written, _) = characters.decode_to_utf8(piece, &mut text, is_last);
            if self.keyword_search.feed(text.get(..written).unwrap_or_default()) {
                return Err(io::Error::other(KeywordFound));
            }
            piece = piece.get(read..).unwrap_or_default();
            if result == encoding_rs::CoderResult::InputEmpty {
                return Ok(());
            }
        }
    }
}

impl Write for TextStage {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let left = MAX_BODY.saturating_sub(self.undone);
        let (now, rest) = piece.split_at_checked(left).unwrap_or((piece, &[]));
        self.undone += now.len();
        self.feed(now, false)?;
        if rest.is_empty() { Ok(piece.len()) } else { Err(io::ErrorKind::FileTooLarge.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for TextStage {
    fn end(&mut self) -> io::Result<()> {
        self.feed(&[], true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::probe::memory_budget::MemoryBudget;
    use encoding_rs::{SHIFT_JIS, UTF_8, WINDOWS_1252};

    fn search_in(charset: DeclaredCharset, keyword: &str, pieces: &[&[u8]]) -> KeywordSearchResult {
        let mut text = TextStage::new(charset, keyword);
        let looked = pieces.iter().try_for_each(|piece| text.write_all(piece)).and_then(|()| text.end());
        looked.map_or_else(|error| end_of(&error).unwrap(), |()| KeywordSearchResult::Missing)
    }

    #[test]
    fn a_keyword_is_found_in_the_characters_the_bytes_stand_for() {
        let latin = DeclaredCharset::Named(WINDOWS_1252);
        assert_eq!(search_in(latin, "f\u{fc}r", &[b"f\xfcr"]), KeywordSearchResult::Found);
        assert_eq!(search_in(DeclaredCharset::Named(UTF_8), "f\u{fc}r", &[b"f\xfcr"]), KeywordSearchResult::Missing);
        assert_eq!(
            search_in(DeclaredCharset::Named(UTF_8), "f\u{fc}r", &[b"f\xc3", b"\xbcr"]),
            KeywordSearchResult::Found
        );
        let kana = DeclaredCharset::Named(SHIFT_JIS);
        assert_eq!(
            search_in(kana, "\u{30c6}\u{30b9}\u{30c8}", &[b"\x83", b"e\x83X", b"\x83g"]),
            KeywordSearchResult::Found
        );
        // A byte order mark takes precedence.
        assert_eq!(search_in(latin, "ok", &[b"\xff\xfeo\0k\0"]), KeywordSearchResult::Found);
        let html = b"<meta charset=latin1><p>f\xfcr</p>";
        assert_eq!(search_in(DeclaredCharset::InDocument, "f\u{fc}r", &[html]), KeywordSearchResult::Found);
        let long = [html.as_slice(), &[b'x'; 3000], b"sp\xe4t"].concat();
        assert_eq!(search_in(DeclaredCharset::InDocument, "sp\u{e4}t", &[&long]), KeywordSearchResult::Found);
    }

    #[test]
    fn a_body_is_searched_up_to_the_limit() {
        let bulk = vec![b'x'; MAX_BODY - 2];
        let plain = DeclaredCharset::Named(UTF_8);
        assert_eq!(search_in(plain, "ok", &[&bulk, b"ok"]), KeywordSearchResult::Found);
        assert_eq!(search_in(plain, "ok", &[&bulk, b"_ok"]), KeywordSearchResult::MissingInPart);
        assert_eq!(search_in(plain, "ok", &[&bulk, b"__"]), KeywordSearchResult::Missing);
    }

    /// Searches a body in this coding.
    fn search_coded(coding: &'static str, body: &[u8]) -> KeywordSearchResult {
        let headers = [(http::header::CONTENT_ENCODING, http::HeaderValue::from_static(coding))];
        let text = TextStage::new(DeclaredCharset::Named(UTF_8), "ok");
        let share = Arc::<MemoryBudget>::default().share(1);
        let mut first = coding::decoding_stages(&headers.into_iter().collect(), Box::new(text), &share).unwrap();
        let looked = body.chunks(1000).try_for_each(|piece| first.write_all(piece)).and_then(|()| first.end());
        looked.map_or_else(|error| end_of(&error).unwrap(), |()| KeywordSearchResult::Missing)
    }

    #[test]
    fn a_decompression_bomb_is_a_body_that_is_too_large() {
        let gzip = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let zeros = vec![0; 16 * MAX_BODY];
        assert_eq!(search_coded("gzip", &gzip(&zeros)), KeywordSearchResult::MissingInPart);
        assert_eq!(search_coded("gzip, gzip", &gzip(&gzip(&zeros))), KeywordSearchResult::MissingInPart);
        let found = [b"all is ok".as_slice(), &zeros].concat();
        assert_eq!(search_coded("gzip", &gzip(&found)), KeywordSearchResult::Found);
        assert_eq!(search_coded("gzip", b"ok"), KeywordSearchResult::Undecodable);
        assert_eq!(search_coded("UTF-8", b"ok"), KeywordSearchResult::Found);
    }

    /// Starts reading a coded body of this account that stalls, and returns everything it holds.
    fn stalled(coding: &'static str, body: &[u8], share: &MemoryShare) -> io::Result<Box<dyn DecodeStage>> {
        let headers = [(http::header::CONTENT_ENCODING, http::HeaderValue::from_static(coding))];
        let text = TextStage::new(DeclaredCharset::Named(UTF_8), "ok");
        let mut first = coding::decoding_stages(&headers.into_iter().collect(), Box::new(text), share).unwrap();
        body.chunks(16 * 1024).try_for_each(|piece| first.write_all(piece)).map(|()| first)
    }

    #[test]
    fn bodies_of_one_account_that_stall_leave_memory_to_those_of_another() {
        let budget = Arc::new(MemoryBudget::default());
        let long = vec![7; MAX_BODY];
        for coding in ["zstd", "zstd, zstd"] {
            let hostile = budget.share(1);
            let mut held = Vec::new();
            let refused = loop {
                match stalled(coding, &long, &hostile) {
                    Ok(first) => held.push(first),
                    Err(error) => break error,
                }
                assert!(held.len() < 70, "one account can't use all memory");
            };
            assert_eq!(end_of(&refused), Err(CheckError::Own(WireOwnFault::Overloaded)));
            let text =
                ruzstd::encoding::compress_to_vec(b"all is ok".as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
            let mut second_account = stalled("zstd", &text, &budget.share(2)).unwrap();
            assert_eq!(end_of(&second_account.end().unwrap_err()), Ok(KeywordSearchResult::Found));
        }
    }
}
