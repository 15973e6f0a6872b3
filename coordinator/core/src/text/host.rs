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
