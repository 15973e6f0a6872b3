//! Recovery codes: forty random bits as eight letters and digits, each of which works once instead of a code of the app.
//!
//! They are stored as plain hashes: the record has the app's secret beside them, so that slow ones would protect
//! nothing, and guesses over the network are delayed.

use parallax_core::id::PersonId;
use parallax_core::second_factor::{RECOVERY_CODES, RecoveryCodeHash};
use sha2::{Digest, Sha256};

/// Base 32 without letters that look like digits (Crockford).
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a code.
const LENGTH: usize = 8;

/// Makes new codes, as people read them, with their hashes.
pub(super) fn new_codes(person: PersonId) -> (Vec<String>, Vec<RecoveryCodeHash>) {
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| code_of(rand::random())).collect();
    let hashes = codes.iter().filter_map(|code| hash_of(person, code)).collect();
    (codes, hashes)
}

/// Returns the hash of a code, however it is typed; none for what can't be a code.
pub(super) fn hash_of(person: PersonId, typed: &str) -> Option<RecoveryCodeHash> {
    let mut code = String::with_capacity(LENGTH);
    for sign in typed.chars().filter(|sign| !sign.is_whitespace() && !matches!(sign, '-' | '–')) {
        let sign = match sign.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            sign => sign,
        };
        if code.len() == LENGTH || !sign.is_ascii() || !ALPHABET.contains(&(sign as u8)) {
            return None;
        }
        code.push(sign);
    }
    // With the person, so that equal codes of two persons have different hashes.
    let hash = Sha256::new().chain_update(person.to_u128().to_be_bytes()).chain_update(&code).finalize();
    (code.len() == LENGTH).then(|| RecoveryCodeHash(hash.into()))
}

/// Formats forty bits in two groups of four.
fn code_of(random: [u8; LENGTH]) -> String {
    // 32 divides 256, so that every letter is as likely.
    let sign = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('0', char::from);
    let (first, second) = random.split_at(LENGTH / 2);
    first.iter().map(sign).chain(std::iter::once('-')).chain(second.iter().map(sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let person = PersonId::from_u128(1);
        let code = code_of([0, 1, 10, 31, 32, 63, 21, 7]);
        assert_eq!(code, "01AZ-0ZN7");
        let hash = hash_of(person, &code);
        assert!(hash.is_some());
        for typed in ["01az0zn7", " o1AZ 0zN7 ", "OlAZ–Ozn7", "0iaz-0zn7"] {
            assert_eq!(hash_of(person, typed), hash, "{typed}");
        }
        for other in ["", "01AZ-0ZN", "01AZ-0ZN77", "01AZ-0ZNU", "01AZ-0ZNé", "123456"] {
            assert_eq!(hash_of(person, other), None, "{other}");
        }
        assert_ne!(hash_of(person, "01AZ-0ZN8"), hash);
        assert_ne!(hash_of(PersonId::from_u128(2), &code), hash, "another person's");
    }

    #[test]
    fn ten_codes_are_made_and_no_two_are_alike() {
        let (mut codes, hashes) = new_codes(PersonId::from_u128(1));
        assert_eq!((codes.len(), hashes.len()), (RECOVERY_CODES, RECOVERY_CODES));
        codes.sort();
        codes.dedup();
        assert_eq!(codes.len(), RECOVERY_CODES);
    }
}
