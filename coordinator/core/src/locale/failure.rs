//! Texts for the reasons of failed checks.

use std::fmt;

use super::{Locale, fill};
use crate::observation::{CheckPhase, Failure};
use crate::page::branding::Language;
use crate::text::with_visible_controls;

/// Renders the English text.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Locale::of(Language::En).failure_text(self))
    }
}

impl Locale {
    /// Describes the reason of a failed check. Messages of others (a vendor, a server, TLS) are passed on,
    /// with control characters and changes of direction made visible.
    pub fn failure_text(&self, failure: &Failure) -> String {
        let pattern = match failure {
            Failure::Timeout(CheckPhase::Dns) => self.timeout_dns,
            Failure::Timeout(CheckPhase::Connect) => self.timeout_connect,
            Failure::Timeout(CheckPhase::Tls) => self.timeout_tls,
            Failure::Timeout(CheckPhase::FirstByte) => self.timeout_first_byte,
            Failure::Timeout(CheckPhase::Transfer) => self.timeout_transfer,
            Failure::Refused => self.refused,
            Failure::Reset => self.reset,
            Failure::Unreachable => self.unreachable,
            Failure::NameNotFound => self.name_not_found,
            Failure::NoAddress => self.no_address,
            Failure::ResolutionFailed => self.resolution_failed,
            Failure::KeywordMissing => self.keyword_missing,
            Failure::KeywordPresent => self.keyword_present,
            Failure::TooManyRedirects => self.too_many_redirects,
            Failure::BadRedirect => self.bad_redirect,
            Failure::TlsExpired => self.tls_expired,
            Failure::TlsNotYetValid => self.tls_not_yet_valid,
            Failure::TlsNameMismatch => self.tls_name_mismatch,
            Failure::TlsUnknownIssuer => self.tls_unknown_issuer,
            Failure::DnsUnexpected(_) => self.dns_unexpected,
            Failure::PingMissed => self.ping_missed,
            Failure::JobFailed(None) => self.job_failed,
            Failure::AddressNotAllowed(class) => return fill(self.address_not_allowed, &[class]),
            Failure::UnexpectedStatus(status) => {
                return fill(self.unexpected_status, &[&status.to_string()]);
            }
            Failure::TlsFailed(detail) => return fill(self.tls_failed, &[&with_visible_controls(detail)]),
            Failure::BodyTooLarge(mebibytes) => return fill(self.body_too_large, &[&mebibytes.to_string()]),
            Failure::NotHttp(detail) => return fill(self.not_http, &[&with_visible_controls(detail)]),
            Failure::CertificateExpiring(days) => {
                return self.plural(*days, self.certificate_expires_one, self.certificate_expires);
            }
            Failure::DomainExpiring(days) => {
                return self.plural(*days, self.domain_expires_one, self.domain_expires);
            }
            Failure::JobFailed(Some(code)) => return fill(self.job_failed_code, &[&code.to_string()]),
            Failure::VendorOutage(text) | Failure::Other(text) => return with_visible_controls(text),
        };
        pattern.to_owned()
    }
}
