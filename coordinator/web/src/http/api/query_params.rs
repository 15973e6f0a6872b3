//! Query parameters: names with plain values.

use std::str::FromStr;

use parallax_core::validation::ValidationErrors;
use percent_encoding::percent_decode_str;

/// Items on one page of a list by default.
pub(in crate::http) const DEFAULT_LIMIT: usize = 50;
/// Items on one page of a list at most.
pub(in crate::http) const MAX_LIMIT: usize = 200;

/// Returns the value of that name, decoded like form data; none if it is left out. The last of several counts.
pub(super) fn value<T>(
    query: &str,
    name: &str,
    rule: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ValidationErrors> {
    let name_and_value = query.split('&').filter_map(|pair| pair.split_once('=')).rfind(|(key, _)| *key == name);
    match name_and_value.map(|(_, value)| value) {
        None => Ok(None),
        Some(value) => {
            let spaced = value.replace('+', " ");
            let text = percent_decode_str(&spaced).decode_utf8().ok();
            text.and_then(|text| read(&text)).map(Some).ok_or_else(|| ValidationErrors::single(name, rule))
        }
    }
}

/// Returns a value that is true or false; none if it is left out.
pub(super) fn flag(query: &str, name: &str) -> Result<Option<bool>, ValidationErrors> {
    value(query, name, "must be true or false", |text| match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    })
}

/// Returns the number of items requested: 1 to 200, by default 50.
pub(super) fn limit(query: &str) -> Result<usize, ValidationErrors> {
    let is_plain = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let read =
        |text: &str| usize::from_str(text).ok().filter(|limit| is_plain(text) && (1..=MAX_LIMIT).contains(limit));
    Ok(value(query, "limit", "must be a whole number from 1 to 200", read)?.unwrap_or(DEFAULT_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_one_to_two_hundred() {
        for (query, expected) in [("", Some(50)), ("limit=1", Some(1)), ("a=b&limit=200", Some(200))] {
            assert_eq!(limit(query).ok(), expected, "{query}");
        }
        for query in ["limit=", "limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=x", "limit=1&limit=0"] {
            assert!(limit(query).is_err(), "{query}");
        }
    }
}
