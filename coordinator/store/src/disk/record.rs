//! Record format: format version, checksum, then postcard, split where it is too long for the engine.
//!
//! A head is `version, crc32c, number of further parts, first bytes`. Its checksum covers the key and the whole
//! value, so that neither an older value nor one of another key is mistaken for it.

use std::borrow::Cow;

use parallax_certs::sealing::{KeyId, Keyring, UnsealError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::layout;
use super::sealing::holds_secrets;
use crate::{Result, StoreError};

/// Longest piece of a value, in bytes. The engine puts up to 20 pieces on one page, and a page of more than a
/// quarter of its segment (512 KiB) would go to a file of its own that is never made durable.
pub(super) const MAX_PIECE: usize = 24 << 10;

/// Most pieces of a value after its first bytes: 64 MiB, four times the longest opaque value. A forged snapshot can't
/// make its reader assemble more.
const MAX_PIECES: u16 = 2_730;

/// Formats: plain, and sealed (see [`super::sealing`]). Pieces have the first: a value is sealed as a whole before
/// it is split.
const VERSION: u8 = 1;
const SEALED: u8 = 2;
const HEADER: usize = 7;

/// An encoded value: the head, and the pieces that follow it.
#[derive(Debug)]
pub(super) struct EncodedRecord {
    pub(super) head: Vec<u8>,
    pub(super) pieces: Vec<(layout::TreeKey, Vec<u8>)>,
}

/// Encodes a value for its key, sealed if it may hold secrets and there is an encryption key.
pub(super) fn encode<T: Serialize + ?Sized>(key: &[u8], value: &T, keyring: Option<&Keyring>) -> Result<EncodedRecord> {
    let head = postcard::to_extend(value, vec![0; HEADER])
        .map_err(|error| StoreError::Io(format!("a value can't be encoded: {error}")))?;
    let keyring = keyring.filter(|_| holds_secrets(key));
    if keyring.is_some() {
        encode_bytes(key, head.get(HEADER..).unwrap_or_default(), keyring)
    } else {
        split(key, head, VERSION)
    }
}

/// Encodes a value from its plain bytes.
pub(super) fn encode_bytes(key: &[u8], plain: &[u8], keyring: Option<&Keyring>) -> Result<EncodedRecord> {
    let mut head = vec![0; HEADER];
    match keyring.filter(|_| holds_secrets(key)) {
        None => head.extend_from_slice(plain),
        Some(keyring) => {
            let sealed = keyring.seal(key, plain);
            head.extend(sealed.map_err(|error| StoreError::Io(format!("a value can't be sealed: {error}")))?);
            return split(key, head, SEALED);
        }
    }
    split(key, head, VERSION)
}

/// Builds a sealed record's head with a valid checksum, whatever it holds.
#[cfg(test)]
pub(super) fn sealed_head_for_tests(key: &[u8], sealed: &[u8]) -> Vec<u8> {
    let mut head = vec![0; HEADER];
    head.extend_from_slice(sealed);
    split(key, head, SEALED).map(|encoded| encoded.head).unwrap_or_default()
}

fn split(key: &[u8], mut head: Vec<u8>, version: u8) -> Result<EncodedRecord> {
    let checksum = checksum(key, head.get(HEADER..).unwrap_or_default());
    let rest = if head.len() > HEADER + MAX_PIECE { head.split_off(HEADER + MAX_PIECE) } else { Vec::new() };
    let pieces = u16::try_from(rest.chunks(MAX_PIECE).len()).ok().filter(|pieces| *pieces <= MAX_PIECES);
    let pieces = pieces.ok_or(StoreError::TooLarge("a value"))?;
    write_header(&mut head, version, checksum, pieces);
    let encoded_pieces = (0..pieces).zip(rest.chunks(MAX_PIECE)).map(|(number, piece)| {
        let key = layout::piece(key, number);
        let mut bytes = vec![0; HEADER];
        bytes.extend_from_slice(piece);
        write_header(&mut bytes, VERSION, self::checksum(&key, piece), 0);
        (key, bytes)
    });
    Ok(EncodedRecord { pieces: encoded_pieces.collect(), head })
}

/// Returns the number of pieces that follow this head.
pub(super) fn pieces(key: &[u8], head: &[u8]) -> Result<u16> {
    parse(key, head).map(|(_, pieces, _)| pieces)
}

/// Decodes a value of a kind that is never sealed from its head; `piece` returns the bytes of a piece's key.
pub(super) fn decode<T, B, F>(key: &[u8], head: &[u8], piece: F) -> Result<T>
where
    T: DeserializeOwned,
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    open(key, head, piece, None)
}

