//! Codes of an authenticator app (RFC 6238): SHA-1, six digits, thirty seconds, as all apps have them.

use parallax_core::second_factor::{FactorSecret, STEP_SKEW};
use parallax_core::time::{SECOND, Timestamp};
use totp_rs::{Builder, Secret, Totp};

use crate::{ServiceError, ServiceResult};

/// Name under which an app lists the code.
const ISSUER: &str = "Parallax";

/// Returns the step whose code that is, at that time: the present one, the one before or the one after.
pub(super) fn matching_step(secret: &FactorSecret, code: &str, now: Timestamp) -> Option<u64> {
    let seconds = u64::try_from(now.as_millis() / SECOND).unwrap_or(0);
    totp(secret, "").check(code, seconds)
}

/// Returns the secret as people type it: Base32 (RFC 4648) in groups of four.
pub(super) fn secret_text(secret: &FactorSecret) -> String {
    let text = Secret::new_stack(secret.0).to_base32();
    let groups: Vec<String> =
        text.as_bytes().chunks(4).map(|group| String::from_utf8_lossy(group).into_owned()).collect();
    groups.join(" ")
}

/// Returns the address that an app reads from a QR code.
///
/// # Errors
/// [`ServiceError::Internal`] for an email address that an app can't read.
pub(super) fn otpauth_url(secret: &FactorSecret, email: &str) -> ServiceResult<String> {
    // Readers split the label at its first colon.
    let name = email.replace(':', "_");
    totp(secret, &name).to_url().map_err(|error| ServiceError::Internal(error.to_string()))
}

fn totp(secret: &FactorSecret, name: &str) -> Totp {
    // The defaults of the crate are SHA-1, six digits and thirty seconds, and a secret of 160 bits breaks no rule.
    Builder::new()
        .with_secret(Secret::new_stack(secret.0))
        .with_skew(STEP_SKEW)
        .with_issuer(Some(ISSUER))
        .with_account_name(name)
        .build_noncompliant()
}

/// Returns the code that an app shows at that time, for tests.
#[cfg(any(test, feature = "test-world"))]
pub(super) fn code_at(secret: &FactorSecret, now: Timestamp) -> String {
    totp(secret, "").generate(u64::try_from(now.as_millis() / SECOND).unwrap_or(0)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Secret and times of RFC 6238, appendix B; its codes have eight digits, of which the last six are these.
    const RFC_SECRET: FactorSecret = FactorSecret(*b"12345678901234567890");
    const RFC_CODES: [(i64, &str); 6] = [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ];

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * SECOND)
    }

    #[test]
    fn the_codes_are_those_of_rfc_6238() {
        for (seconds, code) in RFC_CODES {
            let step = u64::try_from(seconds / 30).unwrap();
            assert_eq!(code_at(&RFC_SECRET, at(seconds)), code, "{seconds}");
            assert_eq!(matching_step(&RFC_SECRET, code, at(seconds)), Some(step), "{seconds}");
            assert_eq!(matching_step(&FactorSecret([1; 20]), code, at(seconds)), None, "{seconds}");
        }
    }

    #[test]
    fn a_code_counts_one_step_early_and_one_late() {
        // The code of step 37,037,036: from second 1,111,111,080 on.
        let (code, step, begin) = ("081804", 37_037_036, 1_111_111_080);
        for (offset, expected) in [(-31, None), (-30, Some(step)), (0, Some(step)), (59, Some(step)), (60, None)] {
            assert_eq!(matching_step(&RFC_SECRET, code, at(begin + offset)), expected, "{offset}");
        }
        assert_eq!(matching_step(&RFC_SECRET, &code_at(&RFC_SECRET, at(0)), at(-5)), Some(0), "before the epoch");
    }

    #[test]
    fn only_six_digits_are_a_code() {
        for text in ["", "81804", "0081804", "+81804", " 81804", "08180a", "٠٨١٨٠٤"] {
            assert_eq!(matching_step(&RFC_SECRET, text, at(1_111_111_109)), None, "{text}");
        }
    }

    #[test]
    fn an_app_reads_the_secret_by_qr_code_or_as_text() {
        assert_eq!(secret_text(&RFC_SECRET), "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ");
        assert_eq!(
            otpauth_url(&RFC_SECRET, "ann:b&c@example.com").unwrap(),
            "otpauth://totp/Parallax:ann_b%26c%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Parallax"
        );
    }
}
