//! Validation of a check as sent in a request: the bounds of each monitor type.

use super::{
    CertificateCheck, Check, CheckKind, ComponentCheck, DnsCheck, DomainCheck, HeartbeatCheck, HttpCheck, KeywordMode,
    Method, PingCheck, RecordType, TcpCheck,
};
use crate::patch::PatchField;
use crate::text;
use crate::validation::{Rule, ValidationErrors};

/// Allowed values of `warnDays`: a day to a year.
pub const WARN_DAYS: std::ops::RangeInclusive<i64> = 1..=365;
/// Days before expiry at which a certificate check fails by default.
pub const CERTIFICATE_WARN_DAYS: u16 = 14;
/// Days before expiry at which a domain check fails by default.
pub const DOMAIN_WARN_DAYS: u16 = 30;
/// Maximum length of a request body, in characters.
pub const MAX_BODY: usize = 10_000;
/// Maximum length of the text expected in a DNS response, in characters.
pub const MAX_EXPECT: usize = 500;
/// Maximum length of a keyword, in characters.
pub const MAX_KEYWORD: usize = 200;
/// Maximum length of a vendor component's name, in characters.
pub const MAX_COMPONENT: usize = 200;
/// HTTP statuses that a monitor may expect.
pub const STATUS_CODES: std::ops::RangeInclusive<i64> = 100..=599;
/// Allowed minutes between two pings.
pub const PERIOD_MINUTES: std::ops::RangeInclusive<i64> = 1..=44_640;
/// Allowed minutes of grace after the period.
pub const GRACE_MINUTES: std::ops::RangeInclusive<i64> = 0..=10_080;

/// The fields of a monitor that describe its check, as sent.
#[derive(Clone, Default)]
#[allow(missing_debug_implementations, reason = "headers, body and URL hold secrets")]
pub struct CheckEdit {
    /// http: the URL.
    pub url: PatchField<String>,
    /// tcp, dns, ping, certificate, domain: the host.
    pub host: PatchField<String>,
    /// tcp, certificate: the port.
    pub port: PatchField<i64>,
    /// dns: the record type.
    pub dns_type: PatchField<String>,
    /// dns: text that a record must contain.
    pub dns_expect: PatchField<String>,
    /// certificate, domain: days before expiry.
    pub warn_days: PatchField<i64>,
    /// heartbeat: minutes between pings.
    pub period_minutes: PatchField<i64>,
    /// heartbeat: minutes of grace.
    pub grace_minutes: PatchField<i64>,
    /// component: the vendor's page.
    pub vendor_url: PatchField<String>,
    /// component: one component on it.
    pub vendor_component: PatchField<String>,
    /// http: the method.
    pub method: PatchField<String>,
    /// http: request headers, name and value.
    pub headers: PatchField<Vec<(String, String)>>,
    /// http: request body.
    pub body: PatchField<String>,
    /// http: the status expected.
    pub expect_status: PatchField<i64>,
    /// http: the keyword.
    pub keyword: PatchField<String>,
    /// http: expected presence of the keyword.
    pub keyword_mode: PatchField<String>,
}

/// A valid check, and the host that becomes the default name of its monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedCheck {
    /// The check.
    pub check: Check,
    /// Host of the URL, or the host; none for heartbeat and component.
    pub host: Option<String>,
}