/// Decodes a value from its head, unsealing it if necessary.
pub(super) fn open<T, B, F>(key: &[u8], head: &[u8], piece: F, keyring: Option<&Keyring>) -> Result<T>
where
    T: DeserializeOwned,
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let plain = plain_bytes(key, head, piece, keyring)?;
    postcard::from_bytes(&plain).map_err(|_| damaged(key, "can't be read"))
}

/// Returns a value's plain bytes.
pub(super) fn plain_bytes<'a, B, F>(
    key: &[u8],
    head: &'a [u8],
    piece: F,
    keyring: Option<&Keyring>,
) -> Result<Cow<'a, [u8]>>
where
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let payload = payload(key, head, piece)?;
    if head.first() != Some(&SEALED) {
        return Ok(payload);
    }
    let Some(keyring) = keyring else {
        let id = KeyId::of_sealed(&payload).ok_or_else(|| damaged(key, "is too short"))?;
        return Err(StoreError::KeyMissing(id.to_string()));
    };
    let opened = keyring.open(key, &payload).map_err(|error| match error {
        UnsealError::UnknownKey(id) => StoreError::KeyMissing(id.to_string()),
        UnsealError::TooShort | UnsealError::Tampered => damaged(key, &error.to_string()),
    });
    opened.map(Cow::Owned)
}

/// Returns a value's stored bytes, verified to be what was written under this key.
pub(super) fn payload<'a, B, F>(key: &[u8], head: &'a [u8], mut piece: F) -> Result<Cow<'a, [u8]>>
where
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let (expected, pieces, first) = parse(key, head)?;
    let mut assembled = Cow::Borrowed(first);
    for number in 0..pieces {
        let part = layout::piece(key, number);
        let bytes = piece(&part)?.ok_or_else(|| damaged(&part, "is missing"))?;
        assembled.to_mut().extend_from_slice(parse(&part, bytes.as_ref())?.2);
    }
    if checksum(key, &assembled) == expected { Ok(assembled) } else { Err(damaged(key, "does not match its checksum")) }
}

/// Verifies a value without assembling it; `piece` returns the checksum and length from [`verify_piece`].
pub(super) fn verify<F>(key: &[u8], head: &[u8], mut piece: F) -> Result<()>
where
    F: FnMut(&[u8]) -> Option<(u32, usize)>,
{
    let (expected, pieces, first) = parse(key, head)?;
    let mut sum = checksum(key, first);
    for number in 0..pieces {
        let part = layout::piece(key, number);
        let (piece_checksum, length) = piece(&part).ok_or_else(|| damaged(&part, "is missing"))?;
        sum = crc32c::crc32c_combine(sum, piece_checksum, length);
    }
    if sum == expected { Ok(()) } else { Err(damaged(key, "does not match its checksum")) }
}

/// Verifies one piece. Returns the checksum and length of its bytes for [`verify`].
pub(super) fn verify_piece(part: &[u8], bytes: &[u8]) -> Result<(u32, usize)> {
    let (expected, _, payload) = parse(part, bytes)?;
    if checksum(part, payload) != expected {
        return Err(damaged(part, "does not match its checksum"));
    }
    Ok((crc32c::crc32c(payload), payload.len()))
}

