//! Identifiers: a prefix for the kind, then 48 bits of milliseconds and 80 random bits in Crockford's alphabet.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS: usize = 26;

/// Error: the text is not an identifier of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id that starts with {prefix}")]
pub struct ParseIdError {
    prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(u128);

        impl $name {
            /// Prefix of every identifier of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an identifier from a timestamp and ten random bytes; later ids sort later.
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                Self(compose(at, random))
            }

            /// Returns the identifier as a number, for keys and for the wire format.
            pub const fn to_u128(self) -> u128 {
                self.0
            }

            /// Restores an identifier from [`Self::to_u128`].
            pub const fn from_u128(value: u128) -> Self {
                Self(value)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id(f, $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                read_id($prefix, text).map(Self).ok_or(ParseIdError { prefix: $prefix })
            }
        }
    )*};
}

ids! {
    /// An account, which owns pages.
    AccountId = "acc_";
    /// A status page.
    PageId = "pg_";
    /// A monitor.
    MonitorId = "mon_";
    /// An incident or a maintenance window.
    IncidentId = "inc_";
    /// An update of an incident.
    UpdateId = "upd_";
    /// A deploy marker.
    DeployId = "dep_";
    /// A repeating maintenance window.
    SeriesId = "ser_";
    /// An API key.
    KeyId = "key_";
    /// An agent of the mesh.
    AgentId = "agt_";
    /// An invitation to the mesh.
    InvitationId = "inv_";
    /// An alert destination.
    DestinationId = "dst_";
    /// A subscriber of a page.
    SubscriberId = "sub_";
    /// A delivery to a destination or subscriber.
    DeliveryId = "dlv_";
    /// A page update on its way to its subscribers.
    BulletinId = "bul_";
    /// A person who signs in to the dashboard.
    PersonId = "per_";
}

fn compose(at: Timestamp, random: [u8; 10]) -> u128 {
    let millis = u128::from(at.as_millis().unsigned_abs() & 0xffff_ffff_ffff);
    random.iter().fold(millis, |value, byte| (value << 8) | u128::from(*byte))
}

fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, value: u128) -> fmt::Result {
    f.write_str(prefix)?;
    for digit in (0..DIGITS).rev() {
        let index = (value >> (5 * digit)) as usize & 31;
        f.write_str(char::from(ALPHABET[index]).encode_utf8(&mut [0; 4]))?;
    }
    Ok(())
}

fn read_id(prefix: &str, text: &str) -> Option<u128> {
    let digits = text.strip_prefix(prefix)?.as_bytes();
    if digits.len() != DIGITS {
        return None;
    }
    let mut value: u128 = 0;
    for (index, digit) in digits.iter().enumerate() {
        let number = ALPHABET.iter().position(|letter| letter == digit)? as u128;
        // 26 digits of five bits are 130 bits: the first may carry only three.
        if index == 0 && number > 7 {
            return None;
        }
        value = (value << 5) | number;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_wrote() {
        let id = MonitorId::new(Timestamp::from_millis(1_790_000_000_123), [255, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let text = id.to_string();
        assert!(text.starts_with("mon_") && text.len() == 30, "{text}");
        assert_eq!(text.parse::<MonitorId>(), Ok(id));
        assert!(text.parse::<PageId>().is_err());
    }

    #[test]
    fn ids_sort_by_their_moment() {
        let early = PageId::new(Timestamp::from_millis(1000), [255; 10]);
        let late = PageId::new(Timestamp::from_millis(1001), [0; 10]);
        assert!(early < late && early.to_string() < late.to_string());
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in ["", "mon_", "mon_0", "mon_8zzzzzzzzzzzzzzzzzzzzzzzzz", "mon_0000000000000000000000000U"] {
            assert!(text.parse::<MonitorId>().is_err(), "{text}");
        }
    }
}
