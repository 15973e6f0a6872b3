//! Hosts, parsed strictly: a spelling that another parser could read as a different host is rejected.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::url::Host;

use crate::validation::Rule;

/// Parses a host: a canonical IPv4 or IPv6 address, or a name in lower-case ASCII without a trailing dot
/// (international names are converted to ASCII). Forms that only lenient parsers read as an address (`127.1`,
/// `0x7f000001`, a zone id) are rejected.
///
/// # Errors
/// The rule that the text breaks.
pub fn host(text: &str) -> Result<String, Rule> {
    let text = text.trim();
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(address.to_string());
    }
    if text.contains(':') {
        return match text.parse::<Ipv6Addr>() {
            Ok(address) => Ok(address.to_string()),
            Err(_) => Err("must be a hostname or an IP address, without scheme, port or path".to_owned()),
        };
    }
    domain_name(text)
}

/// Parses a host that is a name, not an address.
///
/// # Errors
/// The rule that the text breaks.
pub fn domain(text: &str) -> Result<String, Rule> {
    let name = host(text)?;
    let is_address = name.contains(':') || name.parse::<Ipv4Addr>().is_ok();
    if is_address { Err("must be a hostname, not an IP address".to_owned()) } else { Ok(name) }
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
pub fn ascii_host(shown: &str) -> String {
    if shown.is_ascii() { shown.to_owned() } else { host(shown).unwrap_or_else(|_| shown.to_owned()) }
}

/// Converts the ASCII form of a name to the script in which `text` was written (RFC 5890: A-label and
/// U-label).
pub(super) fn in_script_of(ascii: &str, text: &str) -> String {
    // A name entered in its ASCII form is displayed in that form.
    if text.is_ascii() || text.to_ascii_lowercase().contains("xn--") {
        return ascii.to_owned();
    }
    match idna::domain_to_unicode(ascii) {
        (shown, Ok(())) => shown,
        (_, Err(_)) => ascii.to_owned(),
    }
}

pub(super) fn domain_name(text: &str) -> Result<String, Rule> {
    let no_host = || "must be a hostname or an IP address".to_owned();
    let ascii = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        match Host::parse(text) {
            Ok(Host::Domain(ascii)) => ascii,
            // Digits and dots of other scripts would become an address, which the text was not.
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => return Err(no_host()),
        }
    };
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    if name.len() > 253 {
        return Err("must be at most 253 characters".to_owned());
    }
    let last_is_number = name.rsplit('.').next().is_some_and(reads_as_number);
    if last_is_number {
        return Err("must be four decimal numbers if it is an IPv4 address".to_owned());
    }
    if name.split('.').all(is_label) { Ok(name.to_owned()) } else { Err(no_host()) }
}

/// Letters, digits, inner hyphens, and the underscore, which service names use (RFC 8552).
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns true if a last label makes resolvers parse the whole name as an IPv4 address (URL standard, "ends
/// in a number").
fn reads_as_number(label: &str) -> bool {
    label.strip_prefix("0x").map_or_else(
        || !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
        |hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
    )
}