fn parse<'a>(key: &[u8], bytes: &'a [u8]) -> Result<(u32, u16, &'a [u8])> {
    let (head, payload) = bytes.split_first_chunk::<HEADER>().ok_or_else(|| damaged(key, "is too short"))?;
    let [version, a, b, c, d, high, low] = *head;
    if version != VERSION && version != SEALED {
        return Err(damaged(key, "has an unknown format"));
    }
    let pieces = u16::from_be_bytes([high, low]);
    if payload.len() > MAX_PIECE || pieces > MAX_PIECES {
        return Err(damaged(key, "is longer than any that is written"));
    }
    Ok((u32::from_le_bytes([a, b, c, d]), pieces, payload))
}

fn write_header(bytes: &mut [u8], version: u8, checksum: u32, pieces: u16) {
    let ([a, b, c, d], [high, low]) = (checksum.to_le_bytes(), pieces.to_be_bytes());
    if let Some(head) = bytes.first_chunk_mut::<HEADER>() {
        *head = [version, a, b, c, d, high, low];
    }
}

fn checksum(key: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), payload)
}

pub(super) fn damaged(key: &[u8], problem: &str) -> StoreError {
    StoreError::Damaged(format!("the record under {} {problem}", key.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    #[test]
    fn a_long_value_is_split_and_reassembled() {
        let value: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        let encoded = encode(b"ev1", &value, None).unwrap();
        assert_eq!(encoded.pieces.len(), 8);
        assert!(encoded.pieces.iter().all(|(_, bytes)| bytes.len() <= MAX_PIECE + HEADER));
        let find = |key: &[u8]| Ok(encoded.pieces.iter().find(|(at, _)| at == key).map(|(_, bytes)| bytes));
        assert_eq!(decode::<Vec<u8>, _, _>(b"ev1", &encoded.head, find), Ok(value));
        assert!(decode::<Vec<u8>, _, _>(b"ev1", &encoded.head, none).is_err());
    }

    #[test]
    fn a_value_longer_than_the_writer_splits_is_neither_written_nor_read() {
        let max_bytes = MAX_PIECE * (usize::from(MAX_PIECES) + 1);
        let encoded = encode_bytes(b"fb1", &vec![7; max_bytes], None).unwrap();
        assert_eq!(encoded.pieces.len(), usize::from(MAX_PIECES));
        assert_eq!(pieces(b"fb1", &encoded.head), Ok(MAX_PIECES));
        assert!(matches!(encode_bytes(b"fb1", &vec![7; max_bytes + 1], None), Err(StoreError::TooLarge(_))));
        let mut head = encoded.head;
        write_header(&mut head, VERSION, 0, MAX_PIECES + 1);
        assert!(matches!(pieces(b"fb1", &head), Err(StoreError::Damaged(_))));
        let part = layout::piece(b"fb1", 0);
        let mut long = vec![0; HEADER + MAX_PIECE + 1];
        let sum = checksum(&part, &long[HEADER..]);
        write_header(&mut long, VERSION, sum, 0);
        assert!(matches!(verify_piece(&part, &long), Err(StoreError::Damaged(_))));
        long.pop();
        let sum = checksum(&part, &long[HEADER..]);
        write_header(&mut long, VERSION, sum, 0);
        assert!(verify_piece(&part, &long).is_ok());
    }

    #[test]
    fn a_changed_byte_or_another_key_is_detected_as_damage() {
        let encoded = encode(b"cu1", &12_345u64, None).unwrap();
        assert_eq!(decode::<u64, _, _>(b"cu1", &encoded.head, none), Ok(12_345));
        assert!(matches!(decode::<u64, _, _>(b"cu2", &encoded.head, none), Err(StoreError::Damaged(_))));
        for at in [0, 1, HEADER, HEADER + 1] {
            let mut bytes = encoded.head.clone();
            bytes[at] ^= 5;
            assert!(decode::<u64, _, _>(b"cu1", &bytes, none).is_err(), "byte {at}");
        }
    }
}
