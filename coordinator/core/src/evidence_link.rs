//! Evidence links in alerts: an alert's event and an expiry, signed, so that nothing has to be stored.
//!
//! The text is lowercase letters and digits only, so that no channel has to escape it.

use crate::id::MonitorId;
use crate::time::{DAY, Timestamp};

/// Lifetime of a link in milliseconds.
pub const EVIDENCE_LIFE: i64 = 7 * DAY;
/// Bytes of a link's signature.
pub const SIGNATURE_BYTES: usize = 16;

/// Digits of a monitor's id without its prefix.
const ID_DIGITS: usize = 26;
/// Hex digits of an event's sequence number.
const SEQ_DIGITS: usize = 16;
/// Hex digits of the expiry in milliseconds, which suffice for 8,000 years.
const EXPIRY_DIGITS: usize = 12;
/// Hex digits of the signature.
const SIGNATURE_DIGITS: usize = 2 * SIGNATURE_BYTES;

/// Content of an evidence link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvidenceReference {
    /// The monitor.
    pub monitor: MonitorId,
    /// Sequence number of the event that the alert is about.
    pub seq: u64,
    /// Time from which on the link is invalid.
    pub expires_at: Timestamp,
}

impl EvidenceReference {
    /// Creates the reference of a link that is made now.
    pub fn new(monitor: MonitorId, seq: u64, now: Timestamp) -> Self {
        Self { monitor, seq, expires_at: now + EVIDENCE_LIFE }
    }

    /// Returns the bytes that are signed, of a fixed length.
    pub fn signed_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let parts = self.monitor.to_u128().to_be_bytes().into_iter();
        let parts = parts.chain(self.seq.to_be_bytes()).chain(self.expires_at.as_millis().to_be_bytes());
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        bytes
    }

    /// Returns true if the link is valid at that time. None is valid for longer than one that is made then.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        (1..=EVIDENCE_LIFE).contains(&self.expires_at.since(now))
    }

    /// Encodes the reference with its signature as the last segment of a URL.
    pub fn encode(&self, signature: [u8; SIGNATURE_BYTES]) -> String {
        let id = self.monitor.to_string();
        let digits = id.strip_prefix(MonitorId::PREFIX).unwrap_or_default();
        let (expiry, signature) = (self.expires_at.as_millis(), u128::from_be_bytes(signature));
        format!("{digits}{:016x}{expiry:012x}{signature:032x}", self.seq)
    }

    /// Decodes a URL segment into a reference and its signature, which the caller verifies; none if it is malformed.
    pub fn decode(text: &str) -> Option<(Self, [u8; SIGNATURE_BYTES])> {
        let (id, rest) = text.split_at_checked(ID_DIGITS)?;
        let (seq, rest) = rest.split_at_checked(SEQ_DIGITS)?;
        let (expiry, signature) = rest.split_at_checked(EXPIRY_DIGITS)?;
        let is_hex = rest.bytes().chain(seq.bytes()).all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if signature.len() != SIGNATURE_DIGITS || !is_hex {
            return None;
        }
        let monitor = format!("{}{id}", MonitorId::PREFIX).parse().ok()?;
        let seq = u64::from_str_radix(seq, 16).ok()?;
        let expires_at = Timestamp::from_millis(i64::from_str_radix(expiry, 16).ok()?);
        let signature = u128::from_str_radix(signature, 16).ok()?;
        Some((Self { monitor, seq, expires_at }, signature.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_783_560_000);

    #[test]
    fn a_link_decodes_to_its_reference_and_other_texts_do_not() {
        let reference = EvidenceReference::new(MonitorId::from_u128(77), 48_213, NOW);
        let signature = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        let link = reference.encode(signature);
        assert_eq!(EvidenceReference::decode(&link), Some((reference, signature)));
        assert!(link.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{link}");
        let short = &link[..link.len() - 1];
        for text in ["", short, &format!("{link}0"), &format!("{short}g"), &format!("é{short}"), &link.to_uppercase()]
        {
            assert_eq!(EvidenceReference::decode(text), None, "{text}");
        }
    }

    #[test]
    fn each_part_of_a_reference_is_signed() {
        let reference = EvidenceReference::new(MonitorId::from_u128(77), 48_213, NOW);
        for other in [
            EvidenceReference { monitor: MonitorId::from_u128(78), ..reference },
            EvidenceReference { seq: 48_214, ..reference },
            EvidenceReference { expires_at: reference.expires_at + 1, ..reference },
        ] {
            assert_ne!(other.signed_bytes(), reference.signed_bytes(), "{other:?}");
        }
    }

    #[test]
    fn a_link_is_valid_for_seven_days() {
        let reference = EvidenceReference::new(MonitorId::from_u128(77), 1, NOW);
        for (after, is_valid) in [(-1, false), (0, true), (EVIDENCE_LIFE - 1, true), (EVIDENCE_LIFE, false)] {
            assert_eq!(reference.is_valid_at(NOW + after), is_valid, "{after}");
        }
    }
}
