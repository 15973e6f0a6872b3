//! Validation of text input: lines, region lists, email addresses, hosts, URLs, request headers and `Accept`.

pub mod accept;
mod email;
mod host;
mod invisible;
mod plain_name;
mod url;

pub use email::parse_email;
pub use host::{ascii_host, display_domain, display_host, dns_record_name, domain, host};
pub use invisible::{alters_layout, with_visible_controls};
pub use plain_name::is_plain_name;
pub use url::{MAX_URL, WebUrl, parse_web_url};

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::validation::Rule;
use crate::vantage::{Region, RegionSet};

/// Maximum number of request headers of one monitor.
pub const MAX_HEADERS: usize = 64;
/// Maximum length of all names and values of request headers together, in characters.
pub const MAX_HEADER_CHARACTERS: usize = 4000;

/// Returns true if a text has no visible character.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(invisible::is_invisible)
}

/// Validates a single line: trimmed, without control characters and direction overrides, and with a length in
/// Unicode characters within `bounds`. A text of nothing but invisible characters counts as empty.
///
/// # Errors
/// The rule that the text breaks.
pub fn line(text: &str, bounds: RangeInclusive<usize>) -> Result<String, Rule> {
    let text = text.trim_matches(invisible::is_trimmed);
    if text.chars().any(|sign| sign.is_control() || invisible::ends_line(sign)) {
        return Err("must not contain control characters".to_owned());
    }
    if let Some(sign) = text.chars().find(|sign| invisible::changes_direction(*sign)) {
        let number = u32::from(sign);
        return Err(format!("must not contain U+{number:04X}, which changes the direction of text"));
    }
    if is_blank(text) && !text.is_empty() {
        return match bounds.start() {
            0 => Ok(String::new()),
            _ => Err("must contain a visible character".to_owned()),
        };
    }
    if bounds.contains(&text.chars().count()) {
        return Ok(text.to_owned());
    }
    Err(match (bounds.start(), bounds.end()) {
        (0, most) => format!("must be at most {most} characters"),
        (least, most) => format!("must be {least} to {most} characters"),
    })
}

/// Validates an optional line; an empty one is none.
///
/// # Errors
/// The rule that the text breaks.
pub fn optional_line(text: &str, most: usize) -> Result<Option<String>, Rule> {
    line(text, 0..=most).map(|text| (!text.is_empty()).then_some(text))
}

/// Validates a whole number within bounds.
///
/// # Errors
/// The rule that the number breaks.
pub fn integer<T: TryFrom<i64>>(value: i64, bounds: RangeInclusive<i64>) -> Result<T, Rule> {
    let rule = || format!("must be a whole number from {} to {}", bounds.start(), bounds.end());
    if bounds.contains(&value) { T::try_from(value).map_err(|_| rule()) } else { Err(rule()) }
}

/// Parses one of a closed list of names, case-sensitively.
///
/// # Errors
/// The rule, which lists the names.
pub fn one_of<T: Copy>(text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, Rule> {
    all.iter().copied().find(|candidate| name(*candidate) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|candidate| name(*candidate)).collect();
        format!("must be one of {}", names.join(", "))
    })
}

/// Parses a region by name.
///
/// # Errors
/// The rule, which lists the regions.
pub fn region(text: &str) -> Result<Region, Rule> {
    one_of(text.trim(), &Region::ALL, Region::name)
}

/// Parses a list of regions by name: at least one; duplicates are ignored.
///
/// # Errors
/// The rule that the list breaks.
pub fn regions(names: &[String]) -> Result<RegionSet, Rule> {
    if names.is_empty() {
        return Err("must name at least one region, or be null".to_owned());
    }
    let regions: Result<RegionSet, Rule> = names.iter().map(|name| region(name)).collect();
    regions.map_err(|rule| format!("must be a list of regions: each {rule}"))
}

/// Validates request headers: names of letters, digits and hyphens, unique regardless of case; values without
/// control characters; no connection or framing headers (RFC 9110 section 7.6.1, RFC 9112 section 6).
///
/// # Errors
/// The first rule that they break.
pub fn headers(headers: &[(String, String)]) -> Result<Vec<(String, String)>, Rule> {
    if headers.len() > MAX_HEADERS {
        return Err(format!("must be at most {MAX_HEADERS} headers"));
    }
    let mut seen = BTreeSet::new();
    let mut characters = 0;
    let mut kept = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let (name, value, sent) = (name.trim(), value.trim(), value);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err("must have names of letters, digits and hyphens".to_owned());
        }
        let lower = name.to_ascii_lowercase();
        if is_hop_by_hop(&lower) {
            return Err(format!("must not set {name:.60}, which the HTTP client sets itself"));
        }
        // Checked before trimming, which would remove a line break at the end.
        if sent.chars().any(char::is_control) {
            return Err(format!("must not have line breaks or other control characters in {name:.60}"));
        }
        if !seen.insert(lower) {
            return Err(format!("must name {name:.60} only once"));
        }
        characters += name.chars().count() + value.chars().count();
        kept.push((name.to_owned(), value.to_owned()));
    }
    if characters > MAX_HEADER_CHARACTERS {
        return Err(format!("must be at most {MAX_HEADER_CHARACTERS} characters in all"));
    }
    Ok(kept)
}

fn is_hop_by_hop(lower: &str) -> bool {
    const NAMES: [&str; 8] =
        ["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"];
    NAMES.contains(&lower) || lower.starts_with("proxy-")
}

#[cfg(test)]
mod tests;
