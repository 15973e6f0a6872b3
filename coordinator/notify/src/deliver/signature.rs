//! Webhook signatures over the raw body with HMAC-SHA256 (RFC 2104).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use parallax_core::id::DeliveryId;
use parallax_core::time::{SECOND, Timestamp};
use serde::Deserialize;
use sha2::Sha256;

/// Prefix of a secret (Standard Webhooks 1.0).
const SECRET_PREFIX: &str = "whsec_";
/// Length of a secret in bytes (Standard Webhooks 1.0).
const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// Header that a test alert has in addition to `SIGNATURE_HEADERS`.
pub const TEST_HEADER: &str = "X-Service-Test";

/// Names of the event, id and signature headers, in the order of [`signature_headers`].
pub(crate) const SIGNATURE_HEADERS: [&str; 6] = [
    "X-Service-Event",
    "X-Service-Signature",
    "X-Service-Delivery",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

/// Text that is not a valid secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret must be {SECRET_PREFIX} followed by 24 to 64 bytes in base64")]
pub struct InvalidSigningSecret;

/// Signing secret of a destination.
#[derive(Clone)]
pub struct SigningSecret {
    /// Keyed with the text as shown to the user.
    text_key: Hmac<Sha256>,
    /// Keyed with the bytes that the text encodes.
    bytes_key: Hmac<Sha256>,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl SigningSecret {
    /// Parses a secret as shown to the user.
    ///
    /// # Errors
    /// [`InvalidSigningSecret`] for any other text.
    pub fn parse(text: &str) -> Result<Self, InvalidSigningSecret> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(InvalidSigningSecret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidSigningSecret)?;
        if !SECRET_LENGTH.contains(&bytes.len()) {
            return Err(InvalidSigningSecret);
        }
        let keyed = |key: &[u8]| Hmac::new_from_slice(key).map_err(|_| InvalidSigningSecret);
        Ok(Self { text_key: keyed(text.as_bytes())?, bytes_key: keyed(&bytes)? })
    }

    /// `sha256=` and the HMAC of the body in hex, keyed with the text of the secret.
    fn sign_body(&self, body: &[u8]) -> String {
        format!("sha256={}", hex::encode(self.text_key.clone().chain_update(body).finalize().into_bytes()))
    }

    /// `v1,` and the HMAC of id, time and body in base64, keyed with the secret's bytes (Standard Webhooks 1.0).
    fn sign_delivery(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let head = format!("{id}.{seconds}.");
        let signed = self.bytes_key.clone().chain_update(head).chain_update(body).finalize();
        format!("v1,{}", STANDARD.encode(signed.into_bytes()))
    }
}

/// Fields of the body that are repeated in headers.
#[derive(Debug, Deserialize)]
struct SignedFields {
    event: String,
    #[serde(default)]
    test: bool,
}

/// Headers of one attempt: those of `SIGNATURE_HEADERS` in order, and [`TEST_HEADER`] for a test. `pending` is the secret
/// that will replace `active`, if any: `webhook-signature` contains both signatures, `X-Service-Signature`
/// only that of the active one. `delivery` is the same for all attempts; `at` is the time of this attempt.
/// `None` for a body without an event.
///
/// Event and test flag are read from the body, so that headers and body can't disagree.
pub fn signature_headers(
    active: &SigningSecret,
    pending: Option<&SigningSecret>,
    delivery: DeliveryId,
    at: Timestamp,
    body: &[u8],
) -> Option<Vec<(&'static str, String)>> {
    let SignedFields { event, test } = serde_json::from_slice(body).ok()?;
    let (id, seconds) = (delivery.to_string(), at.as_millis().div_euclid(SECOND));
    let mut signatures = active.sign_delivery(&id, seconds, body);
    if let Some(pending) = pending {
        signatures.push(' ');
        signatures.push_str(&pending.sign_delivery(&id, seconds, body));
    }
    let [name, signature, own_id, standard_id, timestamp, standard] = SIGNATURE_HEADERS;
    let mut headers = vec![
        (name, event),
        (signature, active.sign_body(body)),
        (own_id, id.clone()),
        (standard_id, id),
        (timestamp, seconds.to_string()),
        (standard, signatures),
    ];
    if test {
        headers.push((TEST_HEADER, "1".to_owned()));
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn signatures_equal_those_of_another_implementation() {
        // Computed with Python's hmac and hashlib.
        let secret = SigningSecret::parse(SECRET).unwrap();
        let body = br#"{"event":"went-down"}"#;
        assert_eq!(secret.sign_body(body), "sha256=5474543b3935c003b91f763ba5a644408671670eb6b6035499c5f98ec21e57f3");
        assert_eq!(
            secret.sign_delivery("msg_1", 1_795_783_560, body),
            "v1,CoedvjNHCaeLJ8y6CBIlOebQJfX1jZisjfa+hRzRY54="
        );
    }

    #[test]
    fn headers_have_the_event_the_delivery_id_and_the_time_of_the_attempt() {
        let secret = SigningSecret::parse(SECRET).unwrap();
        let delivery: DeliveryId = "dlv_0000000000000000000000000a".parse().unwrap();
        let at = Timestamp::from_millis(1_795_783_560_999);
        let body = br#"{"event":"went-slow","test":false}"#;
        let headers = signature_headers(&secret, None, delivery, at, body).unwrap();
        assert_eq!(headers.iter().map(|(name, _)| *name).collect::<Vec<_>>(), SIGNATURE_HEADERS);
        let value = |name: &str| headers.iter().find(|(known, _)| *known == name).unwrap().1.as_str();
        assert_eq!(value("X-Service-Event"), "went-slow");
        assert_eq!(
            (value("webhook-id"), value("X-Service-Delivery")),
            (delivery.to_string().as_str(), value("webhook-id"))
        );
        assert_eq!(value("webhook-timestamp"), "1795783560");
        let retry_headers = signature_headers(&secret, None, delivery, at + 60_000, body).unwrap();
        assert_eq!(retry_headers[1], headers[1], "depends on the body only");
        assert_ne!(retry_headers[5], headers[5]);
        assert_eq!(signature_headers(&secret, None, delivery, at, b"{}"), None);
    }

    #[test]
    fn a_test_alert_has_its_event_and_a_test_header() {
        let secret = SigningSecret::parse(SECRET).unwrap();
        let delivery: DeliveryId = "dlv_0000000000000000000000000a".parse().unwrap();
        let body = br#"{"event":"went-down","test":true}"#;
        let headers = signature_headers(&secret, None, delivery, Timestamp::from_millis(1_000), body).unwrap();
        assert_eq!(headers.first(), Some(&("X-Service-Event", "went-down".to_owned())));
        assert_eq!(headers.last(), Some(&("X-Service-Test", "1".to_owned())));
    }

    #[test]
    fn during_a_rotation_both_secrets_sign_and_only_the_active_one_signs_the_body() {
        let (new, old) = (
            SigningSecret::parse(SECRET).unwrap(),
            SigningSecret::parse(&format!("{SECRET_PREFIX}{}", STANDARD.encode([7; 24]))).unwrap(),
        );
        let delivery: DeliveryId = "dlv_0000000000000000000000000a".parse().unwrap();
        let headers_by = |active, pending| {
            signature_headers(active, pending, delivery, Timestamp::from_millis(1_000), br#"{"event":"x"}"#).unwrap()
        };
        let [new_alone, old_alone, both] =
            [headers_by(&new, None), headers_by(&old, None), headers_by(&old, Some(&new))];
        assert_eq!(both[5].1, format!("{} {}", old_alone[5].1, new_alone[5].1));
        assert_eq!(both[1], old_alone[1], "a receiver that only knows the active secret accepts it");
    }

    #[test]
    fn secrets_of_any_other_format_are_rejected() {
        let secret_of = |bytes: usize| format!("{SECRET_PREFIX}{}", STANDARD.encode(vec![7; bytes]));
        for good in [24, 32, 64] {
            assert!(SigningSecret::parse(&secret_of(good)).is_ok(), "{good}");
        }
        for bad in [secret_of(23), secret_of(65), SECRET[6..].to_owned(), format!("{SECRET}!"), String::new()] {
            assert_eq!(SigningSecret::parse(&bad).unwrap_err(), InvalidSigningSecret, "{bad}");
        }
        assert_eq!(format!("{:?}", SigningSecret::parse(SECRET).unwrap()), "Secret");
    }
}
