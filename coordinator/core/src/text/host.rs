//! Hosts as people enter them, read by the same strict parser as the address guard's, with rules in words.

use parallax_primitives::host::{Host, HostError};

use crate::validation::Rule;

/// Parses a host: a canonical IPv4 or IPv6 address, or a name in lower-case ASCII without a trailing dot
/// (international names are converted to ASCII). Forms that only lenient parsers read as an address (`127.1`,
/// `0x7f000001`, a zone id) are rejected.
///
/// # Errors
/// The rule that the text breaks.
pub fn host(text: &str) -> Result<String, Rule> {
    parse(text).map(|host| host.to_string())
}

/// Parses a host that is a name, not an address.
///
/// # Errors
/// The rule that the text breaks.
pub fn domain(text: &str) -> Result<String, Rule> {
    match parse(text)? {
        Host::Name(name) => Ok(name.to_string()),
        Host::Ip(_) => Err("must be a hostname, not an IP address".to_owned()),
    }
}

/// Parses a host for display: like [`host`], but an international name keeps its script.
///
/// # Errors
/// The rule that the text breaks.
pub fn display_host(text: &str) -> Result<String, Rule> {
    host(text).map(|ascii| in_script_of(&ascii, text))
}

/// Parses a name for display: like [`domain`], but an international name keeps its script.
///
/// # Errors
/// The rule that the text breaks.
pub fn display_domain(text: &str) -> Result<String, Rule> {
    domain(text).map(|ascii| in_script_of(&ascii, text))
}

/// Parses the name of a DNS query: a [`display_domain`], or `.` for the root.
///
/// # Errors
/// The rule that the text breaks.
pub fn dns_record_name(text: &str) -> Result<String, Rule> {
    if text.trim() == "." { Ok(".".to_owned()) } else { display_domain(text) }
}

/// Converts a displayed host to lower-case ASCII, the form used in look-ups.
pub fn ascii_host(display: &str) -> String {
    if display.is_ascii() { display.to_owned() } else { host(display).unwrap_or_else(|_| display.to_owned()) }
}

/// Converts the ASCII form of a name to the script in which `text` was written (RFC 5890: A-label and
/// U-label).
pub(super) fn in_script_of(ascii: &str, text: &str) -> String {
    // A name entered in its ASCII form is displayed in that form.
    if text.is_ascii() || text.to_ascii_lowercase().contains("xn--") {
        return ascii.to_owned();
    }
    match idna::domain_to_unicode(ascii) {
        (unicode, Ok(())) => unicode,
        (_, Err(_)) => ascii.to_owned(),
    }
}

fn parse(text: &str) -> Result<Host, Rule> {
    let text = text.trim();
    Host::parse(text).map_err(|error| {
        let rule = match error {
            HostError::TooLong => "must be at most 253 characters",
            HostError::NotCanonicalIpv4 if text.is_ascii() => "must be four decimal numbers if it is an IPv4 address",
            _ if text.contains(':') => "must be a hostname or an IP address, without scheme, port or path",
            _ => "must be a hostname or an IP address",
        };
        rule.to_owned()
    })
}
