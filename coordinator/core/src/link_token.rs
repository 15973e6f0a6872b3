//! Links in mails: an id and a secret token that proves access to the mailbox.

use std::str::FromStr;

/// Digits of an id without its prefix.
const DIGITS: usize = 26;
/// Hex digits of a token.
const TOKEN: usize = 32;

/// Encodes the digits of an id, which has that prefix, followed by the token in hex.
pub fn encode(id: &str, prefix: &str, token: [u8; 16]) -> String {
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    format!("{digits}{:032x}", u128::from_be_bytes(token))
}

/// Decodes the parameter of a link for an id with that prefix; none if it is malformed.
pub fn decode<T: FromStr>(prefix: &str, text: &str) -> Option<(T, [u8; 16])> {
    let (digits, token) = text.split_at_checked(DIGITS)?;
    let is_hex = token.len() == TOKEN && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = is_hex.then(|| u128::from_str_radix(token, 16).ok()).flatten()?;
    let id = format!("{prefix}{digits}").parse().ok()?;
    Some((id, token.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SubscriberId;
    use crate::time::Timestamp;

    #[test]
    fn a_link_token_decodes_to_its_recipient_and_other_texts_do_not() {
        let id = SubscriberId::new(Timestamp::from_millis(1_790_000_000_123), [7; 10]);
        let token = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        let link = encode(&id.to_string(), SubscriberId::PREFIX, token);
        assert_eq!(decode(SubscriberId::PREFIX, &link), Some((id, token)));
        let short = &link[..57];
        for text in ["", short, &format!("{link}0"), &format!("{short}g"), &format!("é{short}"), &"z".repeat(58)] {
            assert_eq!(decode::<SubscriberId>(SubscriberId::PREFIX, text), None, "{text}");
        }
    }
}
