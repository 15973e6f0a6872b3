//! Tests of every coding: whole, split anywhere, broken, and as decompression bombs.

use std::sync::{Arc, Mutex};

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::probe::memory_budget::MemoryBudget;

/// Collects the decoded bytes, up to a bound.
#[derive(Clone, Default)]
struct BodyCollector(Arc<Mutex<Vec<u8>>>);

const BOUND: usize = 4 * 1024 * 1024;

impl Write for BodyCollector {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap();
        if kept.len() + piece.len() > BOUND {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        kept.extend(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for BodyCollector {
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn undone(codings: &str, body: &[u8], cut: usize) -> io::Result<Vec<u8>> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(codings).unwrap());
    let kept = BodyCollector::default();
    let share = Arc::<MemoryBudget>::default().share(1);
    let mut first = decoding_stages(&headers, Box::new(kept.clone()), &share).ok_or_else(|| invalid_data("unknown"))?;
    for piece in body.chunks(cut.max(1)) {
        first.write_all(piece)?;
    }
    first.end()?;
    let kept = kept.0.lock().unwrap().clone();
    Ok(kept)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn raw(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

/// "hello hello hello hello\n", encoded by the reference encoder.
const BROTLI: &[u8] =
    &[27, 23, 0, 248, 141, 148, 110, 222, 68, 85, 134, 214, 10, 32, 108, 111, 74, 17, 121, 226, 128, 174, 22];
/// 16 MiB of zeros, likewise.
const BROTLI_BOMB: &[u8] = &[
    203, 255, 255, 63, 248, 39, 0, 226, 177, 64, 32, 247, 254, 47, 255, 255, 255, 240, 79, 0, 196, 97, 17, 128, 238,
    253, 31,
];

#[test]
fn every_coding_is_decoded_however_it_is_split() {
    let text = b"hello hello hello hello\n";
    for cut in [1, 2, 3, 7, 1000] {
        for (codings, body) in [
            ("gzip", gzip(text)),
            ("x-gzip", gzip(text)),
            ("deflate", zlib(text)),
            ("deflate", raw(text)),
            ("zstd", zstd(text)),
            ("br", BROTLI.to_vec()),
            ("identity", text.to_vec()),
            ("deflate, gzip", gzip(&zlib(text))),
            // Tokens that name no coding.
            ("UTF-8", text.to_vec()),
            ("none", text.to_vec()),
            ("aws-chunked", text.to_vec()),
            ("aws-chunked, GZIP,", gzip(text)),
            ("utf8, Identity, compress", text.to_vec()),
        ] {
            assert_eq!(undone(codings, &body, cut).unwrap(), text, "{codings} cut by {cut}");
        }
    }
}

#[test]
fn members_and_frames_one_after_another_are_one_body() {
    for cut in [1, 5, 1000] {
        let members = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
        assert_eq!(undone("gzip", &members, cut).unwrap(), b"one two");
        let padded = [members, vec![0; 100]].concat();
        assert_eq!(undone("gzip", &padded, cut).unwrap(), b"one two");
        let skipped = [0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
        let frames = [zstd(b"one "), skipped.to_vec(), zstd(b"two")].concat();
        assert_eq!(undone("zstd", &frames, cut).unwrap(), b"one two");
    }
}

#[test]
fn a_truncated_or_corrupt_body_is_not_decoded() {
    let text: Vec<u8> = (0..10_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    for (codings, body) in
        [("gzip", gzip(&text)), ("deflate", zlib(&text)), ("deflate", raw(&text)), ("zstd", zstd(&text))]
    {
        for len in [1, 5, body.len() / 2, body.len() - 1] {
            assert!(undone(codings, &body[..len], 1000).is_err(), "{codings} of {len}");
        }
        assert!(undone(codings, b"<html>not at all</html>", 1000).is_err(), "{codings}");
    }
    assert!(undone("br", &BROTLI[..BROTLI.len() - 2], 1000).is_err());
    assert!(undone("br", b"<html>not at all</html>", 1000).is_err());
    assert!(undone("zstd, IDENTITY, br", &text, 1000).is_err(), "not the declared coding");
    assert!(undone("gzip, none, gzip, gzip", b"", 1).is_err(), "too many");
}

#[test]
fn a_decompression_bomb_ends_at_the_limit() {
    let zeros = vec![0; 16 * 1024 * 1024];
    for (codings, body) in [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("zstd", zstd(&zeros)),
        ("br", BROTLI_BOMB.to_vec()),
        ("gzip, gzip", gzip(&gzip(&zeros))),
    ] {
        let error = undone(codings, &body, 16 * 1024).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{codings}: {error}");
    }
}

#[test]
fn input_without_output_is_bounded() {
    // A skippable frame that is longer than the bound.
    let length = u32::try_from(2 * MAX_INTERMEDIATE_BYTES).unwrap();
    let nothing =
        [&[0x50, 0x2a, 0x4d, 0x18], length.to_le_bytes().as_slice(), &vec![0; 2 * MAX_INTERMEDIATE_BYTES]].concat();
    assert_eq!(undone("zstd", &nothing, 16 * 1024).unwrap(), b"");
    let error = undone("zstd, gzip", &gzip(&nothing), 16 * 1024).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let error = undone("gzip", &gzip(b"").repeat(MAX_MEMBERS + 1), 16 * 1024).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_zstd_window_beyond_the_bound_is_refused_before_it_is_made() {
    let frame = |descriptor: u8, rest: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd, descriptor], rest].concat();
    assert_eq!(window(&frame(0, &[0x00])), Some(1024));
    assert_eq!(window(&frame(0, &[13 << 3])), Some(MAX_WINDOW));
    assert_eq!(window(&frame(0, &[13 << 3 | 1])), Some(MAX_WINDOW + MAX_WINDOW / 8));
    assert_eq!(window(&frame(0x20, &[7])), Some(7));
    assert_eq!(window(&frame(0x60, &[1, 0])), Some(257));
    assert_eq!(window(&frame(0xa1, &[9, 1, 2, 0, 0])), Some(513));
    assert_eq!(window(&frame(0xe0, &[0, 0, 0, 0, 1, 0, 0, 0])), Some(1 << 32));
    assert_eq!(window(&frame(0xe0, &[0, 0])), None);
    assert!(undone("zstd", &frame(0, &[20 << 3, 1, 0, 0]), 1000).is_err());
}

#[test]
fn the_window_of_a_brotli_body_counts_until_the_body_is_dropped() {
    let budget = Arc::<MemoryBudget>::default();
    let begun = || {
        let headers = [(header::CONTENT_ENCODING, HeaderValue::from_static("br"))].into_iter().collect();
        let mut first = decoding_stages(&headers, Box::new(BodyCollector::default()), &budget.share(1)).unwrap();
        first.write_all(&BROTLI_BOMB[..BROTLI_BOMB.len() / 2]).map(|()| first)
    };
    let mut held = Vec::new();
    let refused = loop {
        match begun() {
            Ok(first) => held.push(first),
            Err(error) => break error,
        }
        assert!(held.len() < 1000, "a few bytes take a window each");
    };
    assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory);
    held.clear();
    begun().unwrap();
}

proptest! {
    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300), cut in 1_usize..50) {
        for codings in ["gzip", "deflate", "br", "zstd"] {
            let _ = undone(codings, &noise, cut);
            let framed = [&[0x28, 0xb5, 0x2f, 0xfd][..], &noise].concat();
            let _ = undone(codings, &framed, cut);
            let _ = undone(codings, &[&MEMBER[..], &[8, 0, 0, 0, 0, 0, 0, 0], &noise].concat(), cut);
        }
    }
}