impl CheckEdit {
    /// Validates what was sent on top of `before` (a check of the same type, or none for a new monitor). Only
    /// the fields of the type count. Returns none if a field is invalid; the errors are in `faults`. `token`
    /// is used for a new heartbeat.
    pub fn validate(
        &self,
        kind: CheckKind,
        before: Option<&Check>,
        token: &str,
        faults: &mut ValidationErrors,
    ) -> Option<ValidatedCheck> {
        match kind {
            CheckKind::Http => self.http(before, faults),
            CheckKind::Tcp => {
                let before = before.and_then(|check| if let Check::Tcp(tcp) = check { Some(tcp) } else { None });
                let host = self.host(before.map(|tcp| &tcp.host), text::display_host, faults);
                let port = self.port.required("port", before.map(|tcp| tcp.port), faults, read_port);
                let host = host?;
                Some(with_default_name(&host, Check::Tcp(TcpCheck { host: host.clone(), port: port? })))
            }
            CheckKind::Dns => {
                let before = before.and_then(|check| if let Check::Dns(dns) = check { Some(dns) } else { None });
                let host = self.host(before.map(|dns| &dns.host), text::dns_record_name, faults);
                let kinds = |name: &String| text::one_of(name, &RecordType::ALL, RecordType::name);
                let kind_before = before.map(|dns| dns.record);
                let record = self.dns_type.defaulted("dnsType", kind_before, RecordType::A, faults, kinds);
                let expect_before = before.and_then(|dns| dns.expect.clone());
                let expect =
                    self.dns_expect.optional("dnsExpect", expect_before, faults, optional_line_up_to(MAX_EXPECT));
                let host = host?;
                Some(with_default_name(&host, Check::Dns(DnsCheck { host: host.clone(), record: record?, expect })))
            }
            CheckKind::Ping => {
                let before = before.and_then(|check| if let Check::Ping(ping) = check { Some(ping) } else { None });
                let host = self.host(before.map(|ping| &ping.host), text::display_host, faults)?;
                Some(with_default_name(&host, Check::Ping(PingCheck { host: host.clone() })))
            }
            CheckKind::Certificate => {
                let before = before.and_then(|check| if let Check::Certificate(it) = check { Some(it) } else { None });
                let host = self.host(before.map(|it| &it.host), text::display_host, faults);
                let port = self.port.defaulted("port", before.map(|it| it.port), 443, faults, read_port);
                let warn_days = self.warn_days(before.map(|it| it.warn_days), CERTIFICATE_WARN_DAYS, faults);
                let host = host?;
                let check = CertificateCheck { host: host.clone(), port: port?, warn_days: warn_days? };
                Some(with_default_name(&host, Check::Certificate(check)))
            }
            CheckKind::Domain => {
                let before = before.and_then(|check| if let Check::Domain(it) = check { Some(it) } else { None });
                let host = self.host(before.map(|it| &it.host), text::display_domain, faults);
                let warn_days = self.warn_days(before.map(|it| it.warn_days), DOMAIN_WARN_DAYS, faults);
                let host = host?;
                Some(with_default_name(&host, Check::Domain(DomainCheck { host: host.clone(), warn_days: warn_days? })))
            }
            CheckKind::Heartbeat => self.heartbeat(before, token, faults),
            CheckKind::Component => self.component(before, faults),
        }
    }

    fn http(&self, before: Option<&Check>, faults: &mut ValidationErrors) -> Option<ValidatedCheck> {
        let before = before.and_then(|check| if let Check::Http(http) = check { Some(http) } else { None });
        // The stored URL was valid; parsing it again yields its host.
        let url_before = before.and_then(|http| text::parse_web_url(&http.url).ok());
        let address = self.url.required("url", url_before, faults, |url| text::parse_web_url(url));
        let headers_before = before.map(|http| http.headers.clone());
        let headers = self
            .headers
            .optional("headers", headers_before, faults, |headers| text::headers(headers).map(Some))
            .unwrap_or_default();
        let credentials = match (&self.url, &self.headers) {
            (PatchField::Absent, PatchField::Value(sent)) if sent.iter().any(is_authorization) => None,
            (PatchField::Absent, _) => before.and_then(|http| http.credentials.clone()),
            // Credentials never go to another URL than the one that they came with.
            _ => address
                .as_ref()
                .and_then(|address| address.user_info.as_ref())
                .map(|(user, password)| basic_auth(user, password)),
        };
        let methods = |name: &String| text::one_of(name, &Method::ALL, Method::name);
        let method = self.method.defaulted("method", before.map(|http| http.method), Method::Get, faults, methods);
        let body_before = before.and_then(|http| http.body.clone());
        let body = self.body.optional("body", body_before, faults, |body| read_body(body));
        let status_before = before.and_then(|http| http.expect_status);
        let expect_status = self
            .expect_status
            .optional("expectStatus", status_before, faults, |status| text::integer(*status, STATUS_CODES).map(Some));
        let keyword_before = before.and_then(|http| http.keyword.clone());
        let keyword = self.keyword.optional("keyword", keyword_before, faults, optional_line_up_to(MAX_KEYWORD));
        let modes = |name: &String| text::one_of(name, &[KeywordMode::Present, KeywordMode::Absent], KeywordMode::name);
        let mode_before = before.map(|http| http.keyword_mode);
        let keyword_mode = self.keyword_mode.defaulted("keywordMode", mode_before, KeywordMode::Present, faults, modes);
        let address = address?;
        let check = HttpCheck {
            url: address.url,
            method: method?,
            headers,
            credentials,
            body,
            expect_status,
            keyword,
            keyword_mode: keyword_mode?,
        };
        faults.record("headers", text::headers(&check.sent_headers()));
        Some(with_default_name(&address.host, Check::Http(check)))
    }

