//! How a value is written: format version, checksum, then postcard, cut where it is too long for the engine.
//!
//! A head is `version, crc32c, number of further parts, first bytes`. Its checksum covers the key and the whole value,
//! so that neither bytes of another moment nor those of another key pass for it.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::layout;
use crate::storage::{Result, StoreError};

/// The longest piece of a value in bytes. The engine gathers up to 20 pieces on one page, and a page of more than a
/// quarter of its segment (512 KiB) would go to a file of its own that is never made durable.
pub(super) const PIECE: usize = 24 << 10;

const VERSION: u8 = 1;
const HEADER: usize = 7;

/// A value as it is written: the head, and the pieces that follow it.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) head: Vec<u8>,
    pub(super) more: Vec<(layout::Key, Vec<u8>)>,
}

/// Encodes a value for its key.
pub(super) fn encode<T: Serialize + ?Sized>(key: &[u8], value: &T) -> Result<Encoded> {
    let mut head = postcard::to_extend(value, vec![0; HEADER])
        .map_err(|error| StoreError::Io(format!("a value can't be encoded: {error}")))?;
    let checksum = checksum(key, head.get(HEADER..).unwrap_or_default());
    let rest = if head.len() > HEADER + PIECE { head.split_off(HEADER + PIECE) } else { Vec::new() };
    let pieces = u16::try_from(rest.chunks(PIECE).len()).map_err(|_| StoreError::TooLarge("a value"))?;
    seal(&mut head, checksum, pieces);
    let more = (0..pieces).zip(rest.chunks(PIECE)).map(|(number, piece)| {
        let key = layout::part(key, number);
        let mut bytes = vec![0; HEADER];
        bytes.extend_from_slice(piece);
        seal(&mut bytes, self::checksum(&key, piece), 0);
        (key, bytes)
    });
    Ok(Encoded { more: more.collect(), head })
}

/// How many pieces follow this head.
pub(super) fn pieces(key: &[u8], head: &[u8]) -> Result<u16> {
    parse(key, head).map(|(_, pieces, _)| pieces)
}

/// Decodes the value of a key from its head; `piece` gives what stands under a piece's key.
pub(super) fn decode<T, B, F>(key: &[u8], head: &[u8], piece: F) -> Result<T>
where
    T: DeserializeOwned,
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let payload = payload(key, head, piece)?;
    postcard::from_bytes(&payload).map_err(|_| damaged(key, "can't be read"))
}

/// The value's bytes, proved to be what was written under this key.
pub(super) fn payload<'a, B, F>(key: &[u8], head: &'a [u8], mut piece: F) -> Result<Cow<'a, [u8]>>
where
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let (wanted, pieces, first) = parse(key, head)?;
    let mut whole = Cow::Borrowed(first);
    for number in 0..pieces {
        let part = layout::part(key, number);
        let bytes = piece(&part)?.ok_or_else(|| damaged(&part, "is missing"))?;
        whole.to_mut().extend_from_slice(parse(&part, bytes.as_ref())?.2);
    }
    if checksum(key, &whole) == wanted { Ok(whole) } else { Err(damaged(key, "does not match its checksum")) }
}

/// Proves a value without gathering it; `piece` gives the checksum and length of what [`check_piece`] proved.
pub(super) fn check<F>(key: &[u8], head: &[u8], mut piece: F) -> Result<()>
where
    F: FnMut(&[u8]) -> Option<(u32, usize)>,
{
    let (wanted, pieces, first) = parse(key, head)?;
    let mut sum = checksum(key, first);
    for number in 0..pieces {
        let part = layout::part(key, number);
        let (of_piece, length) = piece(&part).ok_or_else(|| damaged(&part, "is missing"))?;
        sum = crc32c::crc32c_combine(sum, of_piece, length);
    }
    if sum == wanted { Ok(()) } else { Err(damaged(key, "does not match its checksum")) }
}

/// Proves one piece; gives checksum and length of its bytes for [`check`].
pub(super) fn check_piece(part: &[u8], bytes: &[u8]) -> Result<(u32, usize)> {
    let (wanted, _, payload) = parse(part, bytes)?;
    if checksum(part, payload) != wanted {
        return Err(damaged(part, "does not match its checksum"));
    }
    Ok((crc32c::crc32c(payload), payload.len()))
}

fn parse<'a>(key: &[u8], bytes: &'a [u8]) -> Result<(u32, u16, &'a [u8])> {
    let (head, payload) = bytes.split_first_chunk::<HEADER>().ok_or_else(|| damaged(key, "is too short"))?;
    let [version, a, b, c, d, high, low] = *head;
    if version != VERSION {
        return Err(damaged(key, "has an unknown format"));
    }
    Ok((u32::from_le_bytes([a, b, c, d]), u16::from_be_bytes([high, low]), payload))
}

fn seal(bytes: &mut [u8], checksum: u32, pieces: u16) {
    let ([a, b, c, d], [high, low]) = (checksum.to_le_bytes(), pieces.to_be_bytes());
    if let Some(head) = bytes.first_chunk_mut::<HEADER>() {
        *head = [VERSION, a, b, c, d, high, low];
    }
}

fn checksum(key: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), payload)
}

fn damaged(key: &[u8], how: &str) -> StoreError {
    StoreError::Damaged(format!("the record under {} {how}", key.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    #[test]
    fn a_long_value_is_cut_and_put_together_again() {
        let value: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        let encoded = encode(b"ev1", &value).unwrap();
        assert_eq!(encoded.more.len(), 8);
        assert!(encoded.more.iter().all(|(_, bytes)| bytes.len() <= PIECE + HEADER));
        let find = |key: &[u8]| Ok(encoded.more.iter().find(|(at, _)| at == key).map(|(_, bytes)| bytes));
        assert_eq!(decode::<Vec<u8>, _, _>(b"ev1", &encoded.head, find), Ok(value));
        assert!(decode::<Vec<u8>, _, _>(b"ev1", &encoded.head, none).is_err());
    }

    #[test]
    fn a_changed_byte_or_another_key_is_damage() {
        let encoded = encode(b"cu1", &12_345u64).unwrap();
        assert_eq!(decode::<u64, _, _>(b"cu1", &encoded.head, none), Ok(12_345));
        assert!(matches!(decode::<u64, _, _>(b"cu2", &encoded.head, none), Err(StoreError::Damaged(_))));
        for at in [0, 1, HEADER, HEADER + 1] {
            let mut bytes = encoded.head.clone();
            bytes[at] ^= 1;
            assert!(decode::<u64, _, _>(b"cu1", &bytes, none).is_err(), "byte {at}");
        }
    }
}
