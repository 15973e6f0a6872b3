//! Hostile bytes: every position of a valid value is replaced by a length, followed by little or by as much as
//! claimed.

use parallax_tests::untrusted_peer::pseudo_random_bytes;

/// Bytes after a claimed length: reading them costs far more than a decoder may reserve in advance.
const LONG: usize = 16 << 10;

/// Returns variants of a valid value: cut at each position, followed by a length without content, or with the smallest
/// possible entries.
pub(crate) fn variants(good: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..=good.len()).flat_map(|at| {
        let before = &good[..at];
        let empty = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX >> 1, u64::MAX]
            .map(|claim| [before, &varint(claim)[..]].concat());
        let full = [0, 1, 2].map(|fill| {
            let mut bytes = [before, &varint(LONG as u64)[..]].concat();
            // The rest of the value follows, so that the variant may be valid to its end.
            bytes.resize(at + LONG, fill);
            bytes.extend_from_slice(&good[at..]);
            bytes
        });
        empty.into_iter().chain(full)
    })
}

/// Returns bytes of no type: repeated bytes, and pseudo-random ones.
pub(crate) fn typeless_bytes() -> impl Iterator<Item = Vec<u8>> {
    let equal = [0, 1, 2, 3, 5, 0x7f, 0xff].into_iter().map(|byte| vec![byte; 300]);
    equal.chain((0..40).map(|seed| pseudo_random_bytes(seed, 300)))
}

/// Encodes a number as postcard encodes lengths: seven bits a byte, the lowest first.
pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}