    fn heartbeat(&self, before: Option<&Check>, token: &str, faults: &mut ValidationErrors) -> Option<ValidatedCheck> {
        let before = before.and_then(|check| if let Check::Heartbeat(it) = check { Some(it) } else { None });
        let period =
            self.period_minutes.required("periodMinutes", before.map(|it| it.period_seconds), faults, |minutes| {
                text::integer(*minutes, PERIOD_MINUTES).map(|minutes: u32| minutes * 60)
            });
        let grace =
            self.grace_minutes.defaulted("graceMinutes", before.map(|it| it.grace_seconds), 0, faults, |minutes| {
                text::integer(*minutes, GRACE_MINUTES).map(|minutes: u32| minutes * 60)
            });
        let token = before.map_or_else(|| token.to_owned(), |it| it.token.clone());
        let check = HeartbeatCheck { period_seconds: period?, grace_seconds: grace?, token };
        Some(ValidatedCheck { check: Check::Heartbeat(check), host: None })
    }

    fn component(&self, before: Option<&Check>, faults: &mut ValidationErrors) -> Option<ValidatedCheck> {
        let before = before.and_then(|check| if let Check::Component(it) = check { Some(it) } else { None });
        let url = self.vendor_url.required("vendorUrl", before.map(|it| it.url.clone()), faults, |url| {
            let address = text::parse_web_url(url)?;
            match address.user_info {
                None => Ok(address.url),
                Some(_) => Err("must not hold a user name or password".to_owned()),
            }
        });
        let part_before = before.and_then(|it| it.component.clone());
        let component =
            self.vendor_component.optional("vendorComponent", part_before, faults, optional_line_up_to(MAX_COMPONENT));
        Some(ValidatedCheck { check: Check::Component(ComponentCheck { url: url?, component }), host: None })
    }

    fn host(
        &self,
        before: Option<&String>,
        read: impl FnOnce(&str) -> Result<String, Rule>,
        faults: &mut ValidationErrors,
    ) -> Option<String> {
        self.host.required("host", before.cloned(), faults, |host| read(host))
    }

    fn warn_days(&self, before: Option<u16>, default: u16, faults: &mut ValidationErrors) -> Option<u16> {
        self.warn_days.defaulted("warnDays", before, default, faults, |days| text::integer(*days, WARN_DAYS))
    }
}

fn with_default_name(host: &str, check: Check) -> ValidatedCheck {
    ValidatedCheck { check, host: Some(host.to_owned()) }
}

fn read_port(port: &i64) -> Result<u16, Rule> {
    text::integer(*port, 1..=65_535)
}

fn optional_line_up_to(most: usize) -> impl FnOnce(&String) -> Result<Option<String>, Rule> {
    move |line| text::optional_line(line, most)
}

/// A body is sent unchanged, so its length is counted without trimming.
fn read_body(body: &str) -> Result<Option<String>, Rule> {
    match body.chars().count() {
        0 => Ok(None),
        1..=MAX_BODY => Ok(Some(body.to_owned())),
        _ => Err(format!("must be at most {MAX_BODY} characters")),
    }
}

fn is_authorization((name, _): &(String, String)) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

/// Basic credentials (RFC 7617): base64 (RFC 4648 section 4) of user name, colon and password.
fn basic_auth(user: &str, password: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("Basic ");
    for group in format!("{user}:{password}").as_bytes().chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| (bits << 8) | usize::from(group.get(at).copied().unwrap_or(0)));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit > group.len() { '=' } else { char::from(ALPHABET[index]) });
        }
    }
    text
}

#[cfg(test)]
mod tests;
