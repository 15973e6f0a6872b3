//! Hosts as people write them, read strictly: what another reader could take for a different host is refused.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::url::Host;

use crate::refusal::Rule;

/// A host: a canonical IPv4 or IPv6 address, or a name in lower-case ASCII without a trailing dot (international
/// names are turned to their ASCII form). Forms that only lenient readers take for an address (`127.1`,
/// `0x7f000001`, a zone id) are refused.
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
            Err(_) => Err("must be a hostname or an address, without scheme, port or path".to_owned()),
        };
    }
    domain_name(text)
}

/// A host that is a name, never an address.
///
/// # Errors
/// The rule that the text breaks.
pub fn domain(text: &str) -> Result<String, Rule> {
    let name = host(text)?;
    let is_address = name.contains(':') || name.parse::<Ipv4Addr>().is_ok();
    if is_address { Err("must be a name, not an address".to_owned()) } else { Ok(name) }
}

/// A host as it is shown: what [`host`] reads, but a name of another script in that script.
///
/// # Errors
/// The rule that the text breaks.
pub fn shown_host(text: &str) -> Result<String, Rule> {
    host(text).map(|ascii| as_written(&ascii, text))
}

/// A name as it is shown: what [`domain`] reads, but a name of another script in that script.
///
/// # Errors
/// The rule that the text breaks.
pub fn shown_domain(text: &str) -> Result<String, Rule> {
    domain(text).map(|ascii| as_written(&ascii, text))
}

/// A name to ask name servers for: a [`shown_domain`], or `.` for the root.
///
/// # Errors
/// The rule that the text breaks.
pub fn record_name(text: &str) -> Result<String, Rule> {
    if text.trim() == "." { Ok(".".to_owned()) } else { shown_domain(text) }
}

/// A host in lower-case ASCII, as it is asked for, whichever script it is shown in.
pub fn ascii_host(shown: &str) -> String {
    if shown.is_ascii() { shown.to_owned() } else { host(shown).unwrap_or_else(|_| shown.to_owned()) }
}

/// The ASCII form of a name in the script that `text` is written in (RFC 5890: A-label and U-label).
pub(super) fn as_written(ascii: &str, text: &str) -> String {
    // Who writes the one form of a name wants to read that one.
    if text.is_ascii() || text.to_ascii_lowercase().contains("xn--") {
        return ascii.to_owned();
    }
    match idna::domain_to_unicode(ascii) {
        (shown, Ok(())) => shown,
        (_, Err(_)) => ascii.to_owned(),
    }
}

pub(super) fn domain_name(text: &str) -> Result<String, Rule> {
    let no_host = || "must be a hostname or an address".to_owned();
    let ascii = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        match Host::parse(text) {
            Ok(Host::Domain(ascii)) => ascii,
            // Digits and dots of other scripts become an address: it was not written as one.
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => return Err(no_host()),
        }
    };
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    if name.len() > 253 {
        return Err("must be at most 253 characters".to_owned());
    }
    let last_is_number = name.rsplit('.').next().is_some_and(reads_as_number);
    if last_is_number {
        return Err("must be written as four decimal numbers where it is an IPv4 address".to_owned());
    }
    if name.split('.').all(is_label) { Ok(name.to_owned()) } else { Err(no_host()) }
}

/// Letters, digits, inner hyphens, and the underscore, which names of services use (RFC 8552).
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether a last label makes resolvers take the whole for an IPv4 address (URL standard, "ends in a number").
fn reads_as_number(label: &str) -> bool {
    label.strip_prefix("0x").map_or_else(
        || !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
        |hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
    )
}
